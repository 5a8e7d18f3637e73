"""Rules for what makes a device stand still inside a step, and for what slows its kernels, from profiles."""

import re
from typing import NamedTuple

import numpy as np

from teller_core.data.report import EvidenceItem
from teller_core.data.table import Int32, Int64
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge.evidence import COUNTED, HINTED, Clue, cost, count, line_item
from teller_core.judge.intervals import Spans, overlaps, union
from teller_core.judge.places import step_rows
from teller_core.judge.prepare import EMPTY_ROWS, Case
from teller_core.judge.robust import grouped
from teller_core.judge.scene import Scene

SYNCHRONIZES = re.compile(r"^(cuda|hip|cu)\w*Synchronize|^(cuda|hip)Memcpy(?!\w*Async)")
"""Calls that return when the device has caught up."""
ALLOCATES = re.compile(
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostRegister)(?!\w*Async)|^cuMem(Alloc|Free|Map|Unmap|Create|Release|SetAccess)"
)
"""Calls that get or give back memory of a device."""
LAUNCHES, GRAPHS = re.compile(r"LaunchKernel|LaunchCooperative"), re.compile(r"GraphLaunch")
MANY_LAUNCHES = 16
"""A step of fewer launches is not bound by them."""
NORMAL_SHARE = 0.1
"""A share of the profiled decode steps that must have a graph, for its lack to be a miss."""
LONGER, LONGEST_SHARE, LEAST_SHARE = 1.5, 0.8, 0.1
"""A kernel is held up where it takes this many times its usual time; a neighbor holds up some kernels of a step, neither hardly
any nor all of them."""
ONE_NAME = 0.6
"""Nor those of one name: then it is that kernel."""
LEAST_KERNELS = 8
"""Of a kernel that was seen fewer times it is not known what is usual."""
FALLBACKS = {
    "vllm.moe_default_config": (re.compile(r"moe|expert", re.I), "no tuned configuration was found"),
    "vllm.not_optimized": (
        re.compile(r"gptq|awq|quant|gemm_half_q|squeeze", re.I),
        "the engine calls it not optimized",
    ),
}
"""Log rules by which an engine says that it uses a kernel that is none of its fast ones, and which kernels these are."""
HALF = 0.5
"""Most of a request's profiled steps are more than this share of them."""
LARGE = 0.3
"""Such a kernel is to blame where it has this share of the device's time."""


class Marks(NamedTuple):
    """What stood a device still in each step, by step: int64 ns ``sync`` after calls that waited for the device, ``copy`` in
    copies of pageable memory, ``memory`` in calls for device memory, ``idle`` in all, and what a neighbor may have ``held`` up;
    how many of each, and how many ``launches``, ``graphs`` and ``kernels``; ``span``: an example.
    """

    ns: dict[str, Int64]
    counts: dict[str, Int64]
    span: dict[tuple[str, int], tuple[int, int, str]]
    """By (what, step): rank, row and name of the longest such call."""


NAMES = ("sync", "copy", "memory", "idle", "held")


def marks(case: Case) -> Marks:
    """What every profiled step shows, measured once a capture."""
    return case.once("device marks", _marks)


def host_device_sync(scene: Scene) -> Clue | None:
    """In the middle of its steps calls waited for the device, which then stood still until work was launched anew."""
    words = "the device stood still after calls that had waited for it"
    return _stood(scene, "cuda.host_device_sync", "sync", words, "such calls")


def pageable_copy(scene: Scene) -> Clue | None:
    """Copies of memory that is not pinned kept the host in the call while the device stood still."""
    words = "the device stood still while pageable memory was copied"
    return _stood(scene, "cuda.pageable_copy", "copy", words, "copies of pageable memory")


def allocator(scene: Scene) -> Clue | None:
    """Its steps got or gave back device memory while the device stood still."""
    words = "the device stood still while memory was taken or given back"
    return _stood(scene, "cuda.allocator", "memory", words, "calls for device memory")


def graph_miss(scene: Scene) -> Clue | None:
    """Some of its decode steps launched kernel by kernel and left the device idle, while others replayed a graph."""
    seen, step = marks(scene.case), _decodes(scene)
    if not len(step) or not scene.case.once("graph share", _graph_share):
        return None
    bare = step[(seen.counts["graphs"][step] == 0) & (seen.counts["launches"][step] >= MANY_LAUNCHES)]
    usual = scene.case.once("idle with a graph", _idle_with_graph)
    ns = int((seen.ns["idle"][bare] - usual).clip(0).sum()) if len(bare) else 0
    if ns <= 0:
        return None
    evidence = [
        cost("the device stood still in steps without a graph", ns, kind="span"),
        count("decode steps without a graph", len(bare), unit="steps", kind="span"),
        count("kernels launched one by one in such a step", int(np.median(seen.counts["launches"][bare])), unit="launches",
              kind="span"),
    ]  # fmt: skip
    return Clue("cuda.graph_miss", ns, COUNTED, evidence, step=int(bare[0]), layer="runtime")


def colocated_contention(scene: Scene) -> Clue | None:
    """In its slow steps some kernels of every name took several times their usual time, beside others that did not."""
    seen, held = marks(scene.case), scene.holds
    step = held.step[~held.gap & (held.rest > 0) & held.own]
    step = np.unique(step[seen.ns["held"][step] > 0]) if len(step) else step
    ns = int(seen.ns["held"][step].sum()) if len(step) else 0
    if ns <= 0:
        return None
    evidence = [
        cost("kernels beyond their usual time, some in each step", ns, kind="span"),
        count("kernels that were held up", int(seen.counts["held"][step].sum()), unit="kernels", kind="span"),
        count("steps in which they were", len(step), unit="steps", kind="span"),
        *_example(seen, "held", step),
    ]
    return Clue("gpu.colocated_contention", ns, HINTED, evidence, step=int(step[0]), layer="kernel")


def wrong_kernel(scene: Scene) -> Clue | None:
    """The log says that a kernel is none of the fast ones, and it takes much of the device's time in its steps."""
    case = scene.case
    for rule, (kernels, why) in FALLBACKS.items():
        rows = case.lines.get(rule, EMPTY_ROWS).tolist()
        told = case.once(f"time of {rule}", lambda case, kernels=kernels: _time_of(case, kernels)) if rows else None
        if told is None:
            continue
        step = scene.life.step[(scene.life.start >= scene.low) & (scene.life.start < scene.high)]
        mine, whole = int(told.mine[step].sum()), int(told.whole[step].sum())
        if mine < LARGE * max(whole, 1):
            continue
        evidence = [
            cost("kernels of its steps for which there is a faster one", mine, kind="span"),
            count("of the device's time in them", 100 * mine / whole, unit="%", kind="span"),
            line_item(scene, rows[0], why),
        ]
        return Clue("gpu.wrong_kernel", mine, HINTED, evidence, operator=told.name, layer="kernel")
    return None


def unseen(scene: Scene) -> bool:
    """Whether most of its profiled steps replay graphs of which the profile has no kernels: it tells nothing of the device."""
    counts, step = marks(scene.case).counts, np.unique(scene.life.step)
    step = step[scene.case.profiled[step]]
    return bool(len(step)) and bool(((counts["graphs"][step] > 0) & (counts["kernels"][step] == 0)).mean() > HALF)


def _stood(scene: Scene, key: str, mark: str, words: str, what: str) -> Clue | None:
    life, seen = scene.life, marks(scene.case)
    if not scene.span or not len(life.step):
        return None
    step = np.unique(life.step[(life.start >= scene.low) & (life.start < scene.high)])
    step = step[scene.case.profiled[step]]
    if not len(step):
        return None
    stood = int(seen.ns[mark][step].sum())
    usual = _usual(scene, mark, step)
    ns = stood - usual
    if ns <= 0:
        return None
    evidence = [
        cost(words, stood, usual or None, kind="span"),
        count(what, int(seen.counts[mark][step].sum()), unit="calls", kind="span"),
        *_example(seen, mark, step),
    ]
    worst = int(step[np.argmax(seen.ns[mark][step])])
    return Clue(key, ns, COUNTED, evidence, step=worst, layer="runtime")


def _usual(scene: Scene, mark: str, step: Int32 | Int64) -> int:
    """ns that such steps stand still for as a rule, those that compute prompts and others apart: it makes none slower than its
    peers. Against a limit all counts that a request spends.
    """
    if scene.metric == "slo":
        return 0
    decode, prompt = scene.case.once(f"usual {mark}", lambda case: _usually(case, mark))
    computing = int((scene.case.capture.steps.context_tokens[step] > 0).sum())
    return prompt * computing + decode * (len(step) - computing)


def _usually(case: Case, mark: str) -> tuple[int, int]:
    """int ns: the median over profiled steps that only decode, and over those that compute prompts."""
    ns, computing = marks(case).ns[mark], case.capture.steps.context_tokens > 0
    some = [case.profiled & ~computing, case.profiled & computing]
    decode, prompt = (int(np.median(ns[mine])) if mine.any() else 0 for mine in some)
    return decode, prompt


def _example(seen: Marks, mark: str, step: Int32 | Int64) -> list[EvidenceItem]:
    """The longest such call of the step that has most of them."""
    worst = int(step[np.argmax(seen.ns[mark][step])])
    if (mark, worst) not in seen.span:
        return []
    rank, row, name = seen.span[mark, worst]
    return [EvidenceItem(kind="span", scope="this_request", span=f"{rank}:{row}", step=worst, name=name)]


def _decodes(scene: Scene) -> Int32:
    """Its profiled steps inside the stretch that computed no prompt."""
    life, steps = scene.life, scene.case.capture.steps
    if not scene.span or not len(life.step):
        return life.step[:0]
    step = np.unique(life.step[(life.start >= scene.low) & (life.start < scene.high)])
    return step[(steps.context_tokens[step] == 0) & scene.case.profiled[step]]


def _graph_share(case: Case) -> bool:
    """Whether other decode steps, a part of them at least, replay a graph."""
    seen = marks(case)
    decode = case.profiled & (case.capture.steps.context_tokens == 0)
    return bool(decode.any()) and float((seen.counts["graphs"][decode] > 0).mean()) >= NORMAL_SHARE


def _idle_with_graph(case: Case) -> int:
    seen = marks(case)
    graph = case.profiled & (seen.counts["graphs"] > 0)
    return int(np.median(seen.ns["idle"][graph])) if graph.any() else 0


def _marks(case: Case) -> Marks:
    count = len(case.begin)
    seen = Marks(
        {name: np.zeros(count, np.int64) for name in NAMES},
        {name: np.zeros(count, np.int64) for name in (*NAMES, "launches", "graphs", "kernels")},
        {},
    )
    for rank, held in enumerate(case.capture.ranks):
        if held.tree is not None and len(held.tree):
            _mark_rank(case, seen, held.tree, rank)
    return seen


def _mark_rank(case: Case, seen: Marks, tree: Tree, rank: int) -> None:
    trace, work = tree.trace, case.capture.work
    mine = np.flatnonzero((work.rank == rank) & (work.row >= 0))
    device = trace.on_device & np.isin(trace.layer, (Layer.KERNEL, Layer.COMMUNICATION))
    if not len(mine) or not device.any():
        return
    owner, _ = step_rows(len(tree), work.step[mine], work.row[mine], work.row_stop[mine])
    names = trace.names
    copies = _named(names, re.compile(r"^Mem(cpy|set)"))[trace.name]
    compute = union(trace.start[device & ~copies], trace.end[device & ~copies])
    busy = union(trace.start[device], trace.end[device])
    step = work.step[mine]
    low, high = work.start[mine], work.stop[mine]
    np.add.at(seen.ns["idle"], step, high - low - overlaps(busy, low, high))
    kernels = np.flatnonzero(device & ~copies & (owner >= 0))
    np.add.at(seen.counts["kernels"], owner[kernels], 1)
    kernels = kernels[trace.layer[kernels] == Layer.KERNEL]
    for name, pattern in (("launches", LAUNCHES), ("graphs", GRAPHS)):
        rows = np.flatnonzero(_named(names, pattern)[trace.name] & (owner >= 0) & (trace.layer == Layer.RUNTIME))
        np.add.at(seen.counts[name], owner[rows], 1)
    runtime = (trace.layer == Layer.RUNTIME) & (owner >= 0)
    calls = np.flatnonzero(runtime & _named(names, ALLOCATES)[trace.name])
    _add(
        seen, "memory", tree, calls, owner=owner, rank=rank, ns=_exposed(trace.start[calls], trace.end[calls], compute)
    )
    paged = np.flatnonzero(device & _named(names, re.compile(r"Pageable"))[trace.name])
    above = tree.parent[paged]
    called = paged[(above >= 0) & (trace.layer[np.maximum(above, 0)] == Layer.RUNTIME)]
    calls = tree.parent[called]
    calls = calls[owner[calls] >= 0]
    _add(seen, "copy", tree, calls, owner=owner, rank=rank, ns=_exposed(trace.start[calls], trace.end[calls], compute))
    calls = np.flatnonzero(runtime & _named(names, SYNCHRONIZES)[trace.name])
    stop = case.stop[np.maximum(owner[calls], 0)]
    _add(seen, "sync", tree, calls, owner=owner, rank=rank, ns=_after(trace.end[calls], stop, compute))
    _mark_held(case, seen, rank, kernels, owner)


def _named(names: "tuple[str, ...] | list[str] | object", pattern: re.Pattern[str]):
    """bool a name: whether the pattern finds itself in it."""
    return np.array([pattern.search(name) is not None for name in names], dtype=np.bool_)  # pyright: ignore


def _exposed(start: Int64, stop: Int64, compute: Spans) -> Int64:
    """int64 ns: of each call, what no kernel covers."""
    return (stop - start) - overlaps(compute, start, stop)


def _after(end: Int64, stop: Int64, compute: Spans) -> Int64:
    """int64 ns: how long the device, which had caught up when a call ended, stood still until its next kernel of the same step;
    0 where it had not, or where no kernel of the step followed. Of several calls in one silence the last has it.
    """
    if not len(end) or not len(compute.start):
        return np.zeros(len(end), np.int64)
    following = np.searchsorted(compute.start, end, "right")
    there = following < len(compute.start)
    at = np.minimum(following, len(compute.start) - 1)
    before = np.where(following > 0, compute.stop[np.maximum(following - 1, 0)], end)
    idle = np.where(there & (before <= end) & (compute.start[at] < stop), compute.start[at] - before, 0)
    last = np.append(following[1:] != following[:-1], True)
    return np.where(last, idle, 0).clip(0)


def _add(seen: Marks, mark: str, tree: Tree, calls: Int64 | Int32, *, owner: Int32, rank: int, ns: Int64) -> None:
    step = owner[calls]
    np.add.at(seen.ns[mark], step, ns)
    np.add.at(seen.counts[mark], step[ns > 0], 1)
    best: dict[int, int] = {}
    for call, one, took in zip(calls.tolist(), step.tolist(), ns.tolist(), strict=True):
        if took > best.get(one, 0):
            best[one] = took
            seen.span[mark, one] = (rank, call, tree.trace.names[int(tree.trace.name[call])])


def _mark_held(case: Case, seen: Marks, rank: int, rows: Int64, owner: Int32) -> None:
    """Kernels (``rows``) of decode steps against the median of their name and place in the step: what some took longer."""
    tree = case.capture.ranks[rank].tree
    assert tree is not None  # the caller has it: for the type checker
    trace = tree.trace
    rows = rows[case.capture.steps.context_tokens[owner[rows]] == 0]
    if not len(rows):
        return
    rows = rows[np.lexsort((trace.start[rows], trace.name[rows], owner[rows]))]
    step, name, took = owner[rows], trace.name[rows], trace.dur[rows].astype(np.float32)
    place = _places(step, name)
    ranked = grouped(place, took, int(place.max()) + 1)
    middle, times = ranked.quantile(0.5)[place], ranked.count
    longer = (took > LONGER * middle) & (times[place] >= LEAST_KERNELS)
    cuts = np.flatnonzero(np.append(True, step[1:] != step[:-1]))
    for low, high in zip(cuts.tolist(), [*cuts[1:].tolist(), len(rows)], strict=True):
        mine = low + np.flatnonzero(longer[low:high])
        if not LEAST_SHARE * (high - low) <= len(mine) <= LONGEST_SHARE * (high - low):
            continue
        added, one = (took - middle)[mine], int(step[low])
        if np.bincount(name[mine], weights=added).max() > ONE_NAME * added.sum():
            continue
        seen.ns["held"][one] += int(added.sum())
        seen.counts["held"][one] += len(mine)
        row = int(rows[mine[np.argmax(added)]])
        seen.span["held", one] = (rank, row, trace.names[int(trace.name[row])])


def _places(step: Int32, name: Int32) -> Int32:
    """int32 a kernel, of which those of a step and of a name stand together: a number for its name and its place among these."""
    count = np.arange(len(step))
    first = np.append(True, (step[1:] != step[:-1]) | (name[1:] != name[:-1]))
    nth = count - np.maximum.accumulate(np.where(first, count, 0))
    return np.unique(name.astype(np.int64) << 32 | nth, return_inverse=True)[1].astype(np.int32)


class _Time(NamedTuple):
    """int64 ns a step: of the kernels meant and of all; the name of the one that takes most."""

    mine: Int64
    whole: Int64
    name: str


def _time_of(case: Case, kernels: re.Pattern[str]) -> _Time | None:
    mine, whole = np.zeros(len(case.begin), np.int64), np.zeros(len(case.begin), np.int64)
    most: dict[str, int] = {}
    work = case.capture.work
    for rank, held in enumerate(case.capture.ranks):
        rows = np.flatnonzero((work.rank == rank) & (work.row >= 0))
        if held.tree is None or not len(rows):
            continue
        trace = held.tree.trace
        owner, _ = step_rows(len(held.tree), work.step[rows], work.row[rows], work.row_stop[rows])
        device = np.flatnonzero(trace.on_device & (trace.layer == Layer.KERNEL) & (owner >= 0))
        meant = device[_named(trace.names, kernels)[trace.name[device]]]
        np.add.at(whole, owner[device], trace.dur[device])
        np.add.at(mine, owner[meant], trace.dur[meant])
        for row in meant.tolist():
            name = trace.names[int(trace.name[row])]
            most[name] = most.get(name, 0) + int(trace.dur[row])
    return _Time(mine, whole, max(most, key=lambda name: most[name])) if most else None
