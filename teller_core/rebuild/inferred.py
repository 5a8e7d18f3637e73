"""The recording's side of inference: what is known of steps and requests, per engine, and the claims as a table."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from teller_core.data.line_fields import whole_in
from teller_core.data.records import Recording, RequestFact, known
from teller_core.data.steps import Steps
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.engines import Life
from teller_core.rebuild.entry import Entry
from teller_core.rebuild.infer import MOST_WORK, Claim, Inferred, infer
from teller_core.rebuild.infer_moves import Count, Want
from teller_core.rebuild.legs import leg_times
from teller_core.rebuild.line_of_steps import Slot
from teller_core.rebuild.step_table import FINE_NS, Members

SLOW_LINE_NS = 2_000_000_000
"""A line is written at most this long after its step."""
MOST_LOST = 64
"""Lost lines that are bridged one by one; after more the engine is taken to have gone on as it was."""
QUEUE_FACTS = ("added", "queued")
OUTPUT_TOKENS = ("gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens")
RECEIVED_RULES = ("vllm.received", "sglang.received")


def inferred_members(
    recording: Recording,
    *,
    slots: Sequence[Slot],
    found: Sequence[Life],
    entries: Sequence[Entry],
    prompts: Sequence[int],
    steps: Steps,
    named: frozenset[int],
    problems: Counter[str],
) -> Members:
    """Pairs of the steps that nobody named requests for; steps that inference gave up on are counted in ``problems``.

    An engine is taken as a whole: where requests were recorded for some of its steps, or where several engines might
    have served a request, nothing is claimed.
    """
    claims: list[Claim] = []
    if entries and len({life.engine for life in found}) == 1:
        taken = work = 0
        order = _by_arrival(entries)
        for number, life in enumerate(found):
            own = [step for step, slot in enumerate(slots) if slot.life == number]
            if not own or named & set(own) or (not life.iterations and not life.trees):
                continue
            last = number == len(found) - 1
            mine = [i for i in order[taken:] if last or _arrived(entries[i]) <= _high(steps, own[-1])]
            taken += len(mine)
            inferred = _of_life(
                recording, entries, prompts, steps=steps, own=own, mine=mine, most=max(0, MOST_WORK - work)
            )
            claims += inferred.claims
            work += inferred.work
            problems["too_many_ways_to_tell"] += inferred.given_up
    columns = (
        np.array([(c.step, c.request, c.tokens, 0, int(c.role), -1) for c in claims], dtype=np.int64).reshape(-1, 6).T
    )
    return Members(*columns, confidence=np.array([claim.confidence for claim in claims], dtype=np.float64))


def _of_life(
    recording: Recording,
    entries: Sequence[Entry],
    prompts: Sequence[int],
    *,
    steps: Steps,
    own: Sequence[int],
    mine: Sequence[int],
    most: int,
) -> Inferred:
    counts, at = _counts(steps, own)
    if not mine or not counts:
        return Inferred([], 0, 0)
    wants = [_want(recording, entries[i], prompts[i]) for i in mine]
    inferred = infer(counts, wants, most)
    claims = [claim for claim in inferred.claims if at[claim.step] >= 0]
    return inferred._replace(
        claims=[claim._replace(step=at[claim.step], request=mine[claim.request]) for claim in claims]
    )


def _counts(steps: Steps, own: Sequence[int]) -> tuple[list[Count | None], list[int]]:
    """The counts of an engine's steps, None for each line that was lost, and the step that each is of; none without counts."""
    counts: list[Count | None] = []
    at: list[int] = []
    last = -1
    for step in own:
        number = int(steps.number[step])
        lost = number - last - 1 if number >= 0 and last >= 0 else 0
        if lost > 0:
            counts += [None] * min(lost, MOST_LOST)
            at += [-1] * min(lost, MOST_LOST)
        last = number if number >= 0 else last
        context, generation = int(steps.context_requests[step]), int(steps.generation_requests[step])
        if context < 0 or generation < 0:
            return [], []
        cache = float(steps.kv_usage[step]) if steps.kv_usage[step] == steps.kv_usage[step] else -1.0
        tokens = int(steps.context_tokens[step]), int(steps.generation_tokens[step])
        counts.append(Count(context, tokens[0], generation, tokens[1], _low(steps, step), _high(steps, step), cache))
        at.append(step)
    return counts, at


def _high(steps: Steps, step: int) -> int:
    """ns: the step had ended by then."""
    end = int(steps.finished[step]) if known(int(steps.finished[step])) else int(steps.delivered[step])
    return end if known(end) else 1 << 62


def _low(steps: Steps, step: int) -> int:
    """ns: the step had not ended before."""
    finished, delivered = int(steps.finished[step]), int(steps.delivered[step])
    return finished if known(finished) else delivered - SLOW_LINE_NS if known(delivered) else -(1 << 62)


def _queue_fact(entry: Entry) -> RequestFact | None:
    return next((fact for kind in QUEUE_FACTS for fact in entry.facts if fact.kind == kind and known(fact.time)), None)


def _arrived(entry: Entry) -> int:
    """ns: no step before this can serve it."""
    fact = _queue_fact(entry)
    if fact is not None:
        return fact.time
    begin = entry.begin()
    return begin if known(begin) else 1 << 62


def _by_arrival(entries: Sequence[Entry]) -> list[int]:
    """Positions of requests in the order of their coming; lines of one second in the order in which they were written."""

    def key(i: int) -> tuple[int, int]:
        fact = _queue_fact(entries[i])
        return (_arrived(entries[i]), fact.line or 0 if fact is not None else 0)

    return sorted(range(len(entries)), key=key)


def _want(recording: Recording, entry: Entry, prompt: int) -> Want:
    client, spans = entry.client, entry.spans()
    output = client.output_tokens if client and client.output_tokens is not None else None
    if output is None:
        output = next((span.tokens[name] for span in spans for name in OUTPUT_TOKENS if name in span.tokens), None)
    if output is None:
        output = next((fact.value for fact in entry.facts if fact.kind == "output_tokens"), None)
    first, end = UNKNOWN, UNKNOWN
    if client is not None:
        first, end = client.token_times[0] if client.token_times else UNKNOWN, client.end
    elif spans:
        told = leg_times(spans, Counter())  # what does not fit is counted where the requests' own table is made
        first, end = told.first_token, told.finished if known(told.finished) else told.ended
    fine = {fact.kind: fact.time for fact in entry.facts if known(fact.resolution) and fact.resolution <= FINE_NS}
    return Want(
        arrived=_arrived(entry),
        sure=_queue_fact(entry) is not None,
        prompt=prompt,
        output=output or -1,
        most=_most(recording, entry),
        first=first if known(first) else fine.get("first_token", UNKNOWN),
        end=end if known(end) else fine.get("finished", UNKNOWN),
    )


def _most(recording: Recording, entry: Entry) -> int:
    """The most tokens that the answer may have, as the line of its coming says; -1 where none does."""
    for fact in entry.facts:
        line = recording.lines[fact.line] if fact.line is not None else None
        if (
            line is not None
            and line.rule in RECEIVED_RULES
            and (most := whole_in(line.fields, "max_tokens")) is not None
        ):
            return most
    return -1
