"""Replicas that really ran: windows of a packed life as captures of a store, one of them what a strike struck."""

from collections.abc import Sequence
from dataclasses import replace

from teller_core.data.capture import Capture
from teller_core.lab.benchmark.cut import cut
from teller_core.lab.benchmark.pack import Packed
from teller_core.lab.blocks import HEALTHY, Window
from teller_core.pipeline import STAGES
from teller_core.store.store import Store
from teller_core.tell.summary import capture_report

NOW = "2026-12-01T00:00:00+00:00"


def calm_replicas(store: Store, life: Packed, whole: Capture) -> None:
    """Store two replicas of each block, of its healthy windows by turns. ``whole``: the capture of the life."""
    for block in life.blocks:
        calm = [window for window in block.windows if window.strike == HEALTHY and not window.profiled]
        for turn in (0, 1):
            _keep(store, whole, calm[turn::2])


def struck_replica(store: Store, life: Packed, whole: Capture, block: int, strike: int) -> str:
    """Store a replica of the windows of a strike. Returns the id of its capture."""
    windows = life.blocks[block].windows
    return _keep(store, whole, [one for one in windows if one.strike == strike and not one.profiled])


def _keep(store: Store, whole: Capture, windows: Sequence[Window]) -> str:
    part = replace(cut(whole, [(one.begin, one.end) for one in windows]), name="replica")
    numbers = STAGES.assess(part, None)
    answers = (STAGES.explain(said) for said in STAGES.diagnose(part, numbers))
    store.save(part, numbers, answers, capture_report(part, already_known=False, imported_at=NOW))
    return part.id
