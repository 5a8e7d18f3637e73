"""What the engine's own counters tell and other files tell again: one step, one request, from both sources.

vLLM hands a stat logger what it also writes to its log (a line a step) and to OpenTelemetry (a span a request). The
counters have the finer times; the line is text that a reader may want to see, the span has the trace that it belongs to.
"""

from collections import defaultdict, deque
from collections.abc import Sequence

from teller_core.data.records import Iteration, RequestSpan

SAME_NS = 1_000_000
"""Two records of one request's arrival differ by the rounding of floats, and no two requests of one id come so close."""


def iterations_joined(iterations: Sequence[Iteration]) -> list[Iteration]:
    """``iterations`` where each that has no line takes that of a line which counts the same step, which is then left out.

    Lines of another process are of another step: a server that was started again counts from the start. One whose line
    names no process is of any.
    """
    lines: defaultdict[object, deque[Iteration]] = defaultdict(deque)
    for one in iterations:
        if one.line is not None:
            lines[_step(one)].append(one)
    joined: list[Iteration] = []
    used: set[int] = set()
    for one in iterations:
        if one.line is not None:
            continue
        twin = _twin(lines.get(_step(one)), one)
        if twin is not None:
            used.add(id(twin))
        joined.append(one if twin is None else one._replace(line=twin.line))
    return (
        [one for one in iterations if one.line is not None and id(one) not in used] + joined
        if joined
        else [*iterations]
    )


def _step(one: Iteration) -> object:
    counts = one.context_requests, one.context_tokens, one.generation_requests, one.generation_tokens
    return one.process.host, one.engine, one.number, counts


def _twin(lines: deque[Iteration] | None, one: Iteration) -> Iteration | None:
    if not lines or one.number is None:
        return None
    found = next((line for line in lines if line.process.pid in (one.process.pid, 0, -1)), None)
    if found is not None:
        lines.remove(found)
    return found


def spans_joined(spans: Sequence[RequestSpan], producer: str) -> list[RequestSpan]:
    """``spans`` without those of ``producer`` that another engine's span tells as well, which takes their tokens and what
    it lacks of their intervals.
    """
    own = [span for span in spans if span.producer == producer]
    if not own or len(own) == len(spans):
        return [*spans]
    waiting: defaultdict[str, list[RequestSpan]] = defaultdict(list)
    for span in own:
        waiting[span.request].append(span)
    kept: list[RequestSpan] = []
    for span in spans:
        if span.producer == producer:
            continue
        twin = _same(waiting.get(span.request, []), span) if span.leg == "engine" else None
        kept.append(span if twin is None else _both(span, twin))
        if twin is not None:
            waiting[span.request].remove(twin)
    left = {id(span) for own_left in waiting.values() for span in own_left}
    return kept + [span for span in own if id(span) in left]


def _same(candidates: Sequence[RequestSpan], span: RequestSpan) -> RequestSpan | None:
    near = [one for one in candidates if span.request and abs(one.start - span.start) <= SAME_NS]
    return min(near, key=lambda one: abs(one.end - span.end), default=None)


def _both(span: RequestSpan, twin: RequestSpan) -> RequestSpan:
    told = {(one.begin, one.end) for one in span.intervals}
    more = [one for one in twin.intervals if (one.begin, one.end) not in told]
    return span._replace(
        durations={**twin.durations, **span.durations},
        tokens={**twin.tokens, **span.tokens},
        intervals=[*span.intervals, *more],
        error=span.error or twin.error,
    )
