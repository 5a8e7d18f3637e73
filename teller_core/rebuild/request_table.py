"""The table of requests: all times and counts of each, from the caller, the front end, the engine and its steps.

A time whose clock is coarser than FINE_NS stands only where the request has no finer one: the stamps of a text log count
whole seconds. Where the caller did not see the tokens, those of the steps that made them stand in.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.records import Recording, known
from teller_core.data.steps import Requests, Steps, TokenTimes
from teller_core.data.table import UNKNOWN, Int64
from teller_core.rebuild.recorded import Part, Parts
from teller_core.rebuild.requests import Entry
from teller_core.rebuild.step_table import FINE_NS

FAILED = frozenset({"aborted"})
QUEUE_DURATIONS = ("gen_ai.latency.time_in_queue", "vllm.queue_time", "sglang.queue_duration")
"""Names under which engines report how long a request waited, from queued to first scheduled."""
SPAN_TTFT = "gen_ai.latency.time_to_first_token"
CLIENT_TTFT = "vllm.time_to_first_token"
"""Both from the front end getting the request to its first token (vLLM 0.32)."""


class _Times(NamedTuple):
    client_start: int
    received: int
    queued: int
    scheduled: int
    first_token: int
    last_token: int
    finished: int
    client_first: int
    client_end: int


def prompt_tokens(recording: Recording, entries: Sequence[Entry]) -> list[int]:
    """Prompt tokens of each request, -1 where nobody says."""
    decided = {name: tokens for decision in recording.decisions for name, tokens in decision.prompt.items()}
    return [_tokens(entry, "prompt", decided.get(entry.engine_id, -1)) for entry in entries]


def _tokens(entry: Entry, which: str, otherwise: int) -> int:
    """Prompt or output tokens: by the caller, a span, a line, else ``otherwise``."""
    client = None
    if entry.client is not None:
        client = entry.client.prompt_tokens if which == "prompt" else entry.client.output_tokens
    names = ("prompt_tokens", "input_tokens") if which == "prompt" else ("completion_tokens", "output_tokens")
    span: Mapping[str, int] = entry.span.tokens if entry.span else {}
    by_span = next((span[f"gen_ai.usage.{name}"] for name in names if f"gen_ai.usage.{name}" in span), None)
    by_line = _value(entry, f"{which}_tokens")
    return next((n for n in (client, by_span, by_line) if n is not None), otherwise)


def request_table(
    recording: Recording,
    entries: Sequence[Entry],
    *,
    prompts: Sequence[int],
    steps: Steps,
    parts: Parts,
    engines: Sequence[int],
    problems: Counter[str],
) -> tuple[Requests, TokenTimes]:
    """Requests in the order of ``entries`` and when their tokens came. ``parts`` by position in ``steps``.

    Problems: ``queue_lines_after_first_step``: the line that says a request was queued was written when it already ran,
    so that it does not say when.
    """
    finished = {name for decision in recording.decisions for name in decision.finished}
    cached = {name: tokens for decision in recording.decisions for name, tokens in decision.cached.items()}
    server = [_server_tokens(steps, parts.of.get(i, ())) for i in range(len(entries))]
    seen = [np.array(e.client.token_times if e.client else (), dtype=np.int64) for e in entries]
    tokens = [own if len(own) else made for own, made in zip(seen, server, strict=True)]
    times = [
        _times(entry, steps, parts.of.get(i, ()), server[i], entry.engine_id in finished)
        for i, entry in enumerate(entries)
    ]
    columns = {name: np.array([getattr(t, name) for t in times], dtype=np.int64) for name in _Times._fields}
    late = (columns["scheduled"] != UNKNOWN) & (columns["queued"] > columns["scheduled"])
    columns["queued"] = np.where(late, UNKNOWN, columns["queued"])
    problems["queue_lines_after_first_step"] += int(late.sum())
    gaps = [_longest_gap(one) for one in tokens]
    counted = [_counted(parts.of.get(i, ())) for i in range(len(entries))]

    def small(values: Sequence[int]) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
        return np.array(values, dtype=np.int32)

    table = Requests(
        number=np.arange(1, len(entries) + 1, dtype=np.int32),
        engine_id=[entry.engine_id for entry in entries],
        client_id=[entry.client.request if entry.client else "" for entry in entries],
        trace_id=[entry.span.trace_id if entry.span else "" for entry in entries],
        **columns,
        itl_max=np.array([gap for gap, _ in gaps], dtype=np.int64),
        itl_max_at=np.array([at for _, at in gaps], dtype=np.int64),
        queue_ns=np.array([_queue(entry) for entry in entries], dtype=np.int64),
        prompt_tokens=small(prompts),
        output_tokens=small([_tokens(entry, "output", counted[i]) for i, entry in enumerate(entries)]),
        cached_tokens=small([_cached(e, cached.get(e.engine_id, -1)) for e in entries]),
        preemptions=small([_preemptions(e, parts.preemptions.get(i)) for i, e in enumerate(entries)]),
        engine=small(engines),
        failed=np.array([_failed(entry) for entry in entries], dtype=np.uint8),
    )
    offset = np.cumsum([0, *(len(one) for one in tokens)], dtype=np.int64)
    return table, TokenTimes(offset, np.concatenate(tokens) if tokens else np.empty(0, dtype=np.int64))


def _times(entry: Entry, steps: Steps, parts: Sequence[Part], server: Int64, done: bool) -> _Times:
    client, span = entry.client, entry.span
    fine = client is not None or span is not None or len(parts) > 0
    received = _fact(entry, ("received",), fine)
    first = _fact(entry, ("first_token",), fine)
    if not known(first) and span is not None and SPAN_TTFT in span.durations:
        first = span.start + span.durations[SPAN_TTFT]
    if not known(first) and len(server):
        first = int(server[0])
    if not known(first) and known(received) and client is not None and CLIENT_TTFT in client.durations:
        first = received + client.durations[CLIENT_TTFT]
    last = int(server[-1]) if len(server) else UNKNOWN
    finished = _fact(entry, ("finished", "aborted"), fine)
    if not known(finished):
        finished = span.end if span is not None else last if done else UNKNOWN
    scheduled = int(_chosen(steps, parts[0].step)) if parts else _fact(entry, ("scheduled",), fine)
    return _Times(
        client_start=client.start if client else UNKNOWN,
        received=received if known(received) or span is None else span.start,
        queued=_fact(entry, ("queued", "added"), fine),
        scheduled=scheduled,
        first_token=first,
        last_token=last,
        finished=finished,
        client_first=client.token_times[0] if client and client.token_times else UNKNOWN,
        client_end=client.end if client else UNKNOWN,
    )


def _fact(entry: Entry, kinds: Sequence[str], fine: bool) -> int:
    """The time of the first fact of the first of ``kinds`` that has one; coarse stamps only where not ``fine``."""
    for kind in kinds:
        said = [fact for fact in entry.facts if fact.kind == kind and known(fact.time)]
        if times := [fact.time for fact in said if known(fact.resolution) and fact.resolution <= FINE_NS]:
            return min(times)
        if said and not fine:
            return min(fact.time for fact in said)
    return UNKNOWN


def _chosen(steps: Steps, step: int) -> int:
    scheduled = int(steps.scheduled[step])
    return scheduled if known(scheduled) else int(steps.launched[step])


def _server_tokens(steps: Steps, parts: Sequence[Part]) -> Int64:
    """int64 ns: when the steps that gave the request a token ended; as delivered where that is known."""
    at = np.array([part.step for part in parts if part.yields], dtype=np.int64)
    left = np.where(steps.delivered[at] != UNKNOWN, steps.delivered[at], steps.finished[at])
    return left[left != UNKNOWN]


def _counted(parts: Sequence[Part]) -> int:
    """Tokens of the answer that the steps gave, -1 where a step may have given several (speculation) or none is known."""
    several = any(part.yields and part.recomputed == 0 and part.role == 1 and part.tokens > 1 for part in parts)
    return -1 if several or not parts else sum(part.yields for part in parts)


def _longest_gap(times: Int64) -> tuple[int, int]:
    if len(times) < 2:
        return UNKNOWN, UNKNOWN
    gaps = np.diff(times)
    at = int(np.argmax(gaps))
    return int(gaps[at]), int(times[at + 1])


def _queue(entry: Entry) -> int:
    said: dict[str, int] = {fact.kind: fact.value for fact in entry.facts if fact.value is not None}
    sources: tuple[Mapping[str, int], ...] = (
        entry.span.durations if entry.span else {},
        entry.client.durations if entry.client else {},
        said,
    )
    return next((source[name] for source in sources for name in QUEUE_DURATIONS if name in source), UNKNOWN)


def _value(entry: Entry, kind: str) -> int | None:
    return next((fact.value for fact in entry.facts if fact.kind == kind and fact.value is not None), None)


def _cached(entry: Entry, decided: int) -> int:
    said = _value(entry, "cached_tokens")
    return said if said is not None else decided


def _preemptions(entry: Entry, recorded: int | None) -> int:
    said = sum(fact.kind == "preempted" for fact in entry.facts)
    if recorded is None:
        return said if said else -1
    return max(recorded, said)


def _failed(entry: Entry) -> bool:
    return bool(entry.client and entry.client.error) or any(fact.kind in FAILED for fact in entry.facts)


def facts_by_line(entries: Sequence[Entry]) -> dict[int, int]:
    """The request (position) that each log line which was read as a fact is about."""
    lines: dict[int, int] = {}
    for i, entry in enumerate(entries):
        for fact in entry.facts:
            if fact.line is not None:
                lines.setdefault(fact.line, i)
    return lines
