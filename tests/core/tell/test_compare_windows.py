"""Two recorded windows side by side, where no steps tell which work is alike."""

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.report import Difference
from teller_core.data.trace import NO_LINK, Lane, Layer, Origin, Trace
from teller_core.data.tree import ROOT, Tree
from teller_core.tell.compare_windows import PARTS, Window, _covered, compare_windows, window

NAMES = ("gemm", "norm", "ncclDevKernel_AllReduce", "cudaLaunchKernel", "aten::mm", "copy")
LAYERS = (Layer.KERNEL, Layer.KERNEL, Layer.COMMUNICATION, Layer.RUNTIME, Layer.OPERATOR, Layer.KERNEL)
GRIDS = [json.dumps({"grid": [n, 1, 1], "block": [32, 1, 1]}) for n in (4, 8)]
Row = tuple[int, int, int, int]
"""start, dur, name, and the grid (-1 for none)."""


def tree_of(rows: Sequence[Row]) -> Tree:
    ordered = sorted(rows)
    start, dur, name, grid = (np.array(column, dtype=np.int64) for column in zip(*ordered, strict=True))
    layer = np.array([LAYERS[n] for n in name], dtype=np.uint8)
    device = np.isin(layer, (Layer.KERNEL, Layer.COMMUNICATION))
    trace = Trace(
        start=start,
        dur=dur,
        name=name.astype(np.int32),
        lane=np.where(device, 1, np.where(layer == Layer.RUNTIME, 0, 2)).astype(np.int32),
        category=np.where(name == 5, 2, device).astype(np.uint8),
        layer=layer,
        link=np.full(len(rows), NO_LINK),
        arg=grid.astype(np.int32),
        names=NAMES,
        lanes=[Lane("1", "1", False), Lane("0", "7", True), Lane("1", "2", False)],
        categories=["cuda_runtime", "kernel", "gpu_memcpy"],
        args=GRIDS,
        origin=Origin("nsight", "unix"),
    )
    size = len(rows)
    return Tree(trace, np.full(size, ROOT, dtype=np.int32), np.arange(1, size + 1, dtype=np.int32))


def rounds(count: int, period: int, *, seed: int = 0, slower: float = 1.0, host: float = 1.0, grid: int = 0) -> Window:
    """A window of ``count`` rounds, each ``period`` long: two kernels, a collective, three calls and three operators."""
    rng, rows = np.random.default_rng(seed), list[Row]()
    for k in range(count):
        at = k * period
        rows += [(at, int(rng.normal(100, 2) * slower), 0, grid), (at + 400, int(rng.normal(60, 2)), 0, 1)]
        rows += [(at + 600, int(rng.normal(50, 3)), 1, 0), (at + 700, int(rng.normal(80, 3)), 2, 0)]
        rows += [(at + n * 50, int(rng.normal(20, 1) * host), 3, -1) for n in range(3)]
        rows += [(at + n * 200, int(rng.normal(90, 4) * host), 4, -1) for n in range(3)]
    found = window(tree_of(rows))
    assert found is not None
    return found


def named(said: Sequence[Difference], what: str) -> Difference:
    return next(d for d in said if d.what == what)


def test_the_same_work_in_two_recordings_does_not_differ_surely() -> None:
    said = list(compare_windows([rounds(200, 1000)], [rounds(200, 1000, seed=1)]))
    assert said
    assert [d.what for d in said if d.sure] == []


def test_a_device_that_waits_for_its_host_is_told_from_one_that_computes_longer() -> None:
    said = list(compare_windows([rounds(200, 1000)], [rounds(160, 1250, seed=1, host=1.5)]))
    idle, started = named(said, "device idle"), named(said, "kernels started")
    assert idle.sure and idle.before is not None and abs(idle.before - 71) < 1 and (idle.ratio or 0) > 1
    assert started.sure and started.low is not None and started.high is not None
    assert started.low <= 0.8 <= started.high < 1
    assert named(said, "own time of an operator of one name").ratio == 1.5
    kernels = named(said, "a kernel of one name and grid")
    assert not kernels.sure and kernels.low is not None and kernels.high is not None
    assert 0.98 < kernels.low <= 1 <= kernels.high < 1.02


def test_a_slower_kernel_is_named_with_its_grid_and_the_others_are_not() -> None:
    said = list(compare_windows([rounds(200, 1000)], [rounds(200, 1000, seed=1, slower=1.5)]))
    slow = named(said, "gemm (4x1x1), each call")
    assert slow.sure and slow.ratio is not None and abs(slow.ratio - 1.5) < 0.02
    assert [d.what for d in said if d.sure and d.what.endswith("each call")] == [slow.what]


def test_a_kernel_of_another_grid_is_another_kernel() -> None:
    said = list(compare_windows([rounds(200, 1000)], [rounds(200, 1000, seed=1, grid=-1)]))
    alone = {d.what: (d.before, d.after, d.ratio) for d in said if "alone" in d.what}
    assert set(alone) == {"calls of gemm (4x1x1), before alone", "calls of gemm, after alone"}
    assert all(ratio is None and 0 in (before, after) for before, after, ratio in alone.values())


def test_without_work_on_a_device_there_is_no_window() -> None:
    assert window(tree_of([(0, 5, 3, -1), (5, 5, 4, -1)])) is None
    assert list(compare_windows([], [rounds(10, 1000)])) == []


def test_copies_keep_a_device_busy_but_are_no_kernels() -> None:
    found = window(tree_of([(k * 10, 10, 5, -1) for k in range(100)]))
    assert found is not None
    assert (found.idle.max(), found.started.max(), found.sending.max(), len(found.idle)) == (0, 0, 0, PARTS)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=12),
    st.lists(st.integers(-5, 100), min_size=2, max_size=6),
)
@settings(max_examples=200, deadline=None)
def test_covered_time_is_what_a_clock_would_count(ranges: list[tuple[int, int]], edges: list[int]) -> None:
    start = np.array([a for a, _ in ranges], dtype=np.int64)
    end = np.array([a + n for a, n in ranges], dtype=np.int64)
    edges = sorted(edges)
    ticks = [sum(any(a <= t < a + n for a, n in ranges) for t in range(low, high)) for low, high in pairwise(edges)]
    assert _covered(start, end, np.array(edges, dtype=np.int64)).tolist() == ticks
