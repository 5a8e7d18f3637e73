"""Steps, joined from what the scheduler decided, workers ran, lines counted and traces named.

All are joined by order and counts within one life of an engine, never by time containment: when an engine schedules one
step ahead, step k+1 is decided before step k has run. What only one source knows is a step as well.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from teller_core.data.records import Iteration, Recording, known
from teller_core.data.table import UNKNOWN, Int64
from teller_core.rebuild.annotations import Annotated
from teller_core.rebuild.engines import (
    COLUMNS,
    TIME,
    Life,
    decision_signature,
    iteration_signature,
    name_signature,
    place,
    signatures,
)
from teller_core.rebuild.line_of_steps import Line, Slot
from teller_core.rebuild.match import Matched, join

IMPOSSIBLE = 1 << 62
LOST_LINES = 4096
"""A longer gap in the numbers of lines is taken for a new start of counting."""


def join_steps(
    recording: Recording, annotations: Sequence[Annotated], found: Sequence[Life], problems: Counter[str]
) -> list[Slot]:
    """The steps of all lives by time, those of one engine in its own order.

    Problems: ``resynced_iterations``, ``resynced_executions``, ``resynced_annotations`` (records lost on one side),
    ``iterations_disagree`` (lines joined by order though their counts differ), ``executions_without_step``,
    ``ambiguous_annotations`` (a window of a trace fits several runs of steps; the one nearest in time was taken).
    """
    slots: list[Slot] = []
    outcomes = {
        (place(one.process), one.number): i for i, one in enumerate(recording.outcomes) if one.number is not None
    }
    for number, life in enumerate(found):
        line = Line(number)
        decided = signatures(decision_signature(recording.decisions[i]) for i in life.decisions)
        decided[:, TIME] = [recording.decisions[i].start + recording.decisions[i].dur for i in life.decisions]
        for slot, k in line.add(decided, join(line.known, decided)):
            slot.decision = life.decisions[k]
            chosen = recording.decisions[slot.decision]
            slot.outcome = outcomes.get((place(chosen.process), -1 if chosen.number is None else chosen.number), -1)
        _add_executions(recording, line, life, problems)
        _add_iterations(recording, line, life, problems)
        _add_names(recording, line, life, annotations, problems)
        slots += line.slots
    return _in_time(recording, slots, found, annotations)


def _in_time(
    recording: Recording, slots: Sequence[Slot], found: Sequence[Life], annotations: Sequence[Annotated]
) -> list[Slot]:
    """Slots of all engines by time; those of one engine keep its order, whatever their clocks say."""
    engine = np.array([found[slot.life].engine for slot in slots], dtype=np.int64)
    keys = np.array([_heard_of(recording, slot, annotations) for slot in slots], dtype=np.int64)
    for one in np.unique(engine):
        own = np.flatnonzero(engine == one)
        keys[own] = np.maximum.accumulate(keys[own])
    return [slots[i] for i in np.argsort(keys, kind="stable").tolist()]


def _heard_of(recording: Recording, slot: Slot, annotations: Sequence[Annotated]) -> int:
    """The earliest time known of a step, UNKNOWN where there is none."""
    if slot.decision >= 0:
        return recording.decisions[slot.decision].start
    if slot.executions:
        return min(recording.executions[i].start for i in slot.executions.values())
    if slot.names:
        tree, k = next(iter(slot.names.items()))
        return int(annotations[tree].start[k])
    return recording.iterations[slot.iteration].time if slot.iteration >= 0 else UNKNOWN


def _add_executions(recording: Recording, line: Line, life: Life, problems: Counter[str]) -> None:
    for where, ran in life.executions.items():
        items = signatures(decision_signature(recording.executions[i]) for i in ran)
        starts = [recording.executions[i].start for i in ran]
        if life.decider is not None and where.host == life.decider.host:
            items[:, TIME] = starts
        matched = join(line.known, items, _strain(_decided(recording, line), starts))
        named = np.array([recording.executions[i].tokens is not None for i in ran], dtype=np.bool_)
        for slot, k in line.add(items, matched, named | (len(line.slots) == 0)):
            slot.executions[where] = ran[k]
        problems["resynced_executions"] += matched.resynced
        problems["executions_without_step"] += (
            int(((matched.to < 0) & ~named).sum()) if len(line.slots) != len(ran) else 0
        )


def _add_iterations(recording: Recording, line: Line, life: Life, problems: Counter[str]) -> None:
    """Line n belongs to the n-th step. Numbers that are missing leave room for the lines that were lost."""
    if not life.iterations:
        return
    numbers = [recording.iterations[i].number for i in life.iterations]
    at = _positions(numbers)
    items = np.full((int(at[-1]) + 1, COLUMNS), -1, dtype=np.int64)
    items[at] = signatures(iteration_signature(recording.iterations[i]) for i in life.iterations)
    items[at, TIME] = [_written(recording.iterations[i], life) for i in life.iterations]
    written = np.zeros(len(items), dtype=np.bool_)
    written[at] = True
    problems["lost_iteration_lines"] += int((~written).sum())
    matched = join(line.known, items)
    if len(items) == len(line.slots) and (matched.to[at] < 0).mean() > 0.5:
        matched = Matched(np.arange(len(items), dtype=np.int64))
        problems["iterations_disagree"] += len(at)
    of = dict(zip(at.tolist(), life.iterations, strict=True))
    for slot, k in line.add(items, matched, written):
        slot.iteration = of.get(k, -1)
    problems["resynced_iterations"] += matched.resynced


def _written(iteration: Iteration, life: Life) -> int:
    """When a line was certainly there, -1 where its clock may not be that of the decisions."""
    one_clock = life.decider is not None and iteration.process.host == life.decider.host
    timed = known(iteration.time) and known(iteration.resolution)
    return iteration.time + iteration.resolution if one_clock and timed else -1


def _positions(numbers: Sequence[int | None]) -> Int64:
    """Where each line stands among all that were written, the lost ones counted, from 0."""
    if any(number is None for number in numbers):
        return np.arange(len(numbers), dtype=np.int64)
    count = np.array(numbers, dtype=np.int64)
    step = np.diff(count, prepend=count[0])
    step[1:] = np.where((step[1:] < 1) | (step[1:] > LOST_LINES), 1, step[1:])
    return np.cumsum(step)


def _add_names(
    recording: Recording, line: Line, life: Life, annotations: Sequence[Annotated], problems: Counter[str]
) -> None:
    for tree in life.trees:
        steps = annotations[tree]
        items = signatures(map(name_signature, steps.name))
        matched = join(line.known, items, _strain(_decided(recording, line), steps.start.tolist()))
        for slot, k in line.add(items, matched):
            slot.names[tree] = k
        problems["resynced_annotations"] += matched.resynced
        problems["ambiguous_annotations"] += matched.ambiguous


def _decided(recording: Recording, line: Line) -> list[int | None]:
    """By slot, a time at which its step had been chosen or had ended, the best that is known."""
    times: list[int | None] = []
    for slot in line.slots:
        time: int | None = None
        if slot.decision >= 0:
            decision = recording.decisions[slot.decision]
            time = decision.start + decision.dur
        elif slot.executions:
            time = min(recording.executions[i].start for i in slot.executions.values())
        elif slot.iteration >= 0 and known(recording.iterations[slot.iteration].time):
            iteration = recording.iterations[slot.iteration]
            time = iteration.time - (iteration.elapsed or 0)
        times.append(time)
    return times


def _strain(chosen: Sequence[int | None], starts: Sequence[int]) -> Callable[[int], int]:
    """How far items beginning at ``starts`` lie from the slots they would meet at an offset: the median distance."""

    def strain(offset: int) -> int:
        apart = [
            abs(start - when)
            for k, start in enumerate(starts)
            if 0 <= k + offset < len(chosen) and (when := chosen[k + offset]) is not None
        ]
        return sorted(apart)[len(apart) // 2] if apart else IMPOSSIBLE

    return strain
