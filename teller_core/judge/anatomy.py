"""What profiled steps that compute on the host are made of: operators, and silences between them; and how slow ones differ.

A service that is slow for all of its requests is so in the few steps that are profiled as well: what made those slow is taken to
have made the others slow, where they were slow in the same way.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import MATERIAL
from teller_core.data.capture import processes
from teller_core.data.table import UNKNOWN, Float64, Int64, Mask
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge.around import AROUND_NS
from teller_core.judge.awaited import awaited
from teller_core.judge.intervals import Spans, clip, overlaps, union
from teller_core.judge.places import own_time
from teller_core.judge.prepare import CALM, Case

WEIGHTS = re.compile(r"linear|addmm|\bmm$|::mm|_mm$|matmul|bmm|gemm|embedding", re.I)
"""Operators that read the model's weights: with few tokens a step they go as fast as memory does."""
SLOW = 1.3
"""Times what calm profiled steps take: a profile makes all of them slower, so that others are no measure."""
SILENT = 1.5
"""Silences grow with the work of a step and with a busy host, too: steps must be so many times as long for them."""
OPENED = 2.0
"""Times at most that a step takes in which a profiler sets itself up: one that takes more is slow for another reason."""
LEAST = 2
"""Slow steps, and calm ones, that are compared at least."""
MOSTLY = 0.5
"""Of what a slow step has more, one part is what made it slow where it has this share."""
AGREE = 0.6
"""And of slow steps, this share must be slow in the same way."""
MORE_CALLS = 1.3
STANDS_OUT = 1.15
"""Operators that read weights must have grown so many times as much as the others."""
PART = 0.1
"""Operators with a smaller share of the time of those that read weights are not asked; nor is a call repeated that adds a smaller
share to a step.
"""
SILENCES = ("one silence", "silences")
WAYS = ("operator", "weights", "collectives", *SILENCES)


class Way(NamedTuple):
    """How profiled steps were slow, one of WAYS: one operator took longer, those that read weights did, all ranks were longer in
    collectives, one silence grew, or all did. ``steps``: those that were; ``operator``: its name, or empty; ``value`` and
    ``normal``: int ns, medians of a step; ``times``: how many times as long as calm ones they took.
    """

    kind: str
    steps: Int64
    operator: str
    value: int
    normal: int
    times: float


@dataclass(frozen=True)
class _Step:
    """int ns: what one step ``lasted`` in one process, its ``silence``, the ``longest`` of it, and the time spent ``together``
    with other ranks; by operator, its own time and its calls; by collective, its own time: most of it may be spent waiting.
    ``place`` of the longest silence: how many operators ran before it, or, where that is nearer, after it, below 0.
    """

    step: int
    lasted: int
    silence: int
    longest: int
    place: int
    together: int
    own: dict[str, int]
    calls: dict[str, int]
    met: dict[str, int]


class Grown(NamedTuple):
    """An operator or a collective that took longer in a step, by all of its calls on all ranks: int ns, what they took, and what
    of it was ``added``.
    """

    name: str
    took: int
    added: int


def suspects(case: Case) -> dict[int, list[str]]:
    """By profiled step: the names of :func:`grown`; then, where a rank waited for another one for a good part of the step, those
    of its collectives, the longest first: in calm steps of several ranks one waits as well, and so they need not have grown.
    """
    found = {step: [one.name for one in mine] for step, mine in grown(case).items()}
    for step, names in _met_where_waited(case).items():
        mine = found.setdefault(step, [])
        mine += [name for name in names if name not in mine]
    return found


def _met_where_waited(case: Case) -> dict[int, list[str]]:
    """The collectives of each step in which a rank waited, by their own time on all ranks, the longest first."""
    told, table = awaited(case), case.capture.collectives
    rows = np.flatnonzero((table.step >= 0) & (told.late >= 0) & (told.late != told.rank) & (told.wait != UNKNOWN))
    waited = np.bincount(table.step[rows], weights=told.wait[rows], minlength=len(case.begin))
    total: dict[int, dict[str, int]] = {}
    for one in (*_decodes(case), *_prefills(case)):
        if waited[one.step] >= MATERIAL * (case.stop[one.step] - case.begin[one.step]):
            mine = total.setdefault(one.step, {})
            for name, ns in one.met.items():
                mine[name] = mine.get(name, 0) + ns
    return {step: sorted(mine, key=lambda name: -mine[name]) for step, mine in total.items()}


def grown(case: Case) -> dict[int, list[Grown]]:
    """By profiled step: the operators and collectives that took longer than in calm ones, over all ranks together, what adds most
    first; what adds hardly anything is left out. Of steps that compute prompts those that were called more often, by that much:
    with the tokens of a step grows what its calls take, and not how many they are.
    """
    return case.once("grown", _grown)


def _grown(case: Case) -> dict[int, list[Grown]]:
    found = _decodes(case)
    _, _, calm = _parted(case, found)
    if calm.sum() < LEAST:
        return {}
    usual = _middle([found[at] for at in np.flatnonzero(calm).tolist()])
    added: dict[int, dict[str, Grown]] = {}
    least: dict[int, float] = {}
    for one in (*found, *_prefills(case)):
        mine = added.setdefault(one.step, {})
        least[one.step] = max(MATERIAL * one.lasted, least.get(one.step, 0.0))
        decodes = int(case.capture.steps.context_tokens[one.step]) == 0
        for new in _added(one, usual) if decodes else _oftener(one, usual):
            old = mine.get(new.name, Grown(new.name, 0, 0))
            mine[new.name] = Grown(new.name, old.took + new.took, old.added + new.added)
    return {
        step: sorted((one for one in mine.values() if one.added >= least[step]), key=lambda one: -one.added)
        for step, mine in added.items()
    }


def _added(one: _Step, usual: _Step) -> Iterator[Grown]:
    for took, normal in ((one.own, usual.own), (one.met, usual.met)):
        for name, ns in took.items():
            yield Grown(name, ns, ns - normal.get(name, 0))


def _oftener(one: _Step, usual: _Step) -> Iterator[Grown]:
    for name, calls in one.calls.items():
        normal = usual.calls.get(name, 0)
        if normal and calls >= MORE_CALLS * normal:
            yield Grown(name, one.own[name], one.own[name] * (calls - normal) // calls)


def slow_way(case: Case) -> Way | None:
    """How the slow ones among the profiled steps that only decode were slow, None where they are too few or do not agree."""
    return case.once("slow way", _slow_way)


def _parted(case: Case, found: list[_Step]) -> tuple[Float64, Mask, Mask]:
    """How many times as long as calm ones they took, which are slow, and which are calm."""
    lasted = np.array([one.lasted for one in found], np.float64)
    times = lasted / max(float(np.quantile(lasted, CALM)), 1.0) if len(found) else lasted
    # A profiler that sets itself up makes a step slow: it is slow for another reason where one that it only watches is as slow.
    step = np.array([one.step for one in found], np.int64)
    slow = (times > SLOW) | _repeating(found)
    opening, begin = case.opening[step], case.begin[step]
    like = [_as_slow(times, begin, slow & ~opening, at) for at in range(len(found))]
    return times, _in_a_row(slow & (~opening | (np.array(like, np.bool_) & (times >= OPENED))), begin), ~slow


def _as_slow(times: Float64, begin: Int64, sure: Mask, at: int) -> bool:
    """Whether one of the ``sure`` steps around a step took as many times as long as calm ones, or more."""
    return bool((sure & (np.abs(begin - begin[at]) <= AROUND_NS) & (SLOW * times >= times[at])).any())


def _in_a_row(slow: Mask, begin: Int64) -> Mask:
    """Those of which the one just before or just after is slow, too: what makes steps slow stays a while, and one is chance, on
    however many ranks it is seen.
    """
    apart = np.abs(np.diff(begin))
    pair = slow[1:] & slow[:-1] & (apart > 0) & (apart <= AROUND_NS)
    return np.append(pair, False) | np.append(False, pair) if len(slow) else slow


def _repeating(found: list[_Step]) -> Mask:
    """bool a step: it calls an operator more often than another one does, and a good part of its time goes into that. What only
    decodes makes as many calls whatever its batch is; and a profile, which makes all steps slower, adds none.
    """
    least: dict[str, int] = {}
    for one in found:
        for name, calls in one.calls.items():
            least[name] = min(calls, least.get(name, calls))
    return np.array(
        [
            any(
                calls >= MORE_CALLS * least[name] and one.own[name] * (calls - least[name]) >= PART * calls * one.lasted
                for name, calls in one.calls.items()
            )
            for one in found
        ],
        np.bool_,
    )


def _slow_way(case: Case) -> Way | None:
    found = _decodes(case)
    times, slow, calm = _parted(case, found)
    if slow.sum() < LEAST or calm.sum() < LEAST:
        return None
    usual = _middle([found[at] for at in np.flatnonzero(calm).tolist()])
    ways = {at: _way(found[at], usual) for at in np.flatnonzero(slow).tolist()}
    kind, where = max(dict.fromkeys(ways.values()), key=lambda way: list(ways.values()).count(way))
    mine = [at for at, way in ways.items() if way == (kind, where)]
    operator = where if kind == "operator" else ""
    longer = float(np.median(times[mine]))
    if not kind or len(mine) < max(LEAST, AGREE * len(ways)) or (kind in SILENCES and longer < SILENT):
        return None
    if kind == "collectives" and not _all_ranks(found, ways):
        return None
    value, normal = (_size(kind, operator, one) for one in (_middle([found[at] for at in mine]), usual))
    steps = np.unique(np.array([found[at].step for at in mine], np.int64))
    return Way(kind, steps, operator, value, normal, longer)


def _all_ranks(found: list[_Step], ways: dict[int, tuple[str, str]]) -> bool:
    """Whether slow steps were longer in collectives on several ranks at once: where one was not, the others waited for it."""
    ranks: dict[int, list[bool]] = {}
    for at, (kind, _) in ways.items():
        ranks.setdefault(found[at].step, []).append(kind == "collectives")
    several = [all(each) and len(each) > 1 for each in ranks.values()]
    return sum(several) >= AGREE * len(several)


def _way(one: _Step, calm: _Step) -> tuple[str, str]:
    """(one of WAYS or empty, the operator or where the longest silence is: what a step does itself, it does in one place; who is
    set aside by others is so anywhere).
    """
    more, silence = one.lasted - calm.lasted, one.silence - calm.silence
    if more <= 0:
        return "", ""
    if one.together - calm.together >= MOSTLY * more:
        return "collectives", ""
    if silence >= MOSTLY * more:
        alone = one.longest - calm.longest >= MOSTLY * silence
        return ("one silence", str(one.place)) if alone else ("silences", "")
    added = {name: ns - calm.own.get(name, 0) for name, ns in one.own.items()}
    whole = sum(max(ns, 0) for ns in added.values())
    top = max(added, key=lambda name: added[name])
    if added[top] >= MOSTLY * whole and one.calls[top] >= MORE_CALLS * calm.calls.get(top, 0):
        return "operator", top
    of, others = _grew(one, calm, weights=True), _grew(one, calm, weights=False)
    if of >= SLOW and of >= STANDS_OUT * others and _alike(one, calm):
        return "weights", ""
    return ("operator", top) if added[top] >= MOSTLY * whole else ("", "")


def _alike(one: _Step, calm: _Step) -> bool:
    """Whether all operators that read weights grew, of those that take a good part of the time of all of them."""
    usual = {name: ns for name, ns in calm.own.items() if WEIGHTS.search(name)}
    least = PART * sum(usual.values())
    return all(one.own.get(name, 0) >= STANDS_OUT * ns for name, ns in usual.items() if ns >= least)


def _grew(one: _Step, calm: _Step, *, weights: bool) -> float:
    """How many times their calm time the operators took that read weights, or the others."""
    names = [name for name in calm.own if (WEIGHTS.search(name) is not None) == weights]
    usual = sum(calm.own[name] for name in names)
    return sum(one.own.get(name, 0) for name in names) / usual if usual else 1.0


def _size(kind: str, operator: str, one: _Step) -> int:
    match kind:
        case "operator":
            return one.own.get(operator, 0)
        case "weights":
            return sum(ns for name, ns in one.own.items() if WEIGHTS.search(name))
        case "collectives":
            return one.together
        case "one silence":
            return one.longest
        case _:
            return one.silence


def _middle(steps: list[_Step]) -> _Step:
    def of(values: list[int]) -> int:
        return int(np.median(values))

    names = dict.fromkeys(name for one in steps for name in one.own)
    return _Step(
        step=-1,
        lasted=of([one.lasted for one in steps]),
        silence=of([one.silence for one in steps]),
        longest=of([one.longest for one in steps]),
        place=0,
        together=of([one.together for one in steps]),
        own={name: of([one.own.get(name, 0) for one in steps]) for name in names},
        calls={name: of([one.calls.get(name, 0) for one in steps]) for name in names},
        met={name: of([one.met.get(name, 0) for one in steps]) for one in steps for name in one.met},
    )


def _decodes(case: Case) -> list[_Step]:
    return case.once("profiled steps that only decode", lambda case: _steps(case, decode=True))


def _prefills(case: Case) -> list[_Step]:
    return case.once("profiled steps with prompts", lambda case: _steps(case, decode=False))


def _steps(case: Case, *, decode: bool) -> list[_Step]:
    """The profiled steps that only decode, or those that do not, of processes without a device, each once: where two recordings
    of a process have a step, the one of them that has more operators tells of it.
    """
    work, steps = case.capture.work, case.capture.steps
    known = (steps.context_tokens == 0) if decode else (steps.context_tokens > 0)
    found: dict[tuple[int, int], _Step] = {}
    process = processes(case.capture.ranks).tolist()
    for position, rank in enumerate(case.capture.ranks):
        if rank.tree is None or bool(rank.tree.trace.on_device.any()):
            continue
        mine = np.flatnonzero((work.rank == position) & case.detailed & known[work.step])
        own = own_time(rank.tree) if len(mine) else np.empty(0, np.int64)
        waits = case.once("collectives of processes", _collectives)[position]
        for at in mine.tolist():
            span = (int(work.start[at]) - rank.shift, int(work.stop[at]) - rank.shift)
            rows = slice(int(work.row[at]), int(work.row_stop[at]))
            one = _step(rank.tree, own, rows, span, int(work.step[at]), waits=clip(waits, *span))
            before = found.setdefault((process[position], one.step), one)
            if sum(one.calls.values()) > sum(before.calls.values()):
                found[process[position], one.step] = one
    return [*found.values()]


def _collectives(case: Case) -> dict[int, Spans]:
    """When the process of each rank was in collectives, on the clock of its trace: one of its traces may tell of them, another of
    its operators.
    """
    ranks, table = case.capture.ranks, case.capture.collectives
    process = processes(ranks)
    found: dict[int, Spans] = {}
    for position, rank in enumerate(ranks):
        rows = np.flatnonzero((process == process[position])[table.rank])
        start = table.start[rows] - rank.shift
        found[position] = union(start, start + table.dur[rows])
    return found


def _step(tree: Tree, own: Int64, rows: slice, span: tuple[int, int], step: int, *, waits: Spans) -> _Step:
    trace = tree.trace
    work = np.flatnonzero(trace.layer[rows] == Layer.OPERATOR) + rows.start
    outer = work[np.append(-1, np.maximum.accumulate(tree.stop[work])[:-1]) <= work] if len(work) else work
    lane = trace.lane[outer]
    busiest = outer[lane == int(np.argmax(np.bincount(lane, weights=trace.dur[outer])))] if len(outer) else outer
    start, stop = trace.start[busiest], trace.start[busiest] + trace.dur[busiest]
    low, high = np.append(span[0], np.maximum.accumulate(stop) if len(stop) else stop), np.append(start, span[1])
    met = np.flatnonzero(trace.layer[rows] == Layer.COMMUNICATION) + rows.start
    edges = (trace.start[met], waits.start), (trace.end[met], waits.stop)
    together = union(*(np.concatenate(each) for each in edges))
    gaps = (high - low).clip(0) - overlaps(together, low, np.maximum(low, high))
    at = int(np.argmax(gaps))
    return _Step(
        step=step,
        lasted=span[1] - span[0],
        silence=int(gaps.sum()),
        longest=int(gaps.max()),
        place=at if 2 * at < len(gaps) else at - len(gaps),
        together=int(overlaps(together, np.array([span[0]]), np.array([span[1]]))[0]),
        own=_by_name(tree, work, own[work]),
        calls=_by_name(tree, work, np.ones(len(work), np.int64)),
        met=_by_name(tree, met, own[met]),
    )


def _by_name(tree: Tree, rows: Int64, value: Int64) -> dict[str, int]:
    """The sum of the values of rows, by their names."""
    names, place = np.unique(tree.trace.name[rows], return_inverse=True)
    total = np.bincount(place, weights=value, minlength=len(names))
    return {tree.trace.names[int(name)]: int(ns) for name, ns in zip(names, total, strict=True)}
