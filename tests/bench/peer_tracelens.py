"""TraceLens from a checkout: load a trace and build its tree of host events, Python frames included."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]).resolve()))

from TraceLens.TreePerf.tree_perf import TreePerfAnalyzer

analyzer = TreePerfAnalyzer.from_file(str(Path(sys.argv[2]).resolve()), add_python_func=True)
print(len(analyzer.tree.events))
