"""HolisticTraceAnalysis 0.5.0: load one rank's trace and build its call graph."""

import logging
import sys
from pathlib import Path

from hta.common.call_stack import CallGraph
from hta.trace_analysis import TraceAnalysis

logging.disable(logging.WARNING)
path = Path(sys.argv[1]).resolve()
analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
CallGraph(analysis.t, ranks=[0])
print(len(analysis.t.get_trace(0)))
