"""What the end of a cause would save in the steps of a request, each re-timed by itself: the batches stay as they were."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int32, Int64, Mask
from teller_core.judge.evidence import Clue
from teller_core.judge.intervals import overlaps
from teller_core.judge.prepare import Case
from teller_core.judge.replay.network import Network, network, unclaimed
from teller_core.judge.replay.savings import saving
from teller_core.judge.replay.suspects import NO_SPANS, SPREAD, STOPS, Known, all_of, suspect
from teller_core.judge.rules_comm import link
from teller_core.judge.rules_device import marks
from teller_core.judge.scene import Scene

NO_CLAIM = "no replay was made: what a cause took is not what its end would save"
NO_PROFILE = "no profile overlaps its steps: replay has nothing to re-time"
ELSEWHERE = "it delays the request outside the steps that replay re-times"
TOO_LONG = "its steps are too long to be replayed for every answer"
OWN_STEPS = "own_steps: its own steps are shorter, all else stays as it was"
MOST_STEPS = 64
"""Steps of a request that are re-timed for a cause, those that took longest over what was expected."""
MOST_ROWS = 10_000_000
"""Rows re-timed for the answers of a capture: half a minute at most."""
EACH = 5_000
"""Rows that take as long as what re-timing a step costs beside its rows."""
KEPT = 8
"""Networks of steps that are kept for the next cause and the next request."""
MARKS = {"cuda.host_device_sync": "sync", "cuda.pageable_copy": "copy", "cuda.allocator": "memory"}
"""What marks steps by cause, as rules_device measures it."""
REPLAYED = frozenset(
    {
        "comm.degraded_link",
        "comm.straggler_rank",
        "cuda.allocator",
        "cuda.host_device_sync",
        "cuda.pageable_copy",
        "gpu.wrong_kernel",
        "host.gc_pause",
        "host.observer_overhead",
        "host.slow_operator",
    }
    | SPREAD
)
"""Causes of which replay knows what would be without them."""


class StepSavings(NamedTuple):
    """A row a step that was re-timed: ``step`` int32, and int64 ns by which it would end sooner: ``middle``, and between
    ``low`` and ``high``; ``removed``: what its spans would take less. ``assumes``: what that takes for granted; where there
    is no row, why.
    """

    step: Int32
    low: Int64
    middle: Int64
    high: Int64
    removed: Int64
    assumes: str


def step_savings(view: Scene, clues: Sequence[Clue]) -> StepSavings:
    """What each step of the request inside the metric's stretch saves without the causes of ``clues``, all of them at once."""
    case = view.case
    if case.link is None:
        return _nothing(NO_CLAIM)
    clues = [clue for clue in clues if clue.cause in REPLAYED]
    if not clues:
        return _nothing(ELSEWHERE)
    life = view.life
    own = np.unique(life.step[(life.start >= view.low) & (life.start < view.high)])
    seen = own[case.profiled[own]]
    if not len(seen):
        return _nothing(NO_PROFILE)
    struck = np.zeros(len(seen), dtype=np.bool_)
    for clue in clues:
        struck |= _struck(case, seen, clue)
    seen = seen[struck]
    if not len(seen):
        return _nothing(NO_SPANS)
    over = np.maximum(case.took[seen] - np.maximum(case.expected[seen], 0), 0)
    seen = np.sort(seen[np.argsort(-over, kind="stable")][:MOST_STEPS])
    each = [(step, _of_step(case, step, clues)) for step in seen.tolist()]
    found = {step: one for step, one in each if not isinstance(one, str)}
    if not found:
        why = [one for _, one in each if isinstance(one, str)]
        return _nothing(max(set(why), key=why.count))
    low, middle, high, removed = np.array(list(found.values()), dtype=np.int64).T
    return StepSavings(np.array(list(found), dtype=np.int32), low, middle, high, removed, OWN_STEPS)


def _struck(case: Case, step: Int32, clue: Clue) -> Mask:
    """bool a step: ``clue`` may stand at something in it. A glance, for most steps do not have to be re-timed."""
    cause, capture, suspects = clue.cause, case.capture, case.assessment.candidates
    if cause in STOPS:
        spans = case.stalls if cause == "host.observer_overhead" else case.pauses["gc"]
        return overlaps(spans, case.begin[step], case.stop[step]) > 0
    if cause in MARKS:
        return marks(case).ns[MARKS[cause]][step] > 0
    if cause.startswith("comm."):
        return np.isin(step, capture.collectives.step)
    named = [clue.operator in (None, name) or cause in SPREAD for name in suspects.name]
    return np.isin(step, suspects.step[np.array(named, dtype=np.bool_)])


def _nothing(why: str) -> StepSavings:
    none = np.empty(0, dtype=np.int64)
    return StepSavings(none.astype(np.int32), none, none, none, none, why)


_Numbers = tuple[int, int, int, int]
"""(low, middle, high, removed) ns of one step."""


def _of_step(case: Case, step: int, clues: Sequence[Clue]) -> _Numbers | str:
    """What one step saves, or why nothing is claimed of it."""
    name = f"replay of {step} {[(clue.cause, clue.operator, clue.rank) for clue in clues]}"
    if name not in case.measured:
        case.measured[name] = _measured(case, step, clues)
    return case.measured[name]


def _measured(case: Case, step: int, clues: Sequence[Clue]) -> _Numbers | str:
    graph = _network(case, step)
    if graph is None:
        return TOO_LONG
    if why := unclaimed(graph):
        return why
    known = Known(case.capture.pauses.kind, link(case).calm)
    found = all_of([suspect(graph, clue, step, case.assessment, known) for clue in clues])
    if found is None:
        return NO_SPANS
    middle, fast, slow = (
        saving(graph, found.owners, durations, free=found.free) for durations in (found.normal, found.fast, found.slow)
    )
    every = (middle.low, middle.high, fast.low, fast.high, slow.low, slow.high)
    removed = int((graph.kept.owned[found.owners] - found.normal).sum())
    return min(every), middle.low, max(every), removed


def _network(case: Case, step: int) -> Network | None:
    """The network of a step, None where it has no rows or too many were re-timed already."""
    kept: dict[int, Network | None] = case.measured.setdefault("networks", {})
    if step not in kept:
        linked = case.link(step) if case.link is not None else None
        if linked is not None:
            spent = case.measured.get("rows replayed", 0) + len(linked) + EACH
            case.measured["rows replayed"] = spent
            linked = linked if spent <= MOST_ROWS and len(linked) else None
        while len(kept) >= KEPT:
            kept.pop(next(iter(kept)))
        kept[step] = None if linked is None else network(linked)
    return kept[step]
