"""When the moments of a request were, from the spans of its legs: what durations place, and what does not fit.

Durations on the front end's clock are placed from its receipt. Those on the engine's clock hang together, but where they
lie is only bounded: the first token leaves the front end after it was made, the last before the front end is done, and the
engine gets the request after the front end did. They are placed as late as these allow, as tokens are sent on at once.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from teller_core.data.records import Interval, RequestSpan, known
from teller_core.data.table import UNKNOWN

ROUNDING_NS = 1_000
"""Durations are differences of float64 seconds since 1970, which are 238 ns apart: three of them may miss by this much."""
STAMPS_NS = 1_000_000
"""Two stamps of one moment, taken one after another by one process, may differ by this much."""
ORDER = ("received", "dispatched", "queued", "scheduled", "engine_first", "engine_last")
"""Moments that follow one another, whoever tells them. The front end's own come after the engine's."""
ENGINE = ("queued", "scheduled", "engine_first", "engine_last")
SLACK = 50_000_000
"""ns by which a leg may begin after what it calls, by clocks of two machines, before it is said not to fit."""

Moments = dict[str, int]


class LegTimes(NamedTuple):
    """Unix ns, UNKNOWN where the legs do not tell. ``sent`` and ``ended`` are of the outermost gateway or caller,
    ``client_first`` what a caller measured; ``transfer_from`` to ``transfer_until``: KV moved from one engine to another.
    """

    sent: int = UNKNOWN
    received: int = UNKNOWN
    queued: int = UNKNOWN
    scheduled: int = UNKNOWN
    first_token: int = UNKNOWN
    last_token: int = UNKNOWN
    finished: int = UNKNOWN
    client_first: int = UNKNOWN
    ended: int = UNKNOWN
    transfer_from: int = UNKNOWN
    transfer_until: int = UNKNOWN


def leg_times(spans: Sequence[RequestSpan], problems: Counter[str]) -> LegTimes:
    """The moments of one request from its spans.

    Problems: ``span_durations_do_not_fit``: the durations of a span contradict each other or its ends; none of them is used.
    ``legs_out_of_order``: a gateway or caller has it later than whom it sent it to, or lets go of it earlier.
    """
    engines = sorted((span for span in spans if is_engine(span)), key=lambda span: (span.start, span.end))
    around = [span for span in spans if not is_engine(span)]
    if not engines:
        return _outer(around, LegTimes(), problems)
    placed = [_placed(span, problems) for span in engines]
    first, last = placed[0], placed[-1]
    own = [
        span
        for span in around
        if span.leg in ("server", "http") and span.service and span.service == engines[0].service
    ]
    times = LegTimes(
        received=min([first["received"], *(span.start for span in own)]),
        queued=first.get("queued", UNKNOWN),
        scheduled=first.get("scheduled", UNKNOWN),
        first_token=last.get("first_token", last.get("engine_first", UNKNOWN)),
        last_token=last.get("engine_last", UNKNOWN),
        finished=max([engines[-1].end, *(span.end for span in own)]),
    )
    return _outer([span for span in around if span not in own], _with_transfer(times, placed), problems)


def is_engine(span: RequestSpan) -> bool:
    """Whether the span is of a process that served the request."""
    return span.leg == "engine" and not span.proxy


def hands_over(early: RequestSpan, late: RequestSpan) -> bool:
    """Whether two spans of engines, in the order of their begin, are the prefill and the decode of one request."""
    if not early.trace_id or early.trace_id != late.trace_id or early.end > late.end + SLACK:
        return False
    named = "prefill" in f"{early.name} {early.service}".lower() and "decode" in f"{late.name} {late.service}".lower()
    one = [early.tokens[name] for name in _OUTPUT if name in early.tokens]
    related = early.request == late.request or (bool(early.parent) and early.parent == late.parent)
    return related and (named or (bool(one) and one[0] <= 1))


_OUTPUT = ("gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens")


def _with_transfer(times: LegTimes, placed: Sequence[Moments]) -> LegTimes:
    """KV moves from when the last engine but one is done until the last one may use it, unless somebody recorded it."""
    start = min((moments["transfer_from"] for moments in placed if "transfer_from" in moments), default=UNKNOWN)
    until = max((moments["transfer_until"] for moments in placed if "transfer_until" in moments), default=UNKNOWN)
    if len(placed) > 1:
        gave, took = placed[-2], placed[-1]
        start = start if known(start) else gave.get("engine_last", gave.get("finished", UNKNOWN))
        until = until if known(until) else took.get("scheduled", took.get("engine_first", UNKNOWN))
    if UNKNOWN in (start, until) or until < start:
        return times
    return times._replace(transfer_from=start, transfer_until=until)


def _outer(around: Sequence[RequestSpan], times: LegTimes, problems: Counter[str]) -> LegTimes:
    """``times`` with those of the longest leg around: from its receipt to its last byte."""
    if not around:
        return times
    outer = max(around, key=lambda span: span.end - span.start)
    start, end = outer.start, outer.end
    if known(times.received) and known(times.finished):
        low, high = times.finished - (end - start), times.received
        if outer.resolution > 1 and low <= high:  # its stamp is coarse, its length exact: it holds what it called
            start = min(max(start, low), high)
            end = start + outer.end - outer.start
        if start > times.received + SLACK or end < times.finished - SLACK:
            problems["legs_out_of_order"] += 1
            return times
        start, end = min(start, times.received), max(end, times.finished)
    firsts, passed = (
        [span.start + one.ns for span in around for one in span.intervals if one.end == moment]
        for moment in ("client_first", "received")
    )
    received = times.received if known(times.received) else max(passed, default=UNKNOWN)
    return times._replace(sent=start, received=received, ended=end, client_first=min(firsts, default=UNKNOWN))


def around_server(times: LegTimes, spans: Sequence[RequestSpan], received: int, finished: int) -> LegTimes:
    """``times`` where a proxy's stamps are coarser than a log's: its length is exact, and it holds what the server took from
    ``received`` to ``finished``. Where these do not place it, when it began is not known.
    """
    outer = max((span for span in spans if span.proxy), key=lambda span: span.end - span.start, default=None)
    if outer is None or outer.resolution <= STAMPS_NS or times.sent != outer.start or not known(received):
        return times
    length = outer.end - outer.start
    low = finished - length if known(finished) else UNKNOWN
    if not known(low) or low > received:
        return times._replace(sent=UNKNOWN, ended=UNKNOWN)
    start = min(max(outer.start, low), received)
    return times._replace(sent=start, ended=start + length)


def _placed(span: RequestSpan, problems: Counter[str]) -> Moments:
    """The moments of one engine's span. ``received`` is always among them."""
    alone = {"received": span.start, "finished": span.end}
    moments = dict(span.points)
    moments.setdefault("received", span.start)
    moments["received"] = max(moments["received"], span.start)
    slack = STAMPS_NS if span.points else ROUNDING_NS
    fits = _spread(moments, [one for one in span.intervals if one.clock != "engine"], slack)
    moments.setdefault("finished", span.end)
    fits = fits and _anchor(moments, [one for one in span.intervals if one.clock == "engine"], slack)
    if fits and _in_order(moments, span.end, slack):
        return moments
    problems["span_durations_do_not_fit"] += 1
    return alone


def _spread(moments: Moments, intervals: Iterable[Interval], slack: int) -> bool:
    """Put into ``moments`` what the intervals place from those that are there; False where they differ by over ``slack`` ns."""
    waiting = deque(intervals)
    idle = 0
    while waiting and idle <= len(waiting):
        one = waiting.popleft()
        if one.begin in moments and one.end in moments:
            longer = one.ns - (moments[one.end] - moments[one.begin])
            if longer > slack or (-longer > slack and one.end != "finished"):  # a front end may be done later
                return False
        elif one.begin in moments:
            moments[one.end] = moments[one.begin] + one.ns
        elif one.end in moments:
            moments[one.begin] = moments[one.end] - one.ns
        else:
            waiting.append(one)
            idle += 1
            continue
        idle = 0
    return True


def _anchor(moments: Moments, intervals: Sequence[Interval], slack: int) -> bool:
    """Place the engine's durations; False where no place for them fits."""
    if not intervals or any(name in moments for name in ENGINE):
        return _spread(moments, intervals, slack)
    chain: Moments = {intervals[0].begin: 0}
    if not _spread(chain, intervals, slack):
        return False
    limits = (("engine_first", "first_token"), ("engine_last", "finished"))
    late = [moments[front] - chain[own] for own, front in limits if own in chain and front in moments]
    if not late:
        return True
    offset, begin = min(late), min(chain.values())
    if begin + offset < moments["received"] - ROUNDING_NS:
        return False
    received = moments["received"]
    moments.update({name: max(at + offset, received) for name, at in chain.items()})
    return True


def _in_order(moments: Mapping[str, int], end: int, slack: int) -> bool:
    times = [moments[name] for name in ORDER if name in moments]
    ordered = all(early <= late + slack for early, late in pairwise(times))
    last = max((moments[name] for name in ("first_token", "finished") if name in moments), default=end)
    return ordered and last <= end + slack
