"""What is measured of this project, and the bare inflation of the same file.

    python ours.py inflate|read|nest|import WARM.json.gz TRACE.json.gz

All that a first call needs (imports, compiled code) is loaded by reading WARM. ``inside`` is the CPU time after that.
"""

import sys
import tempfile
import time
from pathlib import Path

from isal import igzip

what, warm, trace = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])


def inflate(path: Path) -> int:
    """Bytes of ``path`` when expanded, which are thrown away."""
    room, size = bytearray(1 << 20), 0
    with igzip.open(path) as file:
        while got := file.readinto(room):
            size += got
    return size


def read(path: Path) -> int:
    """Events read."""
    from teller_core.ingest.kineto import reader as kineto

    return len(kineto.read(path))


def nest(path: Path) -> int:
    """Events read and put into a tree."""
    from teller_core.ingest.kineto import reader as kineto
    from teller_core.rebuild.nest import nest

    return len(nest(kineto.read(path)))


def import_(path: Path) -> int:
    """Events in a store that can be asked: trees, launch links, steps, baselines, answers."""
    from teller_core.pipeline import import_paths
    from teller_core.store.store import Store

    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "store.db") as store:
        (capture,) = import_paths([path], store).captures
        return capture.files[0].events_kept


run = {"inflate": inflate, "read": read, "nest": nest, "import": import_}[what]
run(warm)
since = time.process_time()
print(run(trace))
print("inside", time.process_time() - since)
