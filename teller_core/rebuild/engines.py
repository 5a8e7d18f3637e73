"""Which records belong together: one engine from its start to its end, with the workers that run its steps.

An engine that restarts, or several data-parallel engines, are lives of their own: their steps are never joined.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from teller_core.data.records import Decision, Execution, Iteration, Process, Recording
from teller_core.data.table import Int64
from teller_core.data.trace import Origin
from teller_core.rebuild.annotations import Annotated, StepName
from teller_core.rebuild.match import join

COLUMNS = 8
"""Of a signature: requests, tokens, requests in prefill, their tokens, ids with tokens (hashed), the recorder's number of
the decision, the number in a range's name, a time that is not before the decision (-1 where the clock may differ)."""
TIME = COLUMNS - 1


class Place(NamedTuple):
    """A process: a pid is unique on its host only. ``rank`` is -1 but where a pid tells nothing: files that name none, and
    processes of several containers or unnamed hosts with one pid."""

    host: str
    pid: int
    rank: int = -1


@dataclass
class Life:
    """Positions of records in the Recording; those of executions by worker, of annotations by tree."""

    engine: int = 0
    decider: Place | None = None
    decisions: list[int] = field(default_factory=list[int])
    iterations: list[int] = field(default_factory=list[int])
    executions: dict[Place, list[int]] = field(default_factory=dict[Place, list[int]])
    trees: list[int] = field(default_factory=list[int])


def place(process: Process) -> Place:
    """Where ``process`` runs."""
    told = process.pid <= 0 and process.rank is not None
    return Place(process.host, process.pid, process.rank if told and process.rank is not None else -1)


def locate(origin: Origin, lanes: Sequence[str], known: Iterable[Place]) -> Place:
    """The process that a trace is of: by host and pid, by pid alone where only one host has it, else as the trace says."""
    pid = origin.pid if origin.pid is not None else next((int(lane) for lane in lanes if lane.isdecimal()), -1)
    same = [where for where in known if where.pid == pid]
    exact = Place(origin.host or "", pid)
    return exact if exact in same or len(same) != 1 else same[0]


def decision_signature(decision: Decision | Execution) -> tuple[int, ...]:
    """What a decision, or an execution, says about its step."""
    tokens = decision.tokens
    number = -1 if decision.number is None else decision.number
    if tokens is None:
        return (-1, -1, -1, -1, -1, number, -1, -1)
    total = sum(tokens.values()) if min(tokens.values(), default=0) >= 0 else -1
    return (len(tokens), total, -1, -1, hash(frozenset(tokens.items())) >> 2 & (1 << 61) - 1, number, -1, -1)


def iteration_signature(iteration: Iteration) -> tuple[int, ...]:
    """What a line that counts a step says about it."""
    return (
        iteration.context_requests + iteration.generation_requests,
        iteration.context_tokens + iteration.generation_tokens,
        iteration.context_requests,
        iteration.context_tokens,
        -1,
        -1,
        -1,
        -1,
    )


def name_signature(name: StepName) -> tuple[int, ...]:
    """What the name of a range says about its step."""
    both = name.context_tokens >= 0 and name.generation_tokens >= 0
    total = name.context_tokens + name.generation_tokens if both else -1
    return (name.requests, total, name.context_requests, name.context_tokens, -1, -1, name.number, -1)


def signatures(rows: Iterable[tuple[int, ...]]) -> Int64:
    """int64 (n, COLUMNS)."""
    return np.array(list(rows), dtype=np.int64).reshape(-1, COLUMNS)


def lives(
    recording: Recording, annotations: Sequence[Annotated], places: Sequence[Place], problems: Counter[str]
) -> list[Life]:
    """The engines of a recording, by start. ``annotations`` and ``places``: one a tree. Empty decisions are no steps."""
    found = _deciders(recording)
    _add_series(recording, found)
    _add_workers(recording, found, problems)
    _add_trees(annotations, places, found)
    _number(recording, found)
    return found


def _deciders(recording: Recording) -> list[Life]:
    by_process: dict[Place, Life] = {}
    for i, decision in enumerate(recording.decisions):
        if decision.tokens:
            where = place(decision.process)
            by_process.setdefault(where, Life(decider=where)).decisions.append(i)
    for life in by_process.values():
        life.decisions.sort(key=lambda i: recording.decisions[i].start)
    return sorted(by_process.values(), key=lambda life: recording.decisions[life.decisions[0]].start)


def _series(iterations: Sequence[Iteration]) -> list[list[int]]:
    """Lines that count the steps of one engine from one start to the next: numbers that fall begin a new one."""
    open_series: dict[tuple[int, Place], list[int]] = {}
    last: dict[tuple[int, Place], int] = {}
    all_series: list[list[int]] = []
    for i, iteration in enumerate(iterations):
        if iteration.context_requests + iteration.generation_requests == 0:
            continue
        key, number = (iteration.engine, place(iteration.process)), iteration.number
        if key not in open_series or (number is not None and number <= last.get(key, -1)):
            all_series.append(open_series.setdefault(key, []) if key not in open_series else [])
            open_series[key] = all_series[-1]
        open_series[key].append(i)
        if number is not None:
            last[key] = number
    return all_series


def _add_series(recording: Recording, found: list[Life]) -> None:
    """Give each series of lines to the decider whose counts agree with it most; one that nobody decided is its own life."""
    series = _series(recording.iterations)
    if len(series) == 1 and len(found) == 1:
        found[0].iterations = series[0]
        return
    lines = [signatures(iteration_signature(recording.iterations[i]) for i in one) for one in series]
    decided = [signatures(decision_signature(recording.decisions[i]) for i in life.decisions) for life in found]
    scores = sorted(
        ((float((join(b, a).to >= 0).mean()), -i, -k) for i, a in enumerate(lines) for k, b in enumerate(decided)),
        reverse=True,
    )
    given: set[int] = set()
    for score, i, k in scores:
        if score > 0.5 and -i not in given and not found[-k].iterations:
            found[-k].iterations = series[-i]
            given.add(-i)
    found.extend(Life(iterations=one) for i, one in enumerate(series) if i not in given)


def _add_workers(recording: Recording, found: list[Life], problems: Counter[str]) -> None:
    workers: defaultdict[Place, list[int]] = defaultdict(list)
    for i, execution in enumerate(recording.executions):
        if execution.tokens is None or execution.tokens:
            workers[place(execution.process)].append(i)
    ids = [{name for i in life.decisions for name in recording.decisions[i].tokens} for life in found]
    for where, ran in workers.items():
        ran.sort(key=lambda i: recording.executions[i].start)
        mine = {name for i in ran for name in recording.executions[i].tokens or ()}
        shared = [len(mine & theirs) for theirs in ids]
        if mine and max(shared, default=0) > 0:
            found[shared.index(max(shared))].executions[where] = ran
        elif len(found) == 1 and not (mine and ids[0]):
            found[0].executions[where] = ran
            ids[0] |= mine
        elif (own := next((life for life in found if life.decider == where), None)) is not None:
            own.executions[where] = ran
        elif mine or not found:
            found.append(Life(executions={where: ran}))
            ids.append(mine)
        else:
            problems["executions_without_engine"] += len(ran)


def _add_trees(annotations: Sequence[Annotated], places: Sequence[Place], found: list[Life]) -> None:
    """Trees that name steps: to the life of their process, to the only one, else ranks with equal steps are one life."""
    for tree, (steps, where) in enumerate(zip(annotations, places, strict=True)):
        if not len(steps):
            continue
        own = next((life for life in found if where in life.executions or where == life.decider), None)
        if own is None and len(found) == 1 and (found[0].decisions or found[0].iterations or found[0].executions):
            own = found[0]
        if own is None and found:
            mine = signatures(map(name_signature, steps.name))
            own = next((life for life in found if _same_steps(life, annotations, mine)), None)
        if own is None:
            own = Life()
            found.append(own)
        own.trees.append(tree)


def _same_steps(life: Life, annotations: Sequence[Annotated], mine: Int64) -> bool:
    if not life.trees:
        return False
    theirs = signatures(map(name_signature, annotations[life.trees[0]].name))
    return bool((join(theirs, mine).to >= 0).mean() > 0.5)


def _number(recording: Recording, found: list[Life]) -> None:
    """Number the engines as their lines do; else the lowest number that is free while it lives (a restart keeps its own)."""
    busy: dict[int, int] = {}
    for life in found:
        if life.iterations:
            life.engine = recording.iterations[life.iterations[0]].engine
        elif life.decisions:
            starts = [recording.decisions[i].start for i in (life.decisions[0], life.decisions[-1])]
            life.engine = next(n for n in range(len(found) + 1) if busy.get(n, starts[0] - 1) < starts[0])
            busy[life.engine] = starts[1]
