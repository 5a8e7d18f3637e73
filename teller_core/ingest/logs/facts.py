"""What known log lines say about steps and requests, as records."""

from collections.abc import Callable
from typing import NamedTuple

from teller_core.data.records import Iteration, Pause, Process, RequestFact
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_MS, NS_PER_S
from teller_core.ingest.found import Found
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.logs.processes import engine_of
from teller_core.ingest.logs.values import Fields, duration, fraction, number

FINE = NS_PER_MS
"""A pause is placed in time only where the line's clock knows milliseconds."""


class Line(NamedTuple):
    """The line that said it."""

    process: Process
    time: int
    resolution: int
    tag: str
    position: int
    """In ``Found.lines``."""
    number: int
    """In the file, from 1."""


def request_fact(
    found: Found, line: Line, request: str, kind: str, *, value: int | None = None, time: int | None = None
) -> None:
    """Add one thing said about a request, at the line's time or at one that the line tells."""
    at = line.time if time is None else time
    found.requests.append(RequestFact(line.process, at, line.resolution, request, kind, value, line.position))


def _iteration(
    fields: Fields,
    line: Line,
    *,
    context: tuple[int, int],
    generation: tuple[int, int],
    engine: int = 0,
    elapsed: int | None = None,
    kv_usage: float | None = None,
) -> Iteration:
    """A step that a line counts. ``context`` and ``generation``: requests and tokens."""
    return Iteration(
        line.process,
        line.time,
        line.resolution,
        engine,
        number(fields, "step"),
        *context,
        *generation,
        elapsed,
        kv_usage,
        line.position,
    )


def vllm_iteration(found: Found, fields: Fields, line: Line) -> None:
    """A line a step, written by the front end when it has got the step's outputs."""
    context_requests, context_tokens = number(fields, "context_requests"), number(fields, "context_tokens")
    generation_requests, generation_tokens = number(fields, "generation_requests"), number(fields, "generation_tokens")
    if context_requests is None or context_tokens is None or generation_requests is None or generation_tokens is None:
        found.problems["cut_iteration_line"] += 1
        return
    named = number(fields, "engine")
    found.iterations.append(
        _iteration(
            fields,
            line,
            context=(context_requests, context_tokens),
            generation=(generation_requests, generation_tokens),
            engine=min(engine_of(line.tag) if named is None else named, 1 << 20),
            elapsed=duration(fields.get("elapsed_ms"), NS_PER_MS),
            kv_usage=fraction(fields.get("kv_percent"), 100),
        )
    )


def sglang_prefill(found: Found, fields: Fields, line: Line) -> None:
    """One line a prefill batch: written when the scheduler has formed it, since 0.5.9 when the batch has run.

    Only then is it known whether a graph was replayed, so a line that says so was written afterwards.
    """
    requests, tokens = number(fields, "new_requests"), number(fields, "new_tokens")
    if requests is None or tokens is None:
        return
    found.iterations.append(
        _iteration(
            fields,
            line,
            context=(requests, tokens),
            generation=(0, 0),
            engine=engine_of(line.tag),
            kv_usage=fraction(fields.get("usage"), 1),
        )._replace(before="graph" not in fields)
    )


def trtllm_iteration(found: Found, fields: Fields, line: Line) -> None:
    """A line a step from each rank that logs: the first rank's tells the step.

    What the engine calls generation tokens counts the padding of a graph; requests are what is left of those scheduled.
    """
    if number(fields, "rank") not in (None, 0):
        return
    requests, tokens = number(fields, "context_requests"), number(fields, "context_tokens")
    scheduled, generation = number(fields, "scheduled"), number(fields, "generation_tokens")
    if requests is None or tokens is None or scheduled is None or generation is None:
        found.problems["cut_iteration_line"] += 1
        return
    elapsed = duration(fields.get("elapsed_s"), NS_PER_S)
    elapsed = duration(fields.get("host_ms"), NS_PER_MS) if elapsed is None else elapsed
    found.iterations.append(
        _iteration(
            fields,
            line,
            context=(requests, tokens),
            generation=(max(scheduled - requests, 0), generation),
            elapsed=elapsed,
            kv_usage=fraction(fields.get("kv_usage"), 1),
        )
    )


def triton_iteration(found: Found, fields: Fields, line: Line) -> None:
    """The batch manager's statistics of a step: each generation request is given one token."""
    requests, tokens = number(fields, "context_requests"), number(fields, "context_tokens")
    generation = number(fields, "generation_requests")
    if requests is None or tokens is None or generation is None:
        found.problems["cut_iteration_line"] += 1
        return
    most, free = number(fields, "max_blocks"), number(fields, "free_blocks")
    usage = (most - free) / most if most and free is not None and free <= most else None
    found.iterations.append(
        _iteration(fields, line, context=(requests, tokens), generation=(generation, generation), kv_usage=usage)
    )


def fact(kind: str) -> Callable[[Found, Fields, Line], None]:
    """What adds a fact of ``kind`` about the request that a line names."""

    def tell_fact(found: Found, fields: Fields, line: Line) -> None:
        if request := text_of(fields.get("request")):
            request_fact(found, line, request, kind)

    return tell_fact


def sglang_times(found: Found, fields: Fields, line: Line) -> None:
    """The scheduler's own times of a request, written when it is done."""
    finished(found, fields, line)
    known: dict[str, int] = {}
    for name in ("queue_ms", "forward_ms", "bootstrap_ms", "transfer_ms"):
        if name in fields:
            value = duration(fields[name], NS_PER_MS)
            if value is None:
                found.problems["implausible_duration"] += 1
            else:
                known[name] = value
                counted(found, fields, line, "sglang." + name.removesuffix("_ms") + "_duration", value)
    if "queue_ms" in known and "forward_ms" in known:
        counted(found, fields, line, "served", sum(known.values()))


def sglang_finished(found: Found, fields: Fields, line: Line) -> None:
    """The front end's word on a request, with its time from end to end."""
    if fields["kind"] != "GenerateReqInput":
        return
    finished(found, fields, line)
    value = duration(fields.get("e2e_s"), NS_PER_S)
    if value is not None:
        counted(found, fields, line, "sglang.e2e_latency", value)
        counted(found, fields, line, "served", value)


def finished(found: Found, fields: Fields, line: Line) -> None:
    """The end of a request, with its tokens."""
    fact("finished")(found, fields, line)
    tokens(found, fields, line)


def tokens(found: Found, fields: Fields, line: Line) -> None:
    """The numbers of a request's tokens, as far as the line has them."""
    for kind, name in (
        ("prompt_tokens", "input_tokens"),
        ("prompt_tokens",) * 2,
        ("output_tokens",) * 2,
        ("cached_tokens",) * 2,
    ):
        if (value := number(fields, name)) is not None:
            counted(found, fields, line, kind, value)


def counted(found: Found, fields: Fields, line: Line, kind: str, value: int) -> None:
    """A number that the line says about the request it names."""
    if request := text_of(fields.get("request")):
        request_fact(found, line, request, kind, value=value)


def collection(found: Found, fields: Fields, line: Line) -> None:
    """The line is written when the collection ends."""
    dur = duration(fields["ms"], NS_PER_MS)
    if dur is not None and line.time != UNKNOWN and 0 <= line.resolution <= FINE:
        found.pauses.append(Pause(line.process, 0, line.time - dur, dur, "gc", number(fields, "generation")))


TELLERS: dict[str, Callable[[Found, Fields, Line], None]] = {
    "vllm.iteration": vllm_iteration,
    "vllm.received": fact("received"),
    "vllm.added": fact("added"),
    "vllm.finished": fact("finished"),
    "vllm.aborted": fact("aborted"),
    "vllm.aborted.v1": fact("aborted"),
    "vllm.failed": fact("aborted"),
    "vllm.preempted": fact("preempted"),
    "vllm.response": fact("finished"),
    "sglang.prefill": sglang_prefill,
    "sglang.received": fact("received"),
    "sglang.finished": sglang_finished,
    "sglang.request_times": sglang_times,
    "sglang.aborted": fact("aborted"),
    "trtllm.iteration": trtllm_iteration,
    "triton.iteration": triton_iteration,
    "lmcache.lookup": tokens,
    "gc": collection,
}
"""By the rule that knows the line: those that need nothing but the line."""
