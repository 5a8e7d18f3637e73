"""Who took part in each step where the scheduler's decisions, or a worker's executions, name the requests."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from teller_core.data.records import Recording
from teller_core.data.steps import Role
from teller_core.rebuild.entry import Entry
from teller_core.rebuild.line_of_steps import Slot
from teller_core.rebuild.requests import Registry

SMALLEST_BLOCK = 16
"""Tokens of a KV block in vLLM, at least; larger ones are multiples."""


class Part(NamedTuple):
    """One request in one step."""

    step: int
    tokens: int
    role: Role
    recomputed: int
    before: int
    """Tokens of the request in the KV cache before the step, -1 where not known."""
    yields: bool
    """A token of the answer comes out of the step."""


@dataclass(slots=True)
class _Seen:
    """As recorded: a request in a step, or, with ``step`` -1, its eviction before the next one."""

    step: int
    tokens: int = -1
    before: int = -1
    output: bool | None = None


class Parts(NamedTuple):
    """``of``: the parts of each request, by position in the registry. ``evicted``: requests evicted, by step."""

    of: Mapping[int, Sequence[Part]]
    evicted: Mapping[int, int]
    preemptions: Mapping[int, int]
    named: frozenset[int]
    """Steps whose requests were recorded."""


def recorded_parts(recording: Recording, slots: Sequence[Slot], registry: Registry, prompts: Sequence[int]) -> Parts:
    """Parts by request. ``prompts``: prompt tokens of each request, -1 where not known.

    A step that recomputes what an eviction threw away is PREFILL as long as the prompt is not computed; ``recomputed`` says
    how much had been computed before.
    """
    seen, evicted, named = _read(recording, slots, registry)
    parts = {request: _resolve(rows, prompts[request]) for request, rows in seen.items()}
    counts = {request: sum(row.step < 0 for row in rows) for request, rows in seen.items()}
    return Parts(parts, evicted, counts, frozenset(named))


def _read(
    recording: Recording, slots: Sequence[Slot], registry: Registry
) -> tuple[dict[int, list[_Seen]], dict[int, int], set[int]]:
    position = {id(entry): i for i, entry in enumerate(registry.entries)}
    seen: defaultdict[int, list[_Seen]] = defaultdict(list)
    evicted: defaultdict[int, int] = defaultdict(int)
    named: set[int] = set()
    empty = iter(sorted((d for d in recording.decisions if not d.tokens and d.preempted), key=lambda d: d.start))
    pending = next(empty, None)
    for step, slot in enumerate(slots):
        if slot.decision < 0 and not slot.executions:
            continue
        decision = recording.decisions[slot.decision] if slot.decision >= 0 else None
        chosen = decision or next((recording.executions[i] for i in slot.executions.values()), None)
        if chosen is None or chosen.tokens is None:
            continue
        named.add(step)
        got = recording.outcomes[slot.outcome].got if slot.outcome >= 0 else None

        def at(name: str, when: int = chosen.start) -> int:
            return position[id(registry.at(name, when))]

        lost = list(decision.preempted) if decision else []
        while decision and pending and pending.process == decision.process and pending.start <= decision.start:
            lost, pending = [*pending.preempted, *lost], next(empty, None)
        for name in lost:
            if known_entry(registry, name):
                seen[at(name)].append(_Seen(-1))
        evicted[step] += len(lost)
        for name, tokens in chosen.tokens.items():
            before, output = -1, None
            if decision:
                before = decision.computed.get(name, decision.cached.get(name, -1))
                output = None if decision.output is None else name in decision.output
                output = got.get(name, 0) > 0 if got is not None else output
            seen[at(name)].append(_Seen(step, tokens, before, output))
    return seen, evicted, named


def known_entry(registry: Registry, name: str) -> Entry | None:
    """The request called ``name``, None where none is."""
    return next(iter(registry.called(name)), None)


def _resolve(rows: Sequence[_Seen], prompt: int) -> list[Part]:
    """Roles and what was in the cache, from one eviction to the next."""
    parts: list[Part] = []
    computed = lost = -1
    """Tokens in the cache now, and before the last eviction."""
    answered = again = False
    i = 0
    while i < len(rows):
        if rows[i].step < 0:
            lost, computed, again, i = max(lost if computed < 0 else -1, computed), -1, True, i + 1
            continue
        end = next((k for k in range(i, len(rows)) if rows[k].step < 0), len(rows))
        life = rows[i:end]
        total = _to_compute(prompt, lost, again, answered)
        first = _first_cached(life, total)
        chunks = _chunks(life, total)
        made = _live(life, first, prompt, chunks, lost=lost if again else 0, answered=answered, again=again)
        parts += made
        last = made[-1]
        computed = last.before + last.tokens if last.before >= 0 and last.tokens >= 0 else -1
        answered |= any(part.yields for part in made)
        i = end
    return parts


def _to_compute(prompt: int, lost: int, again: bool, answered: bool) -> int:
    """Tokens that must be in the cache before the next one of the answer, -1 where not known."""
    if not again or not answered:
        return prompt
    return lost + 1 if lost >= 0 else -1


def _chunks(life: Sequence[_Seen], total: int) -> int:
    """How many rows compute what was not in the cache: the first, and those after it with more than one token.

    A chunk may be of one token as well. A cached prefix is whole blocks, so where the chunks leave anything else of
    ``total`` (-1 not known), the rows after them are chunks too.
    """
    chunks = next((k for k in range(1, len(life)) if life[k].tokens <= 1), len(life))
    rest = total - sum(row.tokens for row in life[:chunks])
    while life[0].before < 0 and life[0].tokens > 0 and rest > 0 and rest % SMALLEST_BLOCK and chunks < len(life):
        rest, chunks = rest - life[chunks].tokens, chunks + 1
    return chunks


def _first_cached(life: Sequence[_Seen], total: int) -> int:
    """Tokens in the cache before the first row: as recorded, or what the chunks leave of ``total``; -1 where not known.

    A cached prefix is whole blocks: what leaves anything else was evicted on the way.
    """
    if life[0].before >= 0:
        return life[0].before
    chunks = [row.tokens for row in life[: _chunks(life, total)]]
    if total < 0 or min(chunks) < 0:
        return -1
    rest = max(0, total - sum(chunks))
    if rest % SMALLEST_BLOCK == 0:
        return rest
    return (
        0 if rest < SMALLEST_BLOCK else -1
    )  # evicted before its prompt was read: what was still to come is not cached


def _live(
    life: Sequence[_Seen], first: int, prompt: int, chunks: int, *, lost: int, answered: bool, again: bool
) -> list[Part]:
    parts: list[Part] = []
    before = first
    for k, row in enumerate(life):
        before = row.before if row.before >= 0 else before
        role = _role(row, before, prompt, k < chunks, again and answered)
        filling = k < chunks - 1
        if before >= 0 and prompt >= 0 and row.tokens >= 0 and not (again and answered):
            filling = before + row.tokens < prompt
        recomputed = 0
        if again:
            recomputed = _recomputed(row.tokens, before, lost, k < chunks, k == chunks - 1 and answered)
        parts.append(
            Part(row.step, row.tokens, role, recomputed, before, row.output if row.output is not None else not filling)
        )
        before = before + row.tokens if before >= 0 and row.tokens >= 0 else -1
    return parts


def _role(row: _Seen, before: int, prompt: int, chunk: bool, resumed: bool) -> Role:
    if before >= 0 and prompt >= 0:
        return Role.PREFILL if before < prompt else Role.DECODE
    return Role.PREFILL if chunk and (row.tokens != 1 or not resumed) else Role.DECODE


def _recomputed(tokens: int, before: int, lost: int, chunk: bool, last: bool) -> int:
    """Of ``tokens``, those computed before the eviction. Its newest token never was: the last chunk computes it first."""
    if tokens < 0 or not chunk:
        return 0
    if before >= 0 and lost >= 0:
        return max(0, min(before + tokens, lost) - before)
    return tokens - 1 if last else tokens
