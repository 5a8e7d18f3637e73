"""Rules for what a host that computes the model waits for without using it: a call that sleeps, a memory that others use up."""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge.evidence import HINTED, SAMPLED, Clue, cost, count
from teller_core.judge.holds import Bool
from teller_core.judge.intervals import overlaps
from teller_core.judge.places import own_time, step_rows
from teller_core.judge.prepare import EMPTY_ROWS, Case
from teller_core.judge.scene import Scene

ASLEEP = 0.35
"""A call sleeps where the process uses at most this share of a processor in the time that it adds."""
WEIGHTS = re.compile(r"linear|addmm|\bmm$|::mm|matmul|bmm|gemm|embedding", re.I)
"""Operators that read the model's weights: with few tokens a step they go as fast as memory does."""
GROWN, KEPT = 1.3, 1.15
"""Operators that read weights take at least the first times as long as in calm steps, the others at most the second."""
OF_ALL = 0.1
"""Two operators at least must have grown, each by this share of it all: one alone is a slow operator."""
LEAST_STEPS = 6
"""Fewer calm steps tell no calm time."""
OTHERS = ""


def blocking_call(scene: Scene) -> Clue | None:
    """Its steps grew, and in what they grew by no processor was used, waited for or blocked, and nothing was read or written."""
    held, case = scene.holds, scene.case
    working = sum(rank.role != "frontend" for rank in case.capture.ranks)
    if not held.judged or working > 1 or not case.once("computed on the host", _on_host):
        return None
    if (
        case.apart
    ):  # an engine sleeps, too, while a front end of its own is late, and its workers spin while it does not
        return None
    if not (scene.counted("run_ns") and scene.counted("run_queue_wait_ns") and scene.counted("pressure_io_some_us")):
        return None
    late = overlaps(case.pauses["thread_lag"], held.low, held.high)
    rest = (held.rest - late).clip(0)
    rows = np.flatnonzero(rest > 0)
    if not len(rows):
        return None
    used = case.counters["run_ns"].growth(held.low[rows], held.high[rows])
    rate = case.once("usual use", _usual_use)
    asked = rate * (held.high[rows] - held.low[rows] - rest[rows]).clip(0)
    more, ns = float((used - asked).sum()), int(rest[rows].sum())
    if more > ASLEEP * rate * ns or scene.case.once("operators grew", _operators_grew):
        return None
    worst = int(rows[np.argmax(rest[rows])])
    evidence = [
        cost("what its steps and the gaps between them grew by, unexplained", ns, kind="step", scope="its_steps"),
        cost("of it, a processor was used", int(max(more, 0.0)), kind="sample", scope="capture"),
        count("steps and gaps that grew", len(rows), unit="steps", scope="its_steps"),
        cost("run-queue wait beyond the calm level", int(scene.beyond_calm("run_queue_wait_ns")), kind="sample",
             scope="capture"),
    ]  # fmt: skip
    step = int(held.step[worst])
    return Clue("host.blocking_call", ns, SAMPLED * 0.9, evidence, step=step, layer="python")


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
    if case.capture.tier < 4 or not case.once("computed on the host", _on_host):
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


def _operators_grew(case: Case) -> bool:
    """Whether a profile says that the operators of slow steps took longer: then nobody slept."""
    table = case.once("by operator", _by_operator)
    if table is None:
        return False
    return _grew(table, [*table.took], np.flatnonzero(table.slow)) > GROWN


def _usual_use(case: Case) -> float:
    """Processors that the service's processes use while steps run, as a rule."""
    rate = case.counters["run_ns"].rate
    return float(np.median(rate[rate > 0])) / 1e9 if (rate > 0).any() else 0.0


def _on_host(case: Case) -> bool:
    """Whether the model is computed on the host: a profile without a device, or an engine that keeps its KV cache there."""
    profiled = [rank.tree for rank in case.capture.ranks if rank.tree is not None and case.profiled.any()]
    if profiled:
        return not any(bool(tree.trace.on_device.any()) for tree in profiled)
    lines = case.capture.lines
    rows = map(int, case.lines.get("vllm.kv_size", EMPTY_ROWS))
    return any(json.loads(lines.fields[row]).get("device") == "CPU" for row in rows)
