"""TraceLens from a checkout: load a trace and build its tree of host events, Python frames included.

    python peer_tracelens.py CHECKOUT WARM.json.gz TRACE.json.gz

``inside`` is the CPU time of the second trace, when everything has been imported and called once for the first.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]).resolve()))

from TraceLens.TreePerf.tree_perf import TreePerfAnalyzer


def load(path: str) -> int:
    """Events of the trace."""
    return len(TreePerfAnalyzer.from_file(str(Path(path).resolve()), add_python_func=True).tree.events)


load(sys.argv[2])
since = time.process_time()
print(load(sys.argv[3]))
print("inside", time.process_time() - since)
