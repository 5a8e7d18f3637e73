"""Two ranks over a link, each recorded on its own as on two machines, and what is read of both together."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from teller_core.collect.bundle import record
from teller_core.data.capture import Capture
from teller_core.data.table import UNKNOWN
from teller_core.ingest.reading import plan, read_trees
from teller_core.lab.link import ADDRESSES, DEVICE, Link
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.nest import nest

PROGRAM = Path(__file__).with_name("gloo_rank.py")
PORT = "29531"
TIMEOUT_S = 100.0


def run_pair(
    link: Link,
    folder: Path,
    steps: int,
    variables: Mapping[int, Mapping[str, str]] | None = None,
    *,
    meanwhile: Callable[[], None] = lambda: None,
    hangs: bool = False,
) -> list[Path]:
    """Run ``steps`` passes on both sides of ``link``, each recorded into its bundle. ``variables``: what is set on one side;
    ``meanwhile`` is called once both run. With ``hangs`` they are ended once both have dumped, as ranks do of which one
    hangs. Returns the two bundles. Raises RuntimeError where a rank fails or is too slow.
    """
    bundles = [folder / "node-a", folder / "node-b"]
    with ExitStack() as stack:
        command = [sys.executable, str(PROGRAM)]
        services = [
            stack.enter_context(record(link.command(side, command), bundle, _environment(side, steps, variables)))
            for side, bundle in enumerate(bundles)
        ]
        meanwhile()
        late = time.monotonic() + TIMEOUT_S
        while any(service.process.poll() is None for service in services):
            if hangs and len(list(folder.glob("node-?/cap/fr-*.json"))) == len(bundles):
                return bundles
            if time.monotonic() > late:
                raise RuntimeError("the ranks did not end in time")
            time.sleep(0.05)
        if any(service.process.returncode for service in services):
            raise RuntimeError("\n".join(bundle.joinpath("server.log").read_text()[-2000:] for bundle in bundles))
    return bundles


def _environment(side: int, steps: int, variables: Mapping[int, Mapping[str, str]] | None) -> dict[str, str]:
    return {
        "RANK": str(side),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": ADDRESSES[0],
        "MASTER_PORT": PORT,
        "GLOO_SOCKET_IFNAME": DEVICE,
        "OMP_NUM_THREADS": "1",
        "STEPS": str(steps),
        "PATH": os.environ.get("PATH", ""),
        **(variables or {}).get(side, {}),
    }


def rebuilt(*paths: Path) -> Capture:
    """The capture of ``paths``, all of it recorded together."""
    [group] = plan(paths, together=True)
    reading = read_trees(group, nest)
    made = rebuild(reading.recording, reading.trees, capture_id="c", name="pair")
    made.check()
    return made


class Told:
    """What the all-reduces of a capture tell: how many met, whom the others waited for and how long, what a transfer took.

    ``part``: of the collectives in their order, from which to which share of them is looked at.
    """

    def __init__(self, capture: Capture, part: tuple[float, float] = (0.0, 1.0)) -> None:
        reduced = np.flatnonzero(np.array(capture.meetings.kind, dtype=object) == "all_reduce")
        met = reduced[int(part[0] * len(reduced)) : int(part[1] * len(reduced))]
        table, meetings = capture.collectives, capture.meetings
        rows = np.flatnonzero(np.isin(table.sequence, met))
        self.met = int((meetings.came[met] == 2).sum())
        self.late = [int((meetings.late[met] == rank).sum()) for rank in range(2)]
        waits = [rows[(table.rank[rows] == rank) & (table.wait[rows] != UNKNOWN)] for rank in range(2)]
        self.waited = [
            float(table.wait[own].sum() / max(table.dur[rows][table.rank[rows] == rank].sum(), 1))
            for rank, own in enumerate(waits)
        ]
        self.wait_ms = [float(table.wait[own].sum()) / 1e6 / max(self.met, 1) for own in waits]
        transfer = meetings.transfer[met]
        self.transfer_ms = float(np.median(transfer[transfer != UNKNOWN])) / 1e6 if len(met) else float("nan")
        self.clock_error_ms = capture.ranks[1].clock_error / 1e6
        self.shift_ms = capture.ranks[1].shift / 1e6

    def straggler(self) -> int | None:
        """The rank for which the other one waits in at least half of its time in collectives, None where there is none."""
        for rank in range(2):
            if self.waited[1 - rank] >= 0.5 and self.late[rank] >= 0.7 * self.met:
                return rank
        return None
