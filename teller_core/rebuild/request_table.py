"""The table of requests: all times and counts of each, from the caller, the front end, the engine and its steps.

A time whose clock is coarser than FINE_NS stands only where the request has no finer one: the stamps of a text log count
whole seconds. Where the caller did not see the tokens, those of the steps that made them stand in.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.records import Recording, known
from teller_core.data.steps import Requests, Steps, TokenTimes, Transfers
from teller_core.data.table import UNKNOWN, Int64
from teller_core.rebuild.entry import Entry
from teller_core.rebuild.legs import LegTimes, around_server, is_engine, leg_times
from teller_core.rebuild.recorded import Part, Parts
from teller_core.rebuild.served import Served, ran, served
from teller_core.rebuild.step_table import FINE_NS

FAILED = frozenset({"aborted"})
QUEUE_DURATIONS = ("gen_ai.latency.time_in_queue", "vllm.queue_time", "sglang.queue_duration", "tgi.queue_time")
"""Names under which engines report how long a request waited, from queued to first scheduled."""
WHOLE = 1_000_000_000
"""A time that is a multiple of this was stamped by a clock of whole seconds."""
CLIENT_TTFT = "vllm.time_to_first_token"
"""From the front end getting the request to its first token (vLLM 0.32)."""


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
    by_span = _span_tokens(entry, names)
    by_line = _value(entry, f"{which}_tokens")
    return next((n for n in (client, by_span, by_line) if n is not None), otherwise)


def _span_tokens(entry: Entry, names: Sequence[str]) -> int | None:
    """A count by the engine that answered, else by another leg."""
    said = [
        span.tokens[f"gen_ai.usage.{name}"]
        for span in entry.spans()
        for name in names
        if f"gen_ai.usage.{name}" in span.tokens
    ]
    return said[0] if said else None


def request_table(
    recording: Recording,
    entries: Sequence[Entry],
    *,
    prompts: Sequence[int],
    steps: Steps,
    parts: Parts,
    engines: Sequence[int],
    problems: Counter[str],
) -> tuple[Requests, TokenTimes, Transfers]:
    """Requests in the order of ``entries``, when their tokens came, and when KV moved for them. ``parts`` by position in
    ``steps``.

    Problems: those of :func:`legs.leg_times`; ``queue_lines_after_first_step``: the line that says a request was queued was
    written when it already ran, so that it does not say when.
    """
    finished = {name for decision in recording.decisions for name in decision.finished}
    cached = {name: tokens for decision in recording.decisions for name, tokens in decision.cached.items()}
    done = {name: reason for outcome in recording.outcomes for name, reason in outcome.done.items()}
    server = [_server_tokens(steps, parts.of.get(i, ())) for i in range(len(entries))]
    seen = [np.array(e.client.token_times if e.client else (), dtype=np.int64) for e in entries]
    tokens = [own if len(own) else made for own, made in zip(seen, server, strict=True)]
    legs = [leg_times(entry.spans(), problems) for entry in entries]
    times = [
        _times(entry, steps, parts.of.get(i, ()), server[i], done=entry.engine_id in finished, legs=legs[i])
        for i, entry in enumerate(entries)
    ]
    columns = {name: np.array([getattr(t, name) for t in times], dtype=np.int64) for name in _Times._fields}
    late = (columns["scheduled"] != UNKNOWN) & (columns["queued"] > columns["scheduled"])
    columns["queued"] = np.where(late, UNKNOWN, columns["queued"])
    problems["queue_lines_after_first_step"] += int(late.sum())
    whole = [entry.client is None or not entry.client.ends_only for entry in entries]
    gaps = [_longest_gap(one) if all_seen else (UNKNOWN, UNKNOWN) for one, all_seen in zip(tokens, whole, strict=True)]
    counted = [_counted(parts.of.get(i, ())) for i in range(len(entries))]

    def small(values: Sequence[int]) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
        return np.array(values, dtype=np.int32)

    table = Requests(
        number=np.arange(1, len(entries) + 1, dtype=np.int32),
        engine_id=[entry.engine_id for entry in entries],
        client_id=[entry.client.request if entry.client else "" for entry in entries],
        trace_id=[next((span.trace_id for span in entry.spans() if span.trace_id), "") for entry in entries],
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
        tokenized=np.array([_fact(entry, ("tokenized",), True) for entry in entries], dtype=np.int64),
        finish_reason=[_reason(entry, done.get(entry.engine_id, "")) for entry in entries],
    )
    offset = np.cumsum([0, *(len(one) for one in tokens)], dtype=np.int64)
    times_of_tokens = TokenTimes(offset, np.concatenate(tokens) if tokens else np.empty(0, dtype=np.int64))
    return table, times_of_tokens, _transfers(legs)


def _transfers(legs: Sequence[LegTimes]) -> Transfers:
    """The transfers of KV between the engines of a request."""
    rows = [(i, one.transfer_from, one.transfer_until) for i, one in enumerate(legs) if known(one.transfer_from)]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Transfers(columns[0].astype(np.int32), columns[1].copy(), columns[2].copy())


def _times(entry: Entry, steps: Steps, parts: Sequence[Part], server: Int64, *, done: bool, legs: LegTimes) -> _Times:
    """What was recorded of a moment, else what the durations of spans say of it."""
    client = entry.client
    fine = client is not None or bool(entry.spans()) or len(parts) > 0
    by_line = served(entry.facts, fine)
    received = _received(entry, by_line, fine)
    first = _fact(entry, ("first_token",), fine)
    first = first if known(first) else legs.first_token
    if not known(first) and len(server):
        first = int(server[0])
    if not known(first) and known(received) and client is not None and CLIENT_TTFT in client.durations:
        first = received + client.durations[CLIENT_TTFT]
    last = int(server[-1]) if len(server) else legs.last_token
    finished = by_line.end if known(by_line.end) else _fact(entry, ("finished", "aborted"), fine)
    if not known(finished):
        finished = legs.finished if known(legs.finished) else last if done else UNKNOWN
    scheduled = int(_chosen(steps, parts[0].step)) if parts else _fact(entry, ("scheduled",), fine)
    scheduled = scheduled if known(scheduled) else ran(entry.facts, by_line.end)
    queued = _fact(entry, ("queued", "added"), fine)
    queued = queued if known(queued) else by_line.inner
    legs = around_server(legs, entry.spans(), received, finished)
    return _Times(
        client_start=client.start if client else legs.sent if known(legs.sent) else _routed(entry, received, finished),
        received=received if known(received) else legs.received,
        queued=queued if known(queued) else legs.queued,
        scheduled=scheduled if known(scheduled) else legs.scheduled,
        first_token=first,
        last_token=last,
        finished=finished,
        client_first=client.token_times[0] if client and client.token_times else legs.client_first,
        client_end=client.end if client else legs.ended,
    )


def _received(entry: Entry, by_line: Served, fine: bool) -> int:
    """By a fine stamp; as a line at its end says; by a coarse one."""
    exact = _fact(entry, ("received",), True)
    if known(exact) or not known(by_line.begin):
        return exact if known(exact) else _fact(entry, ("received",), fine)
    return by_line.begin


def _routed(entry: Entry, received: int, finished: int) -> int:
    """When a router passed it on, UNKNOWN where the server's times are too coarse to stand beside that, or contradict it."""
    routed = _fact(entry, ("routed",), True)
    fits = not known(received) or routed <= received
    return routed if fits and (not known(finished) or finished % WHOLE != 0) else UNKNOWN


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
    spans = sorted(filter(is_engine, entry.spans()), key=lambda span: span.start)
    sources: tuple[Mapping[str, int], ...] = (
        *(span.durations for span in spans),
        entry.client.durations if entry.client else {},
        said,
    )
    return next((source[name] for source in sources for name in QUEUE_DURATIONS if name in source), UNKNOWN)


def _value(entry: Entry, kind: str) -> int | None:
    return next((fact.value for fact in entry.facts if fact.kind == kind and fact.value is not None), None)


def _cached(entry: Entry, decided: int) -> int:
    said = _value(entry, "cached_tokens")
    said = _span_tokens(entry, ("cached_tokens",)) if said is None else said
    return said if said is not None else decided


def _preemptions(entry: Entry, recorded: int | None) -> int:
    said = sum(fact.kind == "preempted" for fact in entry.facts)
    counted = [span.tokens["preemptions"] for span in entry.spans() if "preemptions" in span.tokens]
    if recorded is None and not counted:
        return said if said else -1
    return max(recorded or 0, said, *counted)


def _failed(entry: Entry) -> bool:
    called = bool(entry.client and entry.client.error) or any(span.error for span in entry.spans())
    return called or any(fact.kind in FAILED for fact in entry.facts)


def _reason(entry: Entry, done: str) -> str:
    """Why its answer ended: as the front end said, which may stop it itself; else as the engine did."""
    words = {fact.kind: fact.word for fact in entry.facts if fact.word}
    return words.get("finished") or ("abort" if _failed(entry) else "") or done or words.get("ended", "")


def facts_by_line(entries: Sequence[Entry]) -> dict[int, int]:
    """The request (position) that each log line which was read as a fact is about."""
    lines: dict[int, int] = {}
    for i, entry in enumerate(entries):
        for fact in entry.facts:
            if fact.line is not None:
                lines.setdefault(fact.line, i)
    return lines
