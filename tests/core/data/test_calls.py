"""The calls of a rank by name are those of its tree, found one by one."""

from collections import Counter
from pathlib import Path

from teller_core.data.calls import calls_of, edges_of
from teller_core.data.plain_names import is_frame
from teller_core.data.trace import Layer
from teller_core.data.tree import ROOT, Tree
from teller_core.ingest.kineto.reader import read
from teller_core.rebuild.nest import nest
from tests.core.judge.service import Work, service

CASES = sorted((Path(__file__).parents[2] / "data/kineto").glob("*/input.json"))
assert CASES


def made() -> Tree:
    tree = service([Work() for _ in range(4)]).ranks[0].tree
    assert tree is not None
    return tree


def trees() -> list[Tree]:
    return [*(nest(read(path)) for path in CASES if "is_no_trace" not in str(path)), made()]


def over(tree: Tree, row: int) -> int:
    """The nearest span over a row that is no Python function."""
    trace = tree.trace
    while (row := int(tree.parent[row])) != ROOT:
        if not is_frame(trace.names[int(trace.name[row])], int(trace.layer[row])):
            break
    return row


def operator_of(tree: Tree, row: int) -> int:
    """The operator that device work was launched by, else the row itself."""
    trace, at = tree.trace, row
    if not trace.on_device[row]:
        return row
    while (at := int(tree.parent[at])) != ROOT:
        if trace.layer[at] in (Layer.OPERATOR, Layer.COMMUNICATION) and not trace.on_device[at]:
            return at
    return row


def test_every_span_stands_once_among_those_of_its_name_with_what_is_over_it() -> None:
    for tree in trees():
        calls, trace = calls_of(tree), tree.trace
        calls.check()
        assert sorted(calls.row.tolist()) == list(range(len(tree)))
        assert [*zip(calls.name.tolist(), calls.row.tolist(), strict=True)] == sorted(
            (int(trace.name[row]), row) for row in range(len(tree))
        )
        own = tree.self_time()
        for at, row in enumerate(calls.row.tolist()):
            up = over(tree, row)
            expected = (-1, 0) if up == ROOT else (int(trace.name[up]), int(trace.layer[up]))
            assert (int(calls.above[at]), int(calls.layer[at])) == expected
            assert int(calls.own[at]) == int(own[row])
            works = operator_of(tree, row)
            assert (int(calls.arg[at]), int(calls.operator[at])) == (int(trace.arg[works]), int(trace.name[works]))


def test_edges_count_each_span_below_its_parent() -> None:
    for tree in trees():
        edges, name = edges_of(tree), tree.trace.name
        told = Counter((int(name[up]), int(name[row])) for row, up in enumerate(tree.parent.tolist()) if up != ROOT)
        pairs = zip(edges.above.tolist(), edges.below.tolist(), edges.count.tolist(), strict=True)
        assert {(above, below): count for above, below, count in pairs} == told
