"""How often ``fleet`` names the replica that was struck, of packed lives: python tests/bench/fleet_replicas.py LIFE...

For each strike of the lives that moved something a store is made of the life's healthy windows, as two replicas a block, and of
what was struck, as one more. Prints what was named for each, and how often by how much slower its requests were from end to end.
"""

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core.data.capture import Capture
from teller_core.fleet import fleet
from teller_core.lab.benchmark.pack import Packed, capture_of, read_truth
from teller_core.store.store import Store
from tests.core.fleet_of_lives import calm_replicas, struck_replica

LIVES = Path(__file__).parents[1] / "lab"
TIER = 3
SLOWER = (1.5, 2.0)


def named(life: Packed, whole: Capture, block: int, strike: int) -> str:
    """Who was named: right, also others, wrong or nobody."""
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "t.db") as store:
        calm_replicas(store, life, whole)
        struck = struck_replica(store, life, whole, block, strike)[:12]
        found = [row[0] for row in fleet(store, since="1d").replica_rows if row[-1]]
    return "right" if found == [struck] else "also others" if struck in found else "wrong" if found else "nobody"


def main() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for name in sys.argv[1:]:
        life = read_truth(LIVES, name)
        whole = capture_of(life, TIER)
        for block, told in enumerate(life.blocks):
            for strike, truth in enumerate(told.strikes):
                if truth.rejected is not None or truth.cause is None or "e2e" not in truth.moved:
                    continue
                slower = truth.moved["e2e"].median
                who = named(life, whole, block, strike)
                how = next((f"under {most} times" for most in SLOWER if slower < most), f"from {SLOWER[-1]} times on")
                counts[how, who] += 1
                print(f"{name} {truth.fault}, {truth.severity}: e2e {slower:.2f} times, {who}", flush=True)
    for (how, who), count in sorted(counts.items()):
        print(f"{how}: {who} {count}")


if __name__ == "__main__":
    main()
