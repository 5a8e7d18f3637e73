"""The edges between spans are those that a loop over all pairs finds; a wait points to what it waited for; ranks meet."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.context.dependencies import Met, StepSpans, across, dependencies
from teller_core.context.waits import CLOCKS, COPIES, WHOLE
from teller_core.data.capture import Collectives, no_meetings
from teller_core.data.graph import Graph, Kind, edges, joined
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import CAPTURED, NO_LINK, Lane, Layer
from teller_core.data.tree import Tree
from tests.core.judge.service import US, Rows

LANES = (
    Lane("p", "main", False),
    Lane("p", "other", False),
    Lane("gpu", "7", True),
    Lane("gpu", "8", True),
    Lane("gpu", "7 syncs", True),
    Lane("p", CAPTURED, False),
)
CALLS = ["cudaLaunchKernel", "cudaStreamSynchronize", "hipDeviceSynchronize", "cudaMemcpyAsync", "hipMemcpyWithStream"]
Edge = tuple[int, int, int]


def listed(graph: Graph, *kinds: Kind) -> list[Edge]:
    graph.check()
    rows = zip(graph.before.tolist(), graph.after.tolist(), graph.kind.tolist(), strict=True)
    return sorted(edge for edge in rows if not kinds or edge[2] in kinds)


def tree_of(rows: Rows) -> Tree:
    tree = rows.tree()
    return replace(tree, trace=replace(tree.trace, lanes=LANES))


class Made:
    """A tree drawn row by row: two threads of nested calls that launch, copy and wait, and two streams, each of which does its
    work in the order in which it was drawn.
    """

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.rows, self.free = draw, Rows(), {2: 0, 3: 0}

    def some(self, most: int) -> int:
        return self.draw(st.integers(0, most))

    def work(self, at: int) -> None:
        lane = self.draw(st.sampled_from([2, 3]))
        start = max(at + self.some(40) * US, self.free[lane])
        self.free[lane] = start + self.some(40) * US
        kind = self.draw(st.sampled_from([Layer.KERNEL, Layer.COMMUNICATION, Layer.ENGINE]))
        self.rows.leaf("gemm", kind, start, self.free[lane] - start, lane)

    def call(self, lane: int, now: int) -> int:
        name = self.draw(st.sampled_from(CALLS))
        self.rows.open(name, Layer.RUNTIME, now, lane)
        if name.endswith("Synchronize") and lane == 0 and self.draw(st.booleans()):
            self.rows.leaf("Stream Sync", Layer.RUNTIME, now, US, 4)
        captured = self.some(4) == 0
        if captured:
            self.rows.open("aten::mm", Layer.OPERATOR, now, 5)
        for _ in range(self.some(2)):
            self.work(now)
        if captured:
            self.rows.close(now)
        now += self.some(40) * US
        self.rows.close(now)
        return now

    def node(self, lane: int, now: int, depth: int) -> int:
        self.rows.open("aten::linear", Layer.OPERATOR, now, lane)
        for _ in range(self.some(3)):
            now += self.some(40) * US
            now = self.node(lane, now, depth - 1) if depth and self.draw(st.booleans()) else self.call(lane, now)
        now += self.some(40) * US
        self.rows.close(now)
        return now


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    made = Made(draw)
    for lane in (0, 1):
        now = 1_000_000
        for _ in range(made.some(3)):
            now = made.node(lane, now + US, 2)
    for _ in range(made.some(2)):
        made.work(0)
    return tree_of(made.rows)


def oracle(tree: Tree) -> list[Edge]:
    """The same edges, by loops over the rows and nothing else."""
    trace, row = tree.trace, range(len(tree))
    lane, parent = trace.lane.tolist(), tree.parent.tolist()
    work = [r for r in row if lane[r] in (2, 3) and trace.layer[r] in (Layer.KERNEL, Layer.COMMUNICATION)]
    caller = {r: parent[r] if lane[parent[r]] != 5 else parent[parent[r]] for r in work if parent[r] >= 0}
    out = [(parent[r], r, Kind.CHILD) for r in row if parent[r] >= 0 and r not in work]
    out += [(call, r, Kind.LAUNCH) for r, call in caller.items()]
    for r in row:
        before = [o for o in range(r) if parent[o] == parent[r] and lane[o] == lane[r]]
        out += [(before[-1], r, Kind.ORDER)] if before and lane[r] not in (2, 3, 4) else []
    start = trace.start.tolist()
    stream = {one: sorted((r for r in work if lane[r] == one), key=lambda r: (start[r], r)) for one in (2, 3)}
    for rows in stream.values():
        out += [(one, other, Kind.STREAM) for one, other in pairwise(rows)]
    out += waits_of(tree, stream, caller)
    return sorted((a, b, int(k)) for a, b, k in out)


def waits_of(tree: Tree, stream: dict[int, list[int]], caller: dict[int, int]) -> list[tuple[int, int, Kind]]:
    trace = tree.trace
    name = [str(trace.names[n]) for n in trace.name.tolist()]
    start, end = trace.start.tolist(), trace.end.tolist()
    copies = [r for r, call in caller.items() if COPIES.match(name[call]) and end[r] <= end[call]]
    out = [(r, caller[r], Kind.WAIT) for r in copies]
    for r in range(len(tree)):
        if trace.lane[r] not in (0, 1) or not WHOLE.match(name[r]):
            continue
        told = any(name[c] == "Stream Sync" for c in tree.children(r))
        found: list[tuple[int, int]] = []
        for one in (2,) if told else (2, 3):
            rows = [stream[one][: k + 1] for k in range(len(stream[one]))]
            given = [so_far for so_far in rows if all(start[caller[s]] < start[r] for s in so_far if s in caller)]
            done = [so_far for so_far in given if all(end[s] <= end[r] + CLOCKS for s in so_far)]
            found += [(max(end[s] for s in done[-1]), done[-1][-1])] if done else []
        out += [(max(found, key=lambda pair: pair[0])[1], r, Kind.WAIT)] if found else []
    return out


@given(trees())
def test_the_edges_are_those_that_loops_over_all_rows_find(tree: Tree) -> None:
    assert listed(dependencies(tree)) == oracle(tree)


@given(trees())
def test_no_edge_runs_against_time_but_by_what_clocks_and_overlapping_work_explain(tree: Tree) -> None:
    start, end = tree.trace.start, tree.trace.end
    graph = dependencies(tree)
    for before, after, kind in listed(graph):
        if kind in (Kind.CHILD, Kind.LAUNCH):
            assert start[before] <= start[after]
        elif kind == Kind.ORDER:
            assert end[before] <= start[after]
        elif kind == Kind.STREAM:
            assert start[before] <= start[after]
        else:
            assert end[before] <= end[after] + CLOCKS


def test_a_wait_for_all_streams_points_to_the_work_that_was_done_last() -> None:
    rows = Rows()
    rows.open("cudaLaunchKernel", Layer.RUNTIME, 0)
    one = rows.leaf("gemm", Layer.KERNEL, 5 * US, 40 * US, 2)
    rows.close(2 * US)
    rows.open("cudaLaunchKernel", Layer.RUNTIME, 3 * US)
    other = rows.leaf("gemm", Layer.KERNEL, 6 * US, 60 * US, 3)
    rows.close(4 * US)
    sync = rows.leaf("cudaDeviceSynchronize", Layer.RUNTIME, 5 * US, 62 * US)
    assert listed(dependencies(tree_of(rows)), Kind.WAIT) == [(other, sync, Kind.WAIT)]
    assert one != other


def test_work_that_was_launched_after_a_wait_began_is_not_what_it_waited_for() -> None:
    rows = Rows()
    sync = rows.leaf("hipStreamSynchronize", Layer.RUNTIME, 0, 100 * US)
    rows.open("hipLaunchKernel", Layer.RUNTIME, 10 * US, 1)
    rows.leaf("gemm", Layer.KERNEL, 12 * US, 20 * US, 2)
    rows.close(11 * US)
    assert sync == 0
    assert not listed(dependencies(tree_of(rows)), Kind.WAIT)


def recorded(kind: str, names: tuple[str, str], lane: int) -> Tree:
    """Work on stream 7 before and after a mark there; a call with a record that says it waits for that mark; work on 8."""
    rows = Rows()
    rows.open("cudaLaunchKernel", Layer.RUNTIME, 0)
    rows.leaf("before", Layer.KERNEL, 4 * US, 30 * US, 2)
    rows.close(2 * US)
    rows.leaf("cudaEventRecord", Layer.RUNTIME, 3 * US, US)
    rows.open("cudaLaunchKernel", Layer.RUNTIME, 5 * US)
    rows.leaf("behind", Layer.KERNEL, 34 * US, 30 * US, 2)
    rows.close(6 * US)
    rows.open(names[0], Layer.RUNTIME, 7 * US)
    rows.leaf(names[1], Layer.RUNTIME, 7 * US, US, lane)
    rows.close(60 * US)
    rows.open("cudaLaunchKernel", Layer.RUNTIME, 61 * US)
    rows.leaf("held", Layer.KERNEL, 62 * US, 5 * US, 3)
    rows.close(62 * US)
    tree = tree_of(rows)
    link, arg = np.full(len(tree), NO_LINK, dtype=np.int64), np.full(len(tree), -1, dtype=np.int32)
    link[2], arg[6] = 77, 0
    lanes = (*LANES, Lane("gpu", "8 syncs", True))
    said = f'{{"cuda_sync_kind": "{kind}", "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 77}}'
    return replace(tree, trace=replace(tree.trace, link=link, arg=arg, args=(said,), lanes=lanes))


def test_a_wait_for_an_event_points_to_the_last_work_before_its_mark() -> None:
    tree = recorded("Event Sync", ("cudaEventSynchronize", "Event Sync"), 4)
    assert listed(dependencies(tree), Kind.WAIT) == [(1, 5, Kind.WAIT)]


def test_a_stream_that_was_told_to_wait_is_held_by_the_last_work_before_the_mark() -> None:
    tree = recorded("Stream Wait Event", ("cudaStreamWaitEvent", "Stream Wait Event"), 6)
    assert listed(dependencies(tree), Kind.WAIT, Kind.HOLD) == [(1, 8, Kind.HOLD)]


def test_what_waits_for_an_event_of_which_nothing_was_read_has_no_edge() -> None:
    tree = recorded("Stream Wait Event", ("cudaStreamWaitEvent", "Stream Wait Event"), 6)
    few = replace(tree.trace, link=np.empty(0, dtype=np.int64), arg=np.empty(0, dtype=np.int32), args=())
    assert not listed(dependencies(replace(tree, trace=few)), Kind.WAIT, Kind.HOLD)


def one_call(start: int = 0, host: int = 0) -> Tree:
    rows = Rows()
    rows.leaf("step", Layer.ENGINE, start, US)
    for k in range(host):
        rows.leaf("c10d::allreduce_", Layer.COMMUNICATION, start + (2 + 10 * k) * US, US)
    return tree_of(rows)


def calls(*rows: tuple[int, int, int, int, int]) -> Collectives:
    """Rows of (sequence, rank, row, start, late)."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    n = len(table)
    short = [column.astype(np.int32) for column in table.T]
    return Collectives(
        group=np.zeros(n, dtype=np.int32),
        sequence=table[:, 0],
        step=np.zeros(n, dtype=np.int32),
        rank=short[1],
        row=short[2],
        start=table[:, 3],
        dur=np.full(n, US, dtype=np.int64),
        wait=np.full(n, UNKNOWN, dtype=np.int64),
        late=short[4],
    )


def parts(ranks: int, host: int = 0) -> list[StepSpans]:
    return [StepSpans(rank, 100, one_call(host=host)) for rank in range(ranks)]


def test_ranks_that_met_hang_on_the_one_that_came_last() -> None:
    met = Met(calls((5, 0, 100, 3, 2), (5, 1, 100, 9, 2), (5, 2, 100, 4, 2)), no_meetings())
    assert listed(across(parts(3), met)) == [(2, 0, Kind.COLLECTIVE), (2, 1, Kind.COLLECTIVE)]


def test_where_nobody_may_be_named_they_met_and_no_more_is_said() -> None:
    met = Met(calls((5, 0, 100, 3, -1), (5, 1, 100, 9, -1), (6, 0, 500, 9, 0)), no_meetings())
    assert listed(across(parts(2), met)) == [(1, 0, Kind.MET)]


def test_what_kept_the_late_rank_has_edges_to_those_that_waited() -> None:
    meetings = replace(no_meetings(), late=np.array([1], np.int32), kept=np.array([101], np.int32))
    met = Met(calls((5, 0, 100, 3, 1), (5, 1, 100, 9, 1)), meetings, first=5)
    found = across(parts(2, host=1), met)
    assert listed(found) == [(2, 0, Kind.COLLECTIVE), (3, 0, Kind.KEPT)]


@pytest.mark.parametrize("times", [(4 * US, 14 * US), (3 * US, 12 * US)])
def test_for_a_collective_on_a_thread_of_its_own_stands_the_call_that_handed_it_over(times: tuple[int, int]) -> None:
    first, second = times
    rows = [(5, 0, 900, first, 1), (5, 1, 900, first, 1), (6, 0, 901, second, 0), (6, 1, 901, second, 0)]
    found = across(parts(2, host=2), Met(calls(*rows), no_meetings()))
    assert listed(found) == [(2, 5, Kind.COLLECTIVE), (4, 1, Kind.COLLECTIVE)]


def test_a_communication_that_began_before_its_call_is_another_one_s() -> None:
    rows = [(5, 0, 900, 0, 1), (5, 1, 900, 0, 1), (6, 0, 901, 14 * US, 0), (6, 1, 901, 14 * US, 0)]
    assert listed(across(parts(2, host=2), Met(calls(*rows), no_meetings()))) == [(2, 5, Kind.COLLECTIVE)]


def test_a_rank_that_is_in_one_collective_twice_waited_for_no_call_of_its_own() -> None:
    twice = calls((5, 0, 100, 3, 1), (5, 1, 100, 9, 1), (5, 1, 101, 4, 1))
    assert listed(across(parts(2, host=1), Met(twice, no_meetings()))) == [(2, 0, Kind.COLLECTIVE)]


def test_a_rank_of_which_no_row_is_left_is_in_no_edge() -> None:
    nothing = [part._replace(tree=part.tree.part(0, 0)) for part in parts(2)]
    assert len(across(nothing, Met(calls((5, 0, 100, 3, 1), (5, 1, 100, 9, 1)), no_meetings()))) == 0


def test_a_collective_whose_call_nobody_saw_is_in_no_edge() -> None:
    rows = [(5, 0, 900, 50 * US, 1), (5, 1, 900, 51 * US, 1), (6, 0, 901, 90 * US, 0), (6, 1, 901, 91 * US, 0)]
    assert not len(across(parts(2, host=1), Met(calls(*rows), no_meetings())))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"after": [1]}, "differ in length"),
        ({"before": [-1, 0]}, "before the first"),
        ({"after": [1, 3]}, "behind the last"),
        ({"before": [1, 0]}, "on itself"),
        ({"kind": [9, 0]}, "none"),
    ],
)
def test_a_graph_that_contradicts_itself_is_refused(wrong: dict[str, list[int]], why: str) -> None:
    columns = SimpleNamespace(**({"before": [0, 0], "after": [1, 2], "kind": [0, 1]} | wrong))
    made = Graph(
        3,
        np.array(columns.before, dtype=np.int32),
        np.array(columns.after, dtype=np.int32),
        np.array(columns.kind, dtype=np.uint8),
    )
    with pytest.raises(ValueError, match=why):
        made.check()


def test_graphs_of_several_trees_are_numbered_one_behind_the_other() -> None:
    one = edges(3, [(Kind.CHILD, np.array([0, 0]), np.array([1, 2]))])
    assert listed(joined([one, one])) == [(0, 1, 0), (0, 2, 0), (3, 4, 0), (3, 5, 0)]
    assert (joined([one, one]).rows, len(joined([]))) == (6, 0)
