"""A slice holds the chain to every suspect, keeps order, and never costs more than it may."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.context import slicing
from teller_core.context.dependencies import StepSpans
from teller_core.context.slicing import Cut, Room, causal_slice, price
from teller_core.data.assessment import Candidates
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from tests.core.judge.service import MS, US, Rows, Work, service

PLENTY = 1_000_000


def suspects(rows: list[int], rank: int = 0) -> Candidates:
    n = len(rows)
    return Candidates(
        step=np.zeros(n, dtype=np.int32),
        rank=np.full(n, rank, dtype=np.int32),
        row=np.array(rows, dtype=np.int32),
        name=["x"] * n,
        layer=np.zeros(n, dtype=np.uint8),
        value=np.full(n, 2 * MS, dtype=np.int64),
        normal=np.full(n, MS, dtype=np.int64),
        residual=np.full(n, 5.0),
        excess=np.arange(n, 0, -1, dtype=np.int64) * MS,
        baseline=np.full(n, -1, dtype=np.int32),
        method=["residual"] * n,
    )


def cut(tree: Tree, rows: list[int], budget: int = PLENTY, first: int = 0) -> Cut:
    found = suspects([row + first for row in rows])
    begin = int(tree.trace.start[0]) if len(tree) else 0
    return causal_slice(StepSpans(0, first, tree), found, begin=begin, room=Room(budget), text=lambda name: name[:80])


def rows_of(part: Cut, first: int = 0) -> list[int]:
    return [int(line.handle.partition(":")[2]) - first for line in part.lines]


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Forests with few names and layers, host spans nested in time and kernels under some of them."""
    rows, now = Rows(), 1_000

    def node(depth: int) -> None:
        nonlocal now
        name, layer = draw(st.sampled_from("abc")), draw(st.sampled_from([Layer.PYTHON, Layer.OPERATOR, Layer.ENGINE]))
        rows.open(name, layer, now)
        now += draw(st.integers(0, 50)) * US
        for _ in range(draw(st.integers(0, 3)) if depth else 0):
            node(depth - 1)
        if draw(st.booleans()):
            rows.leaf("kernel", Layer.KERNEL, now, draw(st.integers(0, 900)) * US, lane=2)
        now += draw(st.integers(0, 50)) * US
        rows.close(now)

    for _ in range(draw(st.integers(1, 4))):
        node(draw(st.integers(0, 4)))
    return rows.tree()


@given(trees(), st.data())
def test_the_chain_to_every_suspect_is_there_but_for_idle_python_frames(tree: Tree, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(tree) - 1), max_size=4, unique=True))
    shown = set(rows_of(cut(tree, rows)))
    for row in rows:
        chain = [a for a in tree.ancestors(row) if tree.trace.layer[a] != Layer.PYTHON]
        assert {row, *chain} <= shown


@given(trees(), st.data(), st.integers(0, 2000))
def test_a_slice_never_costs_more_than_its_budget_and_says_what_it_left_out(
    tree: Tree, data: st.DataObject, budget: int
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(tree) - 1), max_size=4, unique=True))
    part = cut(tree, rows, budget)
    assert sum(price(line) for line in part.lines) <= part.tokens <= budget
    assert part.events == len(tree)
    assert part.cut == len(tree) - sum(line.count for line in part.lines)
    shown = set(rows_of(part))
    assert part.missed == len(set(rows) - shown)
    for row in shown & set(rows):
        assert {a for a in tree.ancestors(row) if tree.trace.layer[a] != Layer.PYTHON} <= shown


@given(trees(), st.data())
def test_parents_come_before_children_and_siblings_in_the_order_of_their_start(tree: Tree, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(tree) - 1), max_size=3, unique=True))
    part = cut(tree, rows)
    path: list[str] = []
    last: dict[int, float] = {}
    for line, row in zip(part.lines, rows_of(part), strict=True):
        del path[line.depth :]
        assert len(path) == line.depth
        if path:
            assert path[-1] in {tree.trace.names[tree.trace.name[above]] for above in tree.ancestors(row)}
        last = {depth: start for depth, start in last.items() if depth <= line.depth}
        assert line.start_ms >= last.get(line.depth, -np.inf)
        last[line.depth] = line.start_ms
        path.append(line.text)


def test_like_calls_are_one_line_with_their_count_and_their_time() -> None:
    rows, now = Rows(), 0
    rows.open("step", Layer.ENGINE, now)
    for _ in range(5):
        rows.open("aten::linear", Layer.OPERATOR, now)
        rows.leaf("aten::mm", Layer.OPERATOR, now, 2 * MS)
        now += 3 * MS
        rows.close(now)
    rows.close(now)
    part = cut(rows.tree(), [6])
    said = [(line.depth, line.text, line.count, line.dur_ms, line.self_ms, line.residual) for line in part.lines]
    assert said == [
        (0, "step", 1, 15.0, 0.0, None),
        (1, "aten::linear", 1, 3.0, 1.0, None),
        (2, "aten::mm", 1, 2.0, 2.0, None),
        (1, "aten::linear", 3, 9.0, 3.0, None),
        (2, "aten::mm", 3, 6.0, 6.0, None),
        (1, "aten::linear", 1, 3.0, 1.0, None),
        (2, "aten::mm", 1, 2.0, 2.0, 5.0),
    ]
    assert part.cut == 0


def test_device_work_stands_under_the_call_that_launched_it_and_pulls_it_in() -> None:
    rows = Rows()
    rows.open("step", Layer.ENGINE, 0)
    rows.leaf("aten::slow_on_host", Layer.OPERATOR, 0, 4 * MS)
    rows.open("cudaLaunchKernel", Layer.RUNTIME, 4 * MS)
    rows.leaf("gemm", Layer.KERNEL, 4 * MS + 5, 90 * MS, lane=2)
    rows.close(4 * MS + 10)
    rows.close(5 * MS)
    part = cut(rows.tree(), [], budget=140)
    assert [(line.depth, line.text) for line in part.lines] == [(0, "step"), (1, "cudaLaunchKernel")]
    assert [(line.depth, line.text) for line in cut(rows.tree(), []).lines][-1] == (2, "gemm")


def test_a_suspected_kernel_brings_in_the_call_that_waited_for_it_before_what_is_heavier() -> None:
    rows = Rows()
    rows.open("step", Layer.ENGINE, 0)
    rows.open("aten::mm", Layer.OPERATOR, 2 * MS)
    rows.open("cudaLaunchKernel", Layer.RUNTIME, 2 * MS)
    kernel = rows.leaf("gemm", Layer.KERNEL, 2 * MS + 9 * US, 9 * MS, lane=2)
    rows.close(2 * MS + 5 * US)
    rows.close(2 * MS + 6 * US)
    rows.open("aten::item", Layer.OPERATOR, 3 * MS)
    rows.leaf("cudaStreamSynchronize", Layer.RUNTIME, 3 * MS, 8 * MS + 10 * US)
    rows.close(11 * MS + 20 * US)
    for k in range(20):
        rows.leaf(f"aten::heavy{k}", Layer.OPERATOR, (12 + 10 * k) * MS, 10 * MS)
    rows.close(300 * MS)
    chain = {"step", "aten::mm", "cudaLaunchKernel", "gemm"}
    found = cut(rows.tree(), [kernel], budget=600)
    assert chain | {"aten::item", "cudaStreamSynchronize"} <= {line.text for line in found.lines}
    assert found.unpaired == 0
    assert "cudaStreamSynchronize" not in {line.text for line in cut(rows.tree(), [], budget=600).lines}
    small = cut(rows.tree(), [kernel], budget=sum(price(line) for line in found.lines if line.text in chain) + 40)
    assert (small.missed, small.unpaired) == (0, 1)
    assert chain <= {line.text for line in small.lines}


def test_what_bears_on_a_suspect_takes_at_most_half_of_what_its_chain_left() -> None:
    rows, now = Rows(), 0
    rows.open("step", Layer.ENGINE, now)
    rows.open("suspect", Layer.OPERATOR, now)
    for k in range(100):
        rows.leaf(f"child{k}", Layer.OPERATOR, now, 200 * US)
        now += 200 * US
    rows.close(now)
    for k in range(20):
        rows.leaf(f"heavy{k}", Layer.OPERATOR, now, 30 * MS)
        now += 30 * MS
    rows.close(now)
    part = cut(rows.tree(), [1], budget=1200)
    kinds = [line.text.rstrip("0123456789") for line in part.lines]
    assert kinds.count("heavy") >= 8
    assert kinds.count("heavy") == 20 or kinds.count("child") <= kinds.count("heavy") + 2


@given(trees(), st.data(), st.integers(0, 30))
def test_a_slice_never_has_more_lines_than_nodes_are_allowed(tree: Tree, data: st.DataObject, nodes: int) -> None:
    rows = data.draw(st.lists(st.integers(0, len(tree) - 1), max_size=4, unique=True))
    part = causal_slice(StepSpans(0, 0, tree), suspects(rows), begin=0, room=Room(PLENTY, nodes), text=str)
    assert len(part.lines) <= nodes
    assert part.missed == sum(row not in rows_of(part) for row in rows)


def test_stacks_of_python_frames_leave_room_for_operators() -> None:
    rows = Rows()
    for i in range(60):
        rows.open(f"a.py({i}): f", Layer.PYTHON, i)
    rows.leaf("aten::mm", Layer.OPERATOR, 60, 10 * MS)
    for i in range(60):
        rows.close(61 + 10 * MS + i)
    part = cut(rows.tree(), [60])
    assert [line.text for line in part.lines] == ["a.py(59): f", "aten::mm"]


def test_handles_are_rows_of_the_whole_tree() -> None:
    capture = service([Work() for _ in range(3)])
    tree = capture.ranks[0].tree
    assert tree is not None
    low, high = int(capture.work.row[1]), int(capture.work.row_stop[1])
    part = cut(tree.part(low, high), [5], first=low)
    assert f"0:{low + 5}" in {line.handle for line in part.lines}
    assert part.lines[0].handle == f"0:{low}"


def test_a_step_without_spans_is_an_empty_slice() -> None:
    assert cut(Rows().tree(), [1]) == Cut([], 0, 0, 0, 1)


def test_a_neighbor_on_its_stream_is_shown_also_where_it_was_called_from_an_idle_python_frame_at_the_top() -> None:
    rows = Rows()
    rows.open("aten::slow", Layer.OPERATOR, 0)
    rows.leaf("slow_kernel", Layer.KERNEL, MS, 50 * MS, lane=2)
    rows.close(MS)
    rows.open("thread.py: run", Layer.PYTHON, 0, lane=1)
    rows.open("aten::other", Layer.OPERATOR, 0, lane=1)
    rows.leaf("other_kernel", Layer.KERNEL, 51 * MS, 50 * MS, lane=2)
    rows.close(60 * MS)
    rows.close(60 * MS)
    part = cut(rows.tree(), [1])
    assert [(line.depth, line.text) for line in part.lines] == [
        (0, "aten::slow"),
        (1, "slow_kernel"),
        (0, "aten::other"),
        (1, "other_kernel"),
    ]


def chain(depth: int) -> Tree:
    """A call in a call in a call, each of another name."""
    rows = Rows()
    for at in range(depth):
        rows.open(f"f{at}", Layer.OPERATOR, at)
    for at in range(depth):
        rows.close(2 * depth + at)
    return rows.tree()


def test_of_a_chain_that_does_not_fit_no_more_lines_are_made_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    counted = slicing.price
    monkeypatch.setattr(slicing, "price", lambda line: made.append(1) or counted(line))
    assert cut(chain(2_000), [1_999, 1_000], budget=1_000).missed == 2
    assert len(made) < 100


def test_of_a_million_lines_that_find_no_room_few_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(names=[f"f{at}" for at in range(2_000)])
    for at in range(2_000):
        rows.leaf(f"f{at}", Layer.OPERATOR, at * US, US)
    made: list[int] = []
    counted = slicing.price
    monkeypatch.setattr(slicing, "price", lambda line: made.append(1) or counted(line))
    part = cut(rows.tree(), [], budget=1_000)
    assert len(part.lines) > 5
    assert len(made) <= len(part.lines) + slicing.MISFITS


@given(trees())
def test_the_heaviest_line_is_below_the_heaviest_line(tree: Tree) -> None:
    weight = slicing._weight(tree)
    path, below = [], [row for row in range(len(tree)) if tree.parent[row] < 0]
    while below:
        path.append(max(below, key=lambda row: (weight[row], -row)))
        below = tree.children(path[-1])
    assert list(slicing._heaviest(tree, weight)) == path
