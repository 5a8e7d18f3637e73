"""What is true of each request and step of an episode. Made from the lab's truth; nobody who answers sees it.

A request is struck where it lies in a window of a strike that moved what it is judged by, and lost a twentieth of its time to it:
by the delays that the injector tells, or, where it tells none, by what it took over its twins of healthy windows; where these are
not known either, as every ordinary request of the window. A step is struck where a delay lies in it; what is done to the front
end is in no step. What is neither surely struck nor surely healthy is not judged.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teller_core.data.capture import Capture
from teller_core.data.steps import Role
from teller_core.data.table import UNKNOWN, Int32, Int64
from teller_core.data.trace import Layer
from teller_core.lab.benchmark.chosen import Chosen, overlap
from teller_core.lab.benchmark.cut import Inside, span_of_steps
from teller_core.lab.outside import Delay

NOT_JUDGED, HEALTHY, STRUCK, HARD_NEGATIVE = -1, 0, 1, 2
TOUCHED = 0.05
"""Of a request's time: what it must lose at least."""
BY_PROMPTS = "scheduler.prefill_interference"
"""Its injector tells no delays: its steps are those that compute a prompt of its own requests."""
OF_STEPS = frozenset({"worker", "engine", "machine", "link"})
"""Roles of what a step waits for."""
EVERY_PACKET = frozenset({"delay_ms", "rate_mbit"})
"""Knobs of a link that hold back each packet: no step of the window goes without. A loss meets some, and nobody tells which."""
OF_OPERATORS = frozenset({"host.slow_operator"})
OF_COLLECTIVES = frozenset({"comm.straggler_rank", "comm.degraded_link"})

Int8 = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Labels:
    """The truth of an episode's capture, by position.

    ``request`` int8: NOT_JUDGED, HEALTHY, STRUCK, or HARD_NEGATIVE (slow, and no fault); ``cause``: of the struck ones, else
    empty. ``step`` int8: NOT_JUDGED, HEALTHY or STRUCK. ``operators`` and ``ranks`` of each step: names of the operators or
    collectives at fault, the longest first, and positions in ``Capture.ranks`` of those at fault; empty where there is none or
    nobody knows. ``request_window``, ``step_window`` int32: which window of those that were chosen, -1 for none.
    """

    request: Int8
    cause: Sequence[str]
    step: Int8
    operators: Sequence[tuple[str, ...]]
    ranks: Sequence[tuple[int, ...]]
    request_window: Int32
    step_window: Int32


def labels_of(capture: Capture, chosen: Sequence[Chosen], lost: Mapping[str, int]) -> Labels:
    """The labels of ``capture``, which was cut to the windows ``chosen``. ``lost``: ns by name (see twins)."""
    request, cause, request_window = _requests(capture, chosen, lost)
    begin, end = span_of_steps(capture.steps)
    step = np.full(len(begin), NOT_JUDGED, dtype=np.int8)
    step_window = np.full(len(begin), -1, dtype=np.int32)
    operators: list[tuple[str, ...]] = [()] * len(begin)
    ranks: list[tuple[int, ...]] = [()] * len(begin)
    of_spans = any(one.strike is not None and one.strike.cause in (*OF_OPERATORS, *OF_COLLECTIVES) for one in chosen)
    took = [rank.tree.self_time() if of_spans and rank.tree is not None else None for rank in capture.ranks]
    for number, one in enumerate(chosen):
        own = np.flatnonzero(Inside([one.interval])(begin, end))
        step_window[own] = number
        step[own] = _steps(capture, one, own, begin, end)
        strike = one.strike
        if strike is None:
            continue
        for at in own[step[own] == STRUCK].tolist():
            operators[at] = _operators(capture, at, strike.cause or "", one.window.delays, took)
            ranks[at] = _ranks(capture, strike.rank)
    return Labels(request, cause, step, operators, ranks, request_window, step_window)


def _ranks(capture: Capture, number: int | None) -> tuple[int, ...]:
    """Positions of the processes that compute as the rank with this number."""
    return tuple(at for at, rank in enumerate(capture.ranks) if number is not None and rank.rank == number)


def _requests(capture: Capture, chosen: Sequence[Chosen], lost: Mapping[str, int]) -> tuple[Int8, list[str], Int32]:
    begin, end = capture.requests.begin(), capture.requests.end()
    own = {name: one for one in chosen for name in one.window.requests}
    number = {id(one): number for number, one in enumerate(chosen)}
    others = {name for one in chosen for name in one.window.others}
    lies = _lies_in(chosen, begin, end)
    label = np.full(len(begin), NOT_JUDGED, dtype=np.int8)
    window = np.full(len(begin), -1, dtype=np.int32)
    cause = [""] * len(begin)
    for at in range(len(begin)):
        name = _name(capture, at, own.keys() | others)
        one = own.get(name) if name else _alone(lies(at))
        if one is None:
            continue
        window[at] = number[id(one)]
        label[at] = _request(one, int(begin[at]), int(end[at]), lost.get(name))
        if label[at] == STRUCK and one.strike is not None:
            cause[at] = one.strike.cause or ""
    return label, cause, window


def _name(capture: Capture, at: int, known: Container[str]) -> str:
    """What the client called the request at position ``at``: engines put more around it. Empty where nobody says."""
    said = (capture.requests.client_id[at], *capture.requests.engine_id[at].split("-"))
    return next((name for name in said if name in known), "")


def _lies_in(chosen: Sequence[Chosen], begin: Int64, end: Int64) -> Callable[[int], list[Chosen]]:
    inside = [(one, Inside([one.interval])(begin, end)) for one in chosen]
    return lambda at: [one for one, here in inside if here[at]]


def _alone(found: Sequence[Chosen]) -> Chosen | None:
    """The window of a request without a name, where only ordinary ones were sent in it."""
    return found[0] if len(found) == 1 and not found[0].window.others else None


def _request(one: Chosen, begin: int, end: int, by_twins: int | None) -> int:
    strike = one.strike
    if strike is None:
        return HEALTHY
    if strike.rejected is not None:
        return NOT_JUDGED
    if strike.cause is None:
        return HARD_NEGATIVE
    if not one.tells and by_twins is None:
        return STRUCK
    lost = sum(overlap(delay, begin, end) for delay in one.window.delays) if one.tells else by_twins or 0
    return STRUCK if lost >= TOUCHED * (end - begin) else NOT_JUDGED


def _steps(capture: Capture, one: Chosen, own: Int64, begin: Int64, end: Int64) -> Int8:
    """The labels of the steps at the positions ``own``, all in the window of ``one``."""
    strike = one.strike
    if strike is None or (strike.cause is None and strike.rejected is None):
        return np.full(len(own), HEALTHY, dtype=np.int8)
    touched = np.zeros(len(own), dtype=np.bool_)
    if strike.rejected is None and strike.cause == BY_PROMPTS:
        touched = np.isin(own, _computing(capture, one.window.others))
    elif strike.rejected is None and strike.role == "link" and not EVERY_PACKET.isdisjoint(strike.knobs):
        touched[:] = True
    elif strike.rejected is None and one.tells and strike.role in OF_STEPS:
        low = _before(capture, begin, end) if strike.role == "engine" else _ran(capture, begin, end)
        touched = _meet(one.window.delays, low[own], end[own])
    return np.where(touched, STRUCK, NOT_JUDGED).astype(np.int8)


def _ran(capture: Capture, begin: Int64, end: Int64) -> Int64:
    """int64 ns: since when each step ran: a line alone tells its end, and how long it took."""
    took = capture.steps.elapsed
    return np.where((begin == end) & (took != UNKNOWN), end - np.maximum(took, 0), begin)


def _before(capture: Capture, begin: Int64, end: Int64) -> Int64:
    """int64 ns: since when the engine could decide on each step: the last end of another one before it was decided on."""
    steps = capture.steps
    since = begin.copy()
    for engine in np.unique(steps.engine).tolist():
        own = np.flatnonzero(steps.engine == engine)
        ended = np.sort(end[own])
        place = np.searchsorted(ended, begin[own], side="right") - 1
        since[own] = np.where(place >= 0, ended[np.maximum(place, 0)], begin[own])
    return since


def _meet(delays: Sequence[Delay], begin: Int64, end: Int64) -> npt.NDArray[np.bool_]:
    """bool: some delay that took anything overlaps it."""
    took = sorted((delay.start, delay.stop) for delay in delays if delay.delay > 0)
    start = np.array([delay[0] for delay in took], dtype=np.int64)
    latest = np.maximum.accumulate(np.array([delay[1] for delay in took], dtype=np.int64))
    before = np.searchsorted(start, end, side="left")
    return (before > 0) & (np.concatenate([np.full(1, UNKNOWN, dtype=np.int64), latest])[before] > begin)


def _computing(capture: Capture, names: Sequence[str]) -> Int64:
    """Positions of the steps that compute a prompt of the requests called ``names``."""
    known = set(names)
    theirs = [at for at in range(len(capture.requests.number)) if _name(capture, at, known)]
    rows = capture.participation
    return np.unique(rows.step[np.isin(rows.request, theirs) & (rows.role == Role.PREFILL)]).astype(np.int64)


def _operators(
    capture: Capture, step: int, cause: str, delays: Sequence[Delay], took: Sequence[Int64 | None]
) -> tuple[str, ...]:
    """Names of what is at fault in a profiled step, by their own time (``took``, a column a rank), the longest first."""
    if cause not in OF_OPERATORS | OF_COLLECTIVES:
        return ()
    total: dict[str, int] = {}
    work = capture.work
    for at in np.flatnonzero((work.step == step) & (work.row >= 0)).tolist():
        rank, own = capture.ranks[int(work.rank[at])], took[int(work.rank[at])]
        if rank.tree is None or own is None:
            continue
        trace, low, high = rank.tree.trace, int(work.row[at]), int(work.row_stop[at])
        layer = trace.layer[low:high]
        if cause in OF_COLLECTIVES:
            rows = np.flatnonzero(layer == Layer.COMMUNICATION) + low
        else:
            start, end = trace.start[low:high] + rank.shift, trace.end[low:high] + rank.shift
            done = Inside([(delay.start, delay.stop) for delay in delays])(start, end)
            rows = np.flatnonzero(done & (layer == Layer.OPERATOR)) + low
        for row in rows.tolist():
            name = trace.names[int(trace.name[row])]
            total[name] = total.get(name, 0) + int(own[row])
    return tuple(sorted(total, key=lambda name: (-total[name], name)))
