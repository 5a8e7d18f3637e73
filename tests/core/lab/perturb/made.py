"""Recordings of the tests' machine as captures: ranks with a device each that meet once a step."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from teller_core.data.capture import Capture, Collectives, Meetings, Rank
from teller_core.data.steps import StepWork
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Layer
from teller_core.lab.perturb.episodes import Prepared, prepared
from teller_core.lab.perturb.pieces import pieces, ready
from tests.core.judge.replay.machine import Do, Ran, run, tree_of
from tests.core.judge.service import MS, US, Rows, Work, capture, steps_table

LAYERS = 5


def program(steps: int, seed: int) -> list[list[Do]]:
    """What a rank does in each step: kernels launched ahead, a meeting, and a wait for all of it."""
    chance = np.random.default_rng(seed)

    def ns(us: float) -> int:
        return int(us * chance.uniform(0.9, 1.1)) * US

    every: list[list[Do]] = []
    for _ in range(steps):
        own: list[Do] = []
        for _ in range(LAYERS):
            own += [Do("op", "aten::norm", ns(12)), Do("launch", "gemm", ns(60)), Do("op", "aten::silu", ns(8))]
            own += [Do("launch", "attention", ns(30))]
        own += [Do("meet", "ncclDevKernel_AllReduce", 50 * US), Do("launch", "sampler", ns(10))]
        every.append([*own, Do("sync", "wait", 0), Do("op", "detokenize", ns(20))])
    return every


@cache
def recording(steps: int = 12, ranks: int = 2) -> Capture:
    """A capture of ``steps`` steps of some ranks."""
    programs = [program(steps, rank) for rank in range(ranks)]
    flat = [[do for step in own for do in step if ranks > 1 or do.what != "meet"] for own in programs]
    rans = run(flat, {}, [1 * MS + 30 * US * rank for rank in range(ranks)])
    trees = [tree_of(ran) for ran in rans]
    rows: list[tuple[int, ...]] = []
    for rank, (ran, (tree, where)) in enumerate(zip(rans, trees, strict=True)):
        last = [k for k, span in enumerate(ran.spans) if span[0] == "detokenize"]
        low = 0
        for step, k in enumerate(last):
            high = where[k] + 1
            begin, end = tree.trace.start[low:high].min(), tree.trace.end[low:high].max()
            rows.append((step, rank, int(begin), int(end), low, high))
            low = high
    rows.sort()
    table = np.array(rows, dtype=np.int64).T
    small = [column.astype(np.int32) for column in table]
    work = StepWork(small[0], small[1], table[2], table[3], small[4], small[5])
    begin = np.array([table[2][table[0] == step].min() for step in range(steps)])
    end = np.array([table[3][table[0] == step].max() for step in range(steps)])
    places = [Rank(rank, "host", 100 + rank, "worker", tree, -1) for rank, (tree, _) in enumerate(trees)]
    made = capture(steps_table([Work()] * steps, begin, end), work, places)
    return replace(made, collectives=_called(rans, trees), meetings=_met(steps if ranks > 1 else 0, ranks))


def _called(rans: Sequence[Ran], trees: Sequence[tuple]) -> Collectives:
    calls = [
        (n, rank, trees[rank][1][row], ran.spans[row][2], ran.spans[row][3])
        for rank, ran in enumerate(rans)
        for n, (_, row, _) in enumerate(ran.calls)
    ]
    table = np.array(sorted(calls), dtype=np.int64).reshape(-1, 5).T
    small = [column.astype(np.int32) for column in table]
    unknown = np.full(len(calls), UNKNOWN, dtype=np.int64)
    zero = np.zeros(len(calls), dtype=np.int32)
    return Collectives(zero, table[0], small[0], small[1], small[2], table[3], table[4], unknown, zero - np.int32(1))


def _met(count: int, ranks: int) -> Meetings:
    many = np.full(count, ranks, dtype=np.int32)
    unknown, nobody = np.full(count, UNKNOWN, dtype=np.int64), np.full(count, -1, dtype=np.int32)
    words = (["g"] * count, ["all_reduce"] * count, ["order"] * count)
    return Meetings(*words, many, many, unknown, nobody, unknown, unknown, unknown, nobody, nobody)


@cache
def with_graphs(steps: int = 12) -> Capture:
    """A rank whose decode steps each replay a graph of twelve kernels."""
    rows, now, table = Rows(), 1 * MS, []
    for step in range(steps):
        low, begin = len(rows.start), now
        rows.leaf("aten::index", Layer.OPERATOR, now, 20 * US)
        launch = rows.open("cudaGraphLaunch", Layer.RUNTIME, now + 22 * US)
        kernel = now + 40 * US
        for k in range(12):
            dur = (20 + (k * 7 + step) % 5) * US
            rows.leaf(("gemm", "attention", "norm")[k % 3], Layer.KERNEL, kernel, dur, lane=2)
            kernel += dur + 1 * US
        rows.close(now + 30 * US)
        for name in ("aten::norm", "aten::add", "aten::mul", "aten::cat"):
            rows.leaf(name, Layer.OPERATOR, now + (32 + 2 * len(rows.start) % 3) * US, 0)
        rows.leaf("cudaStreamSynchronize", Layer.RUNTIME, now + 40 * US, kernel - now - 40 * US + 3 * US)
        rows.leaf("aten::topk", Layer.OPERATOR, kernel + 5 * US, 15 * US)
        now = kernel + 25 * US
        assert rows.start[launch] > begin
        table.append((step, 0, begin, kernel + 20 * US, low, len(rows.start)))
    columns = np.array(table, dtype=np.int64).T
    small = [column.astype(np.int32) for column in columns]
    work = StepWork(small[0], small[1], columns[2], columns[3], small[4], small[5])
    made = steps_table([Work(kv=800 + step) for step in range(steps)], columns[2], columns[3])
    return capture(made, work, [Rank(0, "host", 100, "worker", rows.tree(), -1)])


@cache
def first(kind: str = "ranks") -> Prepared:
    """The first piece of a recording: of two ``ranks``, ``one``, one of a ``single`` step, or with ``graphs``."""
    made = with_graphs() if kind == "graphs" else recording(1 if kind == "single" else 12, 2 if kind == "ranks" else 1)
    found = ready(made)
    return prepared(found, pieces(found)[0])
