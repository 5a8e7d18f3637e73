"""What the processes that receive and answer did while a request was with them: before its engine had it and after its steps.

What such a zone took beyond what it takes of most requests is charged once, in this order: collections; waiting for a processor
or being held back by a quota; standing still; and, where its threads ran, the work on this request or on others.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import STEP_THREAD
from teller_core.data.table import UNKNOWN, Int64, Mask
from teller_core.judge.intervals import Spans, overlap, union
from teller_core.judge.levels import PROMPT, front_level, level, near
from teller_core.judge.life import SECOND, Life
from teller_core.judge.prepare import EAGER, Case, Counter, counter, quantile
from teller_core.judge.robust import weighted

MOSTLY = 0.4
"""Share of a zone in which something must have gone on for that to be what it was long for."""
LEAST_PEERS = 4
"""Fewer requests than this have no median to be compared with."""
MUCH = 2.5
"""Times what a zone takes of most requests: up to twice as long is had where several come at once, and all is well."""
WAYS = {
    "way": ("client_start", "received"),
    "in": ("received", "handed"),
    "out": ("last_step", "finished"),
    "back": ("finished", "client_end"),
}
"""Zones, each between two times of a request: on the way to the front end, in it until its prompt was tokens or, where nobody
says when, until the engine had it, in it after its last step, and on the way back.
"""


class Took(NamedTuple):
    """What requests took between two times: int64 ns a request, UNKNOWN where it is not known; and what it should have been: the
    median, and more where its prompt is longer than most and that is what takes the time.
    """

    ns: Int64
    usual: Int64


@dataclass(frozen=True)
class Zone:
    """int ns: ``whole``, ``over`` (beyond most requests) and its charges ``collection``, ``starved``, ``stood``, ``worked``,
    ``rest``. ``worked``: its threads ran meanwhile; None where nobody sampled them.
    """

    low: int
    high: int
    whole: int = 0
    over: int = 0
    collection: int = 0
    starved: int = 0
    stood: int = 0
    worked: int | None = None
    rest: int = 0


NOWHERE = Zone(UNKNOWN, UNKNOWN)


def zone(case: Case, life: Life, way: str, until: int = UNKNOWN) -> Zone:
    """One of WAYS for a request. ``until``: where it ends earlier than the records say."""
    took = _peers(case, way)
    low, high = (_moment(case, life, name) for name in WAYS[way])
    if UNKNOWN in (low, high) or int(took.ns[life.request]) == UNKNOWN:
        return NOWHERE
    cut = high if until == UNKNOWN else max(min(high, until), low)
    over = int(took.ns[life.request]) - int(took.usual[life.request]) - (high - cut)
    if over <= 0:
        return Zone(low, cut, cut - low)
    return _charged(case, low, cut, over, eager=extra(case, life.begin, life.end) > 0)


def handed(case: Case, life: Life) -> int:
    """ns: the earliest time at which the front end may have been done with it.

    An engine takes new requests in between two steps. One that it took in there may have lain before it since the last step
    began, if that was one of several in a row; one that it took in inside a step, by the front end's word, did not. Of a step
    that a line times nobody knows whether it was over: its line is written some time after its end.
    """
    engine = life.engine
    if engine is None or not len(engine.step):
        return life.queued
    last, steps = int(np.searchsorted(engine.begin, life.queued, "right")) - 1, case.capture.steps
    if last < 0 or last + 1 >= len(engine.step):
        return life.queued
    by_line = int(steps.elapsed[int(engine.step[last])]) != UNKNOWN
    if int(engine.stop_reach[last]) > life.queued and not by_line:
        return life.queued
    after = int(engine.step[last + 1])
    if int(steps.generation_requests[after]) == 0:  # it waited for requests, and takes one at once
        return life.queued
    tokenized = int(case.capture.requests.tokenized[life.request])
    decided = int(steps.scheduled[int(engine.step[last])])  # a worker may begin on it late
    since = int(engine.begin[last]) if decided == UNKNOWN else min(decided, int(engine.begin[last]))
    return max(life.received, min(since, life.queued), min(tokenized, life.queued))


def usual(case: Case, request: int, way: str) -> int:
    """ns: what a request should spend in a zone."""
    return int(_peers(case, way).usual[request])


def _peers(case: Case, way: str) -> Took:
    return case.once(f"took {way}", lambda case: _took(case, way))


def lasted(case: Case, request: int, way: str) -> bool:
    """Whether a request spent MUCH longer in a zone than it should."""
    took = _peers(case, way)
    return int(took.ns[request]) >= MUCH * int(took.usual[request]) > 0


def extra(case: Case, low: int, high: int) -> int:
    """ns that the front end's threads ran beyond what they usually do for as many tokens, where that is much more: who has more
    to do also waits longer for a processor, and that is not what is short. 0 where nobody sampled them.
    """
    ran = None if UNKNOWN in (low, high) else _grown(case, "run_ns", low, high)
    if ran is None:
        return 0
    made = case.once("tokens made", _made)
    tokens = np.diff(made.before(np.array([low, high])))[0]
    usual = case.once("front end a token", _each_token) * float(tokens)
    return int(ran - usual) if ran >= EAGER * usual else 0


class _Made(NamedTuple):
    """When steps ended, int64 ns ascending, and how many tokens were made until then, each included."""

    time: Int64
    total: Int64

    def before(self, time: Int64) -> Int64:
        """int64: tokens made until each time."""
        return np.append(0, self.total)[np.searchsorted(self.time, time, "right")]


def _made(case: Case) -> _Made:
    steps = case.capture.steps
    known = np.flatnonzero(case.stop != UNKNOWN)
    order = known[np.argsort(case.stop[known], kind="stable")]
    tokens = steps.generation_requests[order].clip(0).astype(np.int64) + steps.context_requests[order].clip(0)
    return _Made(case.stop[order], np.cumsum(tokens))


def _each_token(case: Case) -> float:
    """ns that the front end's threads usually run for a token, by the readings between which tokens were made."""
    found = case.once("front counters", _counters)["run_ns"]
    longest = max((one for one, sign in found if sign > 0), key=lambda one: len(one.start))
    start, stop, made = longest.start, longest.stop, case.once("tokens made", _made)
    tokens = (made.before(stop) - made.before(start)).astype(np.float64)
    ran = sum(one.growth(start, stop) * sign for one, sign in found)
    some = tokens > 0
    if not some.any():
        return 0.0
    return weighted(np.asarray(ran)[some].clip(0) / tokens[some], tokens[some], 0.5)


def _charged(case: Case, low: int, high: int, over: int, *, eager: bool) -> Zone:
    collection = min(over, overlap(case.front_pauses["gc"], low, high))
    left = over - collection
    ran, waited, held = (
        _grown(case, name, low, high) for name in ("run_ns", "run_queue_wait_ns", "cgroup_throttled_us")
    )
    busy = eager or (ran is not None and max(ran, _ran_at_most(case, low, high)) >= MOSTLY * (high - low))
    short = max(waited or 0, 1000 * (held or 0))
    starved = left if 1000 * (held or 0) >= MOSTLY * left or (short >= MOSTLY * left and not busy) else 0
    still = case.front_pauses["thread_lag"] if ran is None else case.once("front stood still", _still)
    late = 0 if busy else overlap(still, low, high)
    stood = left - starved if late >= MOSTLY * (left - starved) else min(late, left - starved)
    rest = left - starved - stood
    return Zone(
        low, high, high - low, over, collection, starved, stood, None if ran is None else rest if busy else 0, rest
    )


def _still(case: Case) -> Spans:
    """When a thread or an event loop of the front end ran late."""
    pauses, lag = case.capture.pauses, case.front_pauses["thread_lag"]
    loop = np.array([row for row, kind in enumerate(pauses.kind) if kind == "loop_lag"], np.int64)
    begin, stop = pauses.start[loop], pauses.start[loop] + pauses.dur[loop]
    return union(np.concatenate([lag.start, begin]), np.concatenate([lag.stop, stop]))


def others_in(case: Case, request: int) -> Spans:
    """When the front end had other requests that it had not yet handed to an engine."""
    table = case.capture.requests
    known = (table.received != UNKNOWN) & (table.queued != UNKNOWN) & (table.queued > table.received)
    known[request] = False
    return union(table.received[known], _handed(case)[known])


def others_during(case: Case, request: int, low: int, high: int) -> int:
    """ns in which the front end had others."""
    return 0 if UNKNOWN in (low, high) else overlap(others_in(case, request), low, high)


def _grown(case: Case, name: str, low: int, high: int) -> float | None:
    """How much a counter of the front end's processes grew; None where nobody sampled it. What they wait is beyond the calm."""
    found = case.once("front counters", _counters).get(name)
    if found is None or high <= low:
        return None
    grown = float(sum(one.grown(low, high) * sign for one, sign in found))
    calm = sum(one.calm * sign for one, sign in found) if name == "run_queue_wait_ns" else 0.0
    return max(grown - calm * (high - low) / 1e9, 0.0)


def _ran_at_most(case: Case, low: int, high: int) -> float:
    """ns that the front end's threads may have run in ``[low, high)`` beyond what they usually run: readings lie a tenth of a
    second apart, and what was done for one request is a part of that.
    """
    ran, usual = 0.0, 0.0
    found = case.once("front counters", _counters)["run_ns"]
    for (one, sign), rate in zip(found, case.once("usual runs of the front end", _usual_runs), strict=True):
        first, last = int(np.searchsorted(one.stop, low, "right")), int(np.searchsorted(one.start, high, "left"))
        ran += sign * float(one.delta[first:last].sum())
        usual += sign * rate * float((one.stop[first:last] - one.start[first:last]).sum()) / 1e9
    return min(max(ran - usual, 0.0), float(high - low))


def _usual_runs(case: Case) -> list[float]:
    """ns a second that each counter of the front end's running grows by in the intervals of half of the steps, at most."""
    found = case.once("front counters", _counters)["run_ns"]
    return [quantile(one.rate, 0.5, one.start, one.stop, case.engines) for one, _ in found]


def _counters(case: Case) -> dict[str, list[tuple[Counter, int]]]:
    """By name: counters to be added, or, with -1, subtracted: where one process does everything, all but its steps' thread."""
    samples = case.capture.samples
    rows: dict[tuple[str, str], list[int]] = {}
    for row, (name, process) in enumerate(zip(samples.name, samples.process, strict=True)):
        if process and (process in case.path) != case.apart:
            rows.setdefault((name, process), []).append(row)
    found: dict[str, list[tuple[Counter, int]]] = {}
    told = {process for name, process in rows if name.startswith(STEP_THREAD)}
    for (name, process), mine in rows.items():
        if not case.apart and process not in told:
            continue  # nothing tells its steps from the rest
        sign = -1 if name.startswith(STEP_THREAD) else 1
        one = counter(case.capture, np.array(mine), case.engines)
        found.setdefault(name.removeprefix(STEP_THREAD), []).append((one, sign))
    return found


def _moment(case: Case, life: Life, name: str) -> int:
    if name == "last_step":
        return life.last
    return int(_handed(case)[life.request] if name == "handed" else getattr(case.capture.requests, name)[life.request])


def _handed(case: Case) -> Int64:
    table = case.capture.requests
    return np.where(table.tokenized != UNKNOWN, table.tokenized, table.queued)


def _last_steps(case: Case) -> Int64:
    """int64 ns a request: when the last of its steps ended, UNKNOWN where none is known."""
    part = case.capture.participation
    last = np.full(len(case.starts), UNKNOWN, np.int64)
    np.maximum.at(last, part.request, case.stop[part.step])
    return last


def _took(case: Case, way: str) -> Took:
    table = case.capture.requests
    low, high, known = _timed(case, way)
    if known.sum() < LEAST_PEERS:
        return Took(np.full(len(known), UNKNOWN), np.zeros(len(known), np.int64))
    most = near(case.assessment, front_level(way), float(np.median((high - low)[known])))
    took, middle = np.where(known, high - low, UNKNOWN), np.full(len(known), int(most))
    prompt = table.prompt_tokens.astype(np.float64)
    if way == "in" and (prompt[known] > 0).all():
        usual = level(case.assessment, PROMPT, float(np.median(prompt[known])))
        middle = np.rint(middle * np.maximum(prompt / usual, 1.0)).astype(np.int64)
    return Took(took, middle)


def front_levels(case: Case) -> dict[str, float]:
    """What each zone takes of most requests here, and the median prompt, by name (see :mod:`levels`)."""
    found: dict[str, float] = {}
    for way in WAYS:
        low, high, known = _timed(case, way)
        if known.sum() >= LEAST_PEERS:
            found[front_level(way)] = float(np.median((high - low)[known]))
    prompt = case.capture.requests.prompt_tokens[_timed(case, "in")[2]]
    if front_level("in") in found and (prompt > 0).all():  # alone it would be set against another capture's zone
        found[PROMPT] = float(np.median(prompt))
    return found


def _timed(case: Case, way: str) -> tuple[Int64, Int64, Mask]:
    """Both times of a zone, ns a request, and of which requests both are known."""
    low, high = (_column(case, name) for name in WAYS[way])
    known = (low != UNKNOWN) & (high != UNKNOWN)
    return low, high, known & (low % SECOND != 0) & (high % SECOND != 0)  # whole seconds of a coarse log would be noise


def _column(case: Case, name: str) -> Int64:
    if name == "last_step":
        return case.once("last steps", _last_steps)
    return _handed(case) if name == "handed" else getattr(case.capture.requests, name)
