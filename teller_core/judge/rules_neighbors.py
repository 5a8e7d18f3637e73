"""Rules for what a host that computes the model waits for without using it: a call that sleeps, a memory that others use up."""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge.evidence import HINTED, Clue, cost, count
from teller_core.judge.holds import Bool
from teller_core.judge.places import own_time, step_rows
from teller_core.judge.prepare import EAGER, EMPTY_ROWS, Case, Counter, counter, quantile
from teller_core.judge.scene import Scene

WEIGHTS = re.compile(r"linear|addmm|\bmm$|::mm|matmul|bmm|gemm|embedding", re.I)
"""Operators that read the model's weights: with few tokens a step they go as fast as memory does."""
GROWN, KEPT = 1.3, 1.15
"""Operators that read weights take at least the first times as long as in calm steps, the others at most the second."""
OF_ALL = 0.1
"""Two operators at least must have grown, each by this share of it all: one alone is a slow operator."""
LEAST_STEPS = 6
"""Fewer calm steps tell no calm time."""
OTHERS = ""
PROFILED = 4
NEIGHBOR = 0.3
"""Processors that other programs use beyond the usual, from which on they may use up the memory, too."""
BESIDE = 0.98
"""Of the wait for a processor: it is told behind that."""


def memory_bandwidth(scene: Scene) -> Clue | None:
    """Operators that read weights grew in its steps, the others kept their time, and no thread waited for a processor."""
    held, table = scene.holds, scene.case.once("by operator", _by_operator)
    if table is None or not scene.counted("run_queue_wait_ns"):
        return None
    step = np.unique(held.step[~held.gap & held.own & (held.over > 0)])
    slow = step[table.slow[step]]
    if not len(slow) or held.starved.sum() + held.device.sum() > held.rest.sum():
        return None
    of, others = _grew(table, table.weights, slow), _grew(table, [OTHERS], slow)
    added = sorted(int((table.took[name][slow] - table.usual[name]).sum()) for name in table.weights)[::-1]
    ns = sum(added)
    if of < GROWN or others > KEPT or len(added) < 2 or added[1] < OF_ALL * ns:
        return None
    evidence = [
        cost("operators that read the weights, beyond their calm time", ns, kind="span"),
        count("they took so many times their calm time", of, 1.0, unit="times", kind="span"),
        count("other operators took so many times theirs", others, 1.0, unit="times", kind="span"),
        cost("run-queue wait beyond the calm level", int(scene.beyond_calm("run_queue_wait_ns")), kind="sample",
             scope="capture"),
    ]  # fmt: skip
    return Clue("host.memory_bandwidth", ns, HINTED, evidence, step=int(slow[0]), layer="operator")


def not_excluded(scene: Scene) -> Clue | None:
    """Its threads waited for a processor while other programs used much of one: whether these use up the memory as well cannot be
    told then, and is not excluded.
    """
    starved, case = int(scene.holds.starved.sum()), scene.case
    if starved <= 0 or case.capture.tier < PROFILED or not scene.counted("machine_busy_ns") or not scene.span:
        return None
    low, high = np.array([scene.low]), np.array([scene.high])
    foreign = float(case.once("foreign use", _foreign).growth(low, high)[0])
    if foreign < NEIGHBOR * scene.span:
        return None
    evidence = [
        cost("steps stretched while threads waited for a processor", starved, kind="sample"),
        cost("processors used by other programs meanwhile", int(foreign), kind="sample", scope="capture"),
    ]
    return Clue("host.memory_bandwidth", int(BESIDE * starved), HINTED / 2, evidence, layer="operator")


def _foreign(case: Case) -> Counter:
    """What programs that are none of the service used of the processors, beyond what they usually do."""
    samples, busy = case.capture.samples, case.counters["machine_busy_ns"]
    grown = busy.delta.astype(np.float64)
    rows: dict[str, list[int]] = {}
    for row, (name, process) in enumerate(zip(samples.name, samples.process, strict=True)):
        if name == "run_ns" and process:
            rows.setdefault(process, []).append(row)
    for mine in rows.values():
        grown -= counter(case.capture, np.array(mine), case.engines).growth(busy.start, busy.stop)
    rate = grown.clip(0) / np.maximum(busy.stop - busy.start, 1) * 1e9
    usual = EAGER * quantile(rate, 0.5, busy.start, busy.stop, case.engines)
    beyond = (grown - usual * (busy.stop - busy.start) / 1e9).clip(0)
    return Counter(busy.start, busy.stop, np.rint(beyond).astype(np.int64), rate, 0.0)


class _Table(NamedTuple):
    """Own time of operators in profiled decode steps. int64 ns a step by name, those that do not read weights together as
    OTHERS: ``took``; float ns: ``usual``, its median in calm steps. ``weights``: names of those that do; ``slow`` bool a step.
    """

    took: dict[str, Int64]
    usual: dict[str, float]
    weights: list[str]
    slow: Bool


def _grew(table: _Table, names: Sequence[str], step: Int64) -> float:
    """How many times their calm time operators took together in these steps."""
    usual = len(step) * sum(table.usual.get(name, 0.0) for name in names)
    return (
        sum(float(table.took[name][step].sum()) for name in names if name in table.took) / usual if usual > 0 else 1.0
    )


def _by_operator(case: Case) -> _Table | None:
    """Decode steps of the ranks that compute on the host; None where there are too few."""
    if case.capture.tier < 4 or not case.once("computed on the host", on_host):
        return None
    took: dict[str, Int64] = {}
    for rank, held in enumerate(case.capture.ranks):
        if held.tree is not None and len(held.tree):
            _sum_up(case, held.tree, rank, took)
    known = (
        case.profiled & (case.capture.steps.context_tokens == 0) & (case.took != UNKNOWN) & (case.expected != UNKNOWN)
    )
    slow = known & (case.took > GROWN * case.expected)
    calm = known & ~slow
    if not slow.any() or calm.sum() < LEAST_STEPS or not took:
        return None
    usual = {name: float(np.median(ns[calm])) for name, ns in took.items()}
    return _Table(took, usual, [name for name in took if name != OTHERS], slow)


def _sum_up(case: Case, tree: Tree, rank: int, took: dict[str, Int64]) -> None:
    work, trace, steps = case.capture.work, tree.trace, len(case.begin)
    mine = np.flatnonzero((work.rank == rank) & (work.row >= 0))
    owner, _ = step_rows(len(tree), work.step[mine], work.row[mine], work.row_stop[mine])
    rows = np.flatnonzero((owner >= 0) & (trace.layer == Layer.OPERATOR))
    reads = np.array([WEIGHTS.search(name) is not None for name in trace.names], dtype=np.bool_)[trace.name[rows]]
    own = own_time(tree)
    groups = {OTHERS: rows[~reads]}
    for number in np.unique(trace.name[rows[reads]]).tolist():
        groups[trace.names[int(number)]] = rows[reads & (trace.name[rows] == number)]
    for name, these in groups.items():
        np.add.at(took.setdefault(name, np.zeros(steps, np.int64)), owner[these], own[these])


def operators_grew(case: Case) -> bool:
    """Whether a profile says that the operators of slow steps took longer: then nobody slept."""
    table = case.once("by operator", _by_operator)
    if table is None:
        return False
    return _grew(table, [*table.took], np.flatnonzero(table.slow)) > GROWN


def on_host(case: Case) -> bool:
    """Whether the model is computed on the host: a profile without a device, or an engine that keeps its KV cache there."""
    profiled = [rank.tree for rank in case.capture.ranks if rank.tree is not None and case.profiled.any()]
    if profiled:
        return not any(bool(tree.trace.on_device.any()) for tree in profiled)
    lines = case.capture.lines
    rows = map(int, case.lines.get("vllm.kv_size", EMPTY_ROWS))
    return any(json.loads(lines.fields[row]).get("device") == "CPU" for row in rows)
