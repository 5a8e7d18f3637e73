"""What known log lines say about steps and requests, as records."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from teller_core.data.records import Iteration, Pause, Process, RequestFact
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_MS, NS_PER_S, few, scaled
from teller_core.ingest.found import Found
from teller_core.ingest.jsonl import text_of

LONGEST_REQUEST = 7 * 86400 * NS_PER_S
"""A duration beyond a week is an unset start, not a request."""
FINE = NS_PER_MS
"""A pause is placed in time only where the line's clock knows milliseconds."""

Fields = Mapping[str, str]


class Line(NamedTuple):
    """The line that said it."""

    process: Process
    time: int
    resolution: int
    engine: int
    position: int


def tell(found: Found, rule: str, fields: Fields, line: Line) -> None:
    """Add to ``found`` what a line known as ``rule`` says."""
    teller = _TELLERS.get(rule)
    if teller is not None:
        teller(found, fields, line)


def _vllm_iteration(found: Found, fields: Fields, line: Line) -> None:
    numbers = [_number(fields, name) for name in ("context_requests", "context_tokens")]
    numbers += [_number(fields, name) for name in ("generation_requests", "generation_tokens")]
    context_requests, context_tokens, generation_requests, generation_tokens = numbers
    if context_requests is None or context_tokens is None or generation_requests is None or generation_tokens is None:
        found.problems["cut_iteration_line"] += 1
        return
    kv = _fraction(fields.get("kv_percent"), 100)
    named = _number(fields, "engine")
    engine = line.engine if named is None else named
    found.iterations.append(
        Iteration(
            line.process,
            line.time,
            line.resolution,
            min(engine, 1 << 20),
            _number(fields, "step"),
            context_requests,
            context_tokens,
            generation_requests,
            generation_tokens,
            _duration(fields.get("elapsed_ms"), NS_PER_MS),
            kv,
            line.position,
        )
    )


def _sglang_prefill(found: Found, fields: Fields, line: Line) -> None:
    """One line a prefill batch: written when the scheduler has formed it, since 0.5.9 when the batch has run.

    Only then is it known whether a graph was replayed, so a line that says so was written afterwards.
    """
    requests, tokens = _number(fields, "new_requests"), _number(fields, "new_tokens")
    if requests is None or tokens is None:
        return
    found.iterations.append(
        Iteration(
            line.process,
            line.time,
            line.resolution,
            line.engine,
            _number(fields, "step"),
            requests,
            tokens,
            0,
            0,
            None,
            _fraction(fields.get("usage"), 1),
            line.position,
            before="graph" not in fields,
        )
    )


def _fact(kind: str) -> Callable[[Found, Fields, Line], None]:
    def tell_fact(found: Found, fields: Fields, line: Line) -> None:
        if request := text_of(fields.get("request")):
            found.requests.append(
                RequestFact(line.process, line.time, line.resolution, request, kind, None, line.position)
            )

    return tell_fact


def _sglang_times(found: Found, fields: Fields, line: Line) -> None:
    _finished(found, fields, line)
    for name in ("queue_ms", "forward_ms", "bootstrap_ms", "transfer_ms"):
        if name in fields:
            value = _duration(fields[name], NS_PER_MS)
            if value is None:
                found.problems["implausible_duration"] += 1
            else:
                _value(found, fields, line, "sglang." + name.removesuffix("_ms") + "_duration", value)


def _sglang_finished(found: Found, fields: Fields, line: Line) -> None:
    if fields["kind"] != "GenerateReqInput":
        return
    _finished(found, fields, line)
    if (value := _duration(fields.get("e2e_s"), NS_PER_S)) is not None:
        _value(found, fields, line, "sglang.e2e_latency", value)


def _finished(found: Found, fields: Fields, line: Line) -> None:
    _fact("finished")(found, fields, line)
    for kind, name in (
        ("prompt_tokens", "input_tokens"),
        ("prompt_tokens",) * 2,
        ("output_tokens",) * 2,
        ("cached_tokens",) * 2,
    ):
        if (number := _number(fields, name)) is not None:
            _value(found, fields, line, kind, number)


def _value(found: Found, fields: Fields, line: Line, kind: str, value: int) -> None:
    if request := text_of(fields.get("request")):
        found.requests.append(
            RequestFact(line.process, line.time, line.resolution, request, kind, value, line.position)
        )


def _collection(found: Found, fields: Fields, line: Line) -> None:
    """The line is written when the collection ends."""
    dur = _duration(fields["ms"], NS_PER_MS)
    if dur is not None and line.time != UNKNOWN and 0 <= line.resolution <= FINE:
        found.pauses.append(Pause(line.process, 0, line.time - dur, dur, "gc", _number(fields, "generation")))


def _number(fields: Fields, name: str) -> int | None:
    text = fields.get(name, "")
    return few(int(text)) if len(text) < 10 and text.isascii() and text.isdigit() else None


def _duration(text: str | None, factor: int) -> int | None:
    value = scaled(text, factor)
    return value if value is not None and 0 <= value <= LONGEST_REQUEST else None


def _fraction(text: str | None, whole: int) -> float | None:
    value = scaled(text, 10**6)
    return value / (whole * 10**6) if value is not None and 0 <= value <= whole * 10**6 else None


_TELLERS: dict[str, Callable[[Found, Fields, Line], None]] = {
    "vllm.iteration": _vllm_iteration,
    "vllm.received": _fact("received"),
    "vllm.added": _fact("added"),
    "vllm.finished": _fact("finished"),
    "vllm.aborted": _fact("aborted"),
    "vllm.aborted.v1": _fact("aborted"),
    "vllm.failed": _fact("aborted"),
    "vllm.preempted": _fact("preempted"),
    "vllm.response": _fact("finished"),
    "sglang.prefill": _sglang_prefill,
    "sglang.received": _fact("received"),
    "sglang.finished": _sglang_finished,
    "sglang.request_times": _sglang_times,
    "sglang.aborted": _fact("aborted"),
    "router.routed": _fact("routed"),
    "gc": _collection,
}
