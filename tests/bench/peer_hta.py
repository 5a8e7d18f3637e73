"""HolisticTraceAnalysis 0.5.0: load one rank's trace and build its call graph.

    python peer_hta.py WARM.json.gz TRACE.json.gz

``inside`` is the CPU time of the second trace, when everything has been imported and called once for the first.
"""

import logging
import sys
import time
from pathlib import Path

from hta.common.call_stack import CallGraph
from hta.trace_analysis import TraceAnalysis

logging.disable(logging.WARNING)


def load(path: Path) -> int:
    """Rows of the trace."""
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
    CallGraph(analysis.t, ranks=[0])
    return len(analysis.t.get_trace(0))


load(Path(sys.argv[1]).resolve())
since = time.process_time()
print(load(Path(sys.argv[2]).resolve()))
print("inside", time.process_time() - since)
