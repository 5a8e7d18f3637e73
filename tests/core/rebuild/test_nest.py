"""The call-chain tree equals the one that its definition gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.rebuild.nest import nest
from tests.core.rebuild.tree_oracle import Span, nested

HOST, OTHER, STREAM, SECOND, NOTES = (
    Lane("1", "1", False), Lane("1", "2", False), Lane("0", "7", True), Lane("0", "9", True), Lane("0", "7 annotations", True)
)  # fmt: skip


def trace_of(spans: list[Span]) -> Trace:
    lanes = list(dict.fromkeys(span.lane for span in spans))
    place = {lane: i for i, lane in enumerate(lanes)}
    rows = len(spans)
    return Trace(
        start=np.array([s.start for s in spans], dtype=np.int64),
        dur=np.array([s.dur for s in spans], dtype=np.int64),
        name=np.arange(rows, dtype=np.int32),
        lane=np.array([place[s.lane] for s in spans], dtype=np.int32),
        category=np.zeros(rows, dtype=np.uint8),
        layer=np.array([s.layer for s in spans], dtype=np.uint8),
        link=np.array([s.link for s in spans], dtype=np.int64),
        arg=np.full(rows, -1, dtype=np.int32),
        names=[str(i) for i in range(rows)],
        lanes=lanes,
        categories=["any"],
        args=[],
        origin=Origin("made", "local"),
        events_in_file=rows,
    )


def host_span(lane: Lane) -> st.SearchStrategy[Span]:
    times = st.integers(0, 12)
    layers = st.sampled_from([Layer.OPERATOR, Layer.PYTHON, Layer.RUNTIME, Layer.RUNTIME])
    return st.builds(Span, times, times, st.just(lane), layers, st.sampled_from([-1, 1, 2, 3]))


def device_span(lane: Lane) -> st.SearchStrategy[Span]:
    layers = st.sampled_from([Layer.KERNEL, Layer.COMMUNICATION, Layer.ENGINE, Layer.RUNTIME])
    return st.builds(
        Span, st.integers(0, 20), st.integers(0, 6), st.just(lane), layers, st.sampled_from([-1, 1, 2, 3, 4])
    )


spans = st.lists(
    st.one_of(host_span(HOST), host_span(HOST), host_span(OTHER), device_span(STREAM), device_span(SECOND)), max_size=24
)


@given(spans)
@settings(max_examples=600)
def test_any_trace_nests_as_the_definition_says(made: list[Span]) -> None:
    tree, expected = nest(trace_of(made)), nested(made)
    tree.check()
    assert tree.trace.name.tolist() == expected.rows
    assert tree.parent.tolist() == expected.parent
    assert (tree.crossings, tree.unlaunched) == (expected.crossings, expected.unlaunched)


@pytest.mark.parametrize("seed", range(3))
def test_long_traces_nest_as_the_definition_says(seed: int) -> None:
    random = np.random.default_rng(seed)
    made = [
        Span(int(start), int(dur), lane, layer, int(link))
        for start, dur, link, (lane, layer) in zip(
            random.integers(0, 4000, 3000),
            random.integers(0, 60, 3000) ** 2 // 20,
            random.integers(1, 900, 3000),
            [
                [(HOST, Layer.PYTHON), (HOST, Layer.RUNTIME), (OTHER, Layer.RUNTIME), (STREAM, Layer.KERNEL)][k]
                for k in random.integers(0, 4, 3000)
            ],
            strict=True,
        )
    ]
    tree, expected = nest(trace_of(made)), nested(made)
    assert tree.trace.name.tolist() == expected.rows
    assert tree.parent.tolist() == expected.parent
    assert tree.crossings == expected.crossings > 0


def parents(made: list[Span]) -> list[int | None]:
    """Of each span, in the order given, the span it hangs under."""
    tree = nest(trace_of(made))
    row = tree.trace.name.tolist()
    above = {row[i]: row[p] if p >= 0 else None for i, p in enumerate(tree.parent.tolist())}
    return [above[i] for i in range(len(made))]


def on(lane: Lane, start: int, end: int, layer: Layer = Layer.OPERATOR, link: int = -1) -> Span:
    return Span(start, end - start, lane, layer, link)


def test_of_two_equal_ranges_the_earlier_in_the_file_is_the_parent() -> None:
    assert parents([on(HOST, 0, 10), on(HOST, 0, 10)]) == [None, 0]


def test_of_two_ranges_that_start_together_the_longer_is_the_parent() -> None:
    assert parents([on(HOST, 0, 5), on(HOST, 0, 10)]) == [1, None]


def test_ranges_that_touch_are_siblings_and_do_not_cross() -> None:
    made = [on(HOST, 0, 20), on(HOST, 0, 10), on(HOST, 10, 20)]
    assert parents(made) == [None, 0, 0]
    assert nest(trace_of(made)).crossings == 0


def test_an_instant_belongs_to_the_range_that_ends_with_it_unless_one_starts_with_it() -> None:
    assert parents([on(HOST, 0, 10), on(HOST, 10, 10)]) == [None, 0]
    assert parents([on(HOST, 0, 10), on(HOST, 10, 20), on(HOST, 10, 10)]) == [None, None, 1]


def test_a_range_that_ends_outside_the_one_it_started_in_crosses_it() -> None:
    made = [on(HOST, 0, 100), on(HOST, 10, 30), on(HOST, 20, 60), on(HOST, 25, 28), on(HOST, 50, 70)]
    assert parents(made) == [None, 0, 0, 2, 0]
    assert nest(trace_of(made)).crossings == 2


def test_a_crossing_is_counted_though_another_range_came_between() -> None:
    made = [on(HOST, 0, 10), on(HOST, 5, 15), on(HOST, 8, 12)]
    assert parents(made) == [None, None, 1]
    assert nest(trace_of(made)).crossings == 2


def test_a_kernel_hangs_under_its_launch_and_may_outlive_it() -> None:
    made = [on(HOST, 0, 10), on(HOST, 2, 4, Layer.RUNTIME, 7), on(STREAM, 50, 90, Layer.KERNEL, 7)]
    tree = nest(trace_of(made))
    assert tree.parent.tolist() == [-1, 0, 1]
    assert tree.unlaunched == 0


def test_a_graph_launch_owns_all_kernels_it_replays_in_the_order_they_start() -> None:
    kernels = [
        on(STREAM, 90, 95, Layer.KERNEL, 7),
        on(SECOND, 40, 99, Layer.KERNEL, 7),
        on(STREAM, 41, 60, Layer.KERNEL, 7),
    ]
    tree = nest(trace_of([*kernels, on(HOST, 0, 10, Layer.RUNTIME, 7)]))
    assert tree.parent.tolist() == [-1, 0, 0, 0]
    assert tree.trace.start.tolist() == [0, 40, 41, 90]


def test_of_two_calls_with_one_correlation_the_inner_one_owns_the_kernel() -> None:
    made = [
        on(HOST, 0, 10, Layer.RUNTIME, 7), on(HOST, 2, 4, Layer.RUNTIME, 7), on(STREAM, 50, 90, Layer.KERNEL, 7)
    ]  # fmt: skip
    assert parents(made) == [None, 0, 1]


def test_a_kernel_queued_before_the_window_is_a_root_and_counted() -> None:
    tree = nest(trace_of([on(HOST, 0, 10, Layer.RUNTIME, 7), on(STREAM, 1, 2, Layer.KERNEL, 3)]))
    assert tree.parent.tolist() == [-1, -1]
    assert tree.unlaunched == 1


def test_kernels_that_overlap_on_a_stream_do_not_nest() -> None:
    assert parents([on(STREAM, 0, 100, Layer.KERNEL), on(STREAM, 10, 20, Layer.KERNEL)]) == [None, None]


def test_an_annotation_on_a_device_is_a_root_and_no_lost_work() -> None:
    tree = nest(trace_of([on(HOST, 0, 9, Layer.RUNTIME, 7), on(NOTES, 1, 2, Layer.ENGINE, 7)]))
    assert tree.parent.tolist() == [-1, -1]
    assert tree.unlaunched == 0


def test_a_staircase_of_a_hundred_thousand_crossing_ranges_takes_no_longer_than_a_ladder() -> None:
    rows = 100_000
    made = trace_of([on(HOST, 0, 1)])
    start = np.arange(rows, dtype=np.int64)
    zeros = np.zeros(rows, dtype=np.int32)
    stairs = Trace(
        start, np.full(rows, rows, np.int64), zeros, zeros, zeros.astype(np.uint8), np.full(rows, Layer.OPERATOR, np.uint8),
        np.full(rows, -1, np.int64), zeros - 1, ["x"], made.lanes, ["any"], [], made.origin, events_in_file=rows,
    )  # fmt: skip
    tree = nest(stairs)
    assert tree.crossings == rows - 1
    assert set(tree.parent.tolist()) == {-1}


def test_a_trace_without_rows_is_a_tree_without_rows() -> None:
    tree = nest(trace_of([]))
    tree.check()
    assert len(tree) == 0
