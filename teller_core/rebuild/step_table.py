"""The table of steps: their four times and their counts, from the records that were joined."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.data.records import Iteration, Recording, known
from teller_core.data.steps import Mapping as HowKnown
from teller_core.data.steps import Participation, Role, Steps, StepWork
from teller_core.data.table import UNKNOWN, Int64
from teller_core.rebuild.annotations import Annotated
from teller_core.rebuild.engines import Life
from teller_core.rebuild.line_of_steps import Slot

FINE_NS = 50_000_000
"""A line whose clock is coarser than this times no step; it bounds one only where nothing else does."""


def untimed_steps(
    recording: Recording,
    slots: Sequence[Slot],
    found: Sequence[Life],
    annotations: Sequence[Annotated],
    evicted: Mapping[int, int],
) -> Steps:
    """Steps, in the order of ``slots``, without the times of workers and without a mapping."""
    size = len(slots)
    counts = np.array([_counts(recording, slot, annotations) for slot in slots], dtype=np.int64).reshape(size, 5)
    lines = [recording.iterations[slot.iteration] if slot.iteration >= 0 else None for slot in slots]
    usage = [_usage(recording, line, slot) for line, slot in zip(lines, slots, strict=True)]
    empty = np.full(size, UNKNOWN, dtype=np.int64)
    return Steps(
        engine=np.array([found[slot.life].engine for slot in slots], dtype=np.int32),
        number=np.array(
            [_number(line, slot, annotations) for line, slot in zip(lines, slots, strict=True)], dtype=np.int64
        ),
        scheduled=np.array([_scheduled(recording, slot) for slot in slots], dtype=np.int64),
        launched=empty,
        finished=empty.copy(),
        delivered=np.array([_delivered(recording, slot) for slot in slots], dtype=np.int64),
        context_requests=counts[:, 0].astype(np.int32),
        context_tokens=counts[:, 1].astype(np.int32),
        generation_requests=counts[:, 2].astype(np.int32),
        generation_tokens=counts[:, 3].astype(np.int32),
        kv_tokens=counts[:, 4].copy(),
        kv_usage=np.array(usage, dtype=np.float64),
        preempted=np.array(
            [evicted.get(step, 0) if slot.decision >= 0 else -1 for step, slot in enumerate(slots)], np.int32
        ),
        mapping=np.zeros(size, dtype=np.uint8),
        confidence=np.zeros(size, dtype=np.float64),
        elapsed=np.array([_elapsed(line, slot) for line, slot in zip(lines, slots, strict=True)], dtype=np.int64),
    )


def _counts(recording: Recording, slot: Slot, annotations: Sequence[Annotated]) -> tuple[int, ...]:
    """Requests and tokens in prefill, in decode, and KV tokens: as a line counts them, else as a range is named."""
    if slot.iteration >= 0:
        line = recording.iterations[slot.iteration]
        return (line.context_requests, line.context_tokens, line.generation_requests, line.generation_tokens, -1)
    for tree, k in slot.names.items():
        return annotations[tree].name[k][3:]
    return (-1, -1, -1, -1, -1)


def _number(line: Iteration | None, slot: Slot, annotations: Sequence[Annotated]) -> int:
    if line is not None and line.number is not None:
        return line.number
    for tree, k in slot.names.items():
        return annotations[tree].name[k].number
    return -1


def _usage(recording: Recording, line: Iteration | None, slot: Slot) -> float:
    """Of the KV cache, when its line was written, else when it had been chosen; NaN where neither tells."""
    told = line.kv_usage if line is not None else None
    if told is None and slot.decision >= 0:
        told = recording.decisions[slot.decision].kv_usage
    return np.nan if told is None else told


def _scheduled(recording: Recording, slot: Slot) -> int:
    if slot.decision >= 0:
        decision = recording.decisions[slot.decision]
        return decision.start + decision.dur
    if slot.iteration >= 0:
        line = recording.iterations[slot.iteration]
        return line.time if line.before else UNKNOWN
    return UNKNOWN


def _delivered(recording: Recording, slot: Slot) -> int:
    """When the scheduler had taken in what came out, or when its line says, at the latest. A line with a coarse clock says so
    only of a step that nothing else times.
    """
    if slot.outcome >= 0:
        came = recording.outcomes[slot.outcome]
        return came.start + came.dur
    if slot.iteration < 0:
        return UNKNOWN
    line = recording.iterations[slot.iteration]
    if line.before or not known(line.time) or not known(line.resolution):
        return UNKNOWN
    return UNKNOWN if _timed(slot) and line.resolution > FINE_NS else line.time + line.resolution


def _elapsed(line: Iteration | None, slot: Slot) -> int:
    """How long its line says that it took, of a step that nothing else times."""
    return UNKNOWN if line is None or line.elapsed is None or line.before or _timed(slot) else line.elapsed


def _timed(slot: Slot) -> bool:
    """Whether something besides a line tells when the step was."""
    return slot.decision >= 0 or bool(slot.executions) or bool(slot.names)


def with_work(steps: Steps, work: StepWork, problems: Counter[str]) -> Steps:
    """``steps`` with the times of the workers: the first to begin, the last to end.

    Problems: ``launched_before_scheduled``: the clocks of scheduler and worker contradict each other; the launch is unknown.
    """
    launched = np.full(len(steps.engine), np.iinfo(np.int64).max)
    finished = np.full(len(steps.engine), np.iinfo(np.int64).min)
    np.minimum.at(launched, work.step, work.start)
    np.maximum.at(finished, work.step, work.stop)
    ran = np.isin(np.arange(len(launched)), work.step)
    backwards = ran & (steps.scheduled != UNKNOWN) & (launched < steps.scheduled)
    problems["launched_before_scheduled"] += int(backwards.sum())
    launched = np.where(ran & ~backwards, launched, UNKNOWN)
    return replace(steps, launched=launched, finished=np.where(ran, finished, UNKNOWN))


class Members(NamedTuple):
    """Pairs of steps and requests, int columns, before they are a table. ``before``: tokens in the cache, -1 not known."""

    step: Int64
    request: Int64
    tokens: Int64
    recomputed: Int64
    role: Int64
    before: Int64
    confidence: "npt.NDArray[np.float64]"


def with_members(steps: Steps, members: Members, how: HowKnown, problems: Counter[str]) -> Steps:
    """``steps`` with what its ``members`` tell: mapping and confidence, counts and KV tokens where missing.

    The confidence of an inferred step is that of its pairs, summed over the requests that its counts show.

    Problems: ``roles_disagree_with_line``: a line counts other prefills than the decisions give, evictions aside.
    """
    size = len(steps.engine)
    prefill = members.role == int(Role.PREFILL)
    recorded = np.bincount(members.step, minlength=size) > 0
    by_role = [_sums(members, prefill, size), _sums(members, ~prefill, size)]
    missing = recorded & (steps.context_requests < 0) & (steps.generation_requests < 0)
    counted = [
        np.where(missing, column, old)
        for column, old in zip(
            (*by_role[0], *by_role[1]),
            (steps.context_requests, steps.context_tokens, steps.generation_requests, steps.generation_tokens),
            strict=True,
        )
    ]
    if how is HowKnown.RECORDED:
        fresh = prefill & (members.recomputed == 0)
        disagree = recorded & (steps.context_requests >= 0) & (_sums(members, fresh, size)[0] != steps.context_requests)
        problems["roles_disagree_with_line"] += int(disagree.sum())
    return replace(
        steps,
        context_requests=counted[0].astype(np.int32),
        context_tokens=counted[1].astype(np.int32),
        generation_requests=counted[2].astype(np.int32),
        generation_tokens=counted[3].astype(np.int32),
        kv_tokens=np.where(steps.kv_tokens >= 0, steps.kv_tokens, _kv_tokens(members, size)),
        mapping=np.where(recorded, np.uint8(how), steps.mapping).astype(np.uint8),
        confidence=np.where(recorded, _share(steps, members, size), steps.confidence),
    )


def _sums(members: Members, which: "npt.NDArray[np.bool_]", size: int) -> tuple[Int64, Int64]:
    """Requests and tokens of ``which`` members by step; tokens -1 where one is not known."""
    step, tokens = members.step[which], members.tokens[which]
    total = np.bincount(step, weights=tokens, minlength=size).astype(np.int64)
    unknown = np.bincount(step[tokens < 0], minlength=size) > 0
    return np.bincount(step, minlength=size), np.where(unknown, -1, total)


def _kv_tokens(members: Members, size: int) -> Int64:
    attended = np.where((members.before >= 0) & (members.tokens >= 0), members.before + members.tokens, -1)
    total = np.bincount(members.step, weights=attended, minlength=size).astype(np.int64)
    unknown = np.bincount(members.step[attended < 0], minlength=size) > 0
    none = np.bincount(members.step, minlength=size) == 0
    return np.where(unknown | none, -1, total)


def _share(steps: Steps, members: Members, size: int) -> "npt.NDArray[np.float64]":
    sure = np.bincount(members.step, weights=members.confidence, minlength=size)
    named = np.bincount(members.step, minlength=size)
    shown = steps.context_requests + steps.generation_requests
    return sure / np.maximum(1, np.where(sure < named, np.maximum(named, shown), named))


def participation(recorded: Members, inferred: Members) -> Participation:
    """The pairs as a table, ordered by step and request."""
    how = np.repeat([int(HowKnown.RECORDED), int(HowKnown.INFERRED)], [len(recorded.step), len(inferred.step)])
    whole = [np.concatenate([getattr(recorded, name), getattr(inferred, name)]) for name in Members._fields[:-1]]
    both = Members(*whole, confidence=np.concatenate([recorded.confidence, inferred.confidence]))
    order = np.lexsort((both.request, both.step))
    return Participation(
        both.step[order].astype(np.int32),
        both.request[order].astype(np.int32),
        both.tokens[order].astype(np.int32),
        both.recomputed[order].astype(np.int32),
        both.role[order].astype(np.uint8),
        how[order].astype(np.uint8),
        both.confidence[order],
    )
