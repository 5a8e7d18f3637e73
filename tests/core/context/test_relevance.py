"""What bears on a suspected span by the rule, and how little of it is kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.context.relevance import RULE, Bearing, Rule, bearing, kept
from teller_core.data.graph import Graph, Kind, edges
from teller_core.data.table import Int64
from tests.core.judge.service import MS, US


def graph(rows: int, *found: tuple[Kind, int, int]) -> Graph:
    return edges(rows, [(kind, np.array([before]), np.array([after])) for kind, before, after in found])


def value(made: Graph, chosen: list[int], end: dict[int, int] | None = None, least_wait: int = 1) -> list[float]:
    """Row ``i`` lasts from ``i`` ms to the one behind, or to ``end[i]``."""
    start = np.arange(made.rows, dtype=np.int64) * MS
    stop = start + MS
    for row, time in (end or {}).items():
        stop[row] = time
    return bearing(start, stop, made, np.array(chosen, dtype=np.int64), least_wait=least_wait).value.round(4).tolist()


def test_parents_to_the_second_and_children_bear_on_a_candidate() -> None:
    above = [(Kind.CHILD, 0, 1), (Kind.CHILD, 1, 2), (Kind.CHILD, 2, 3), (Kind.CHILD, 3, 4), (Kind.LAUNCH, 3, 5)]
    assert value(graph(7, *above, (Kind.CHILD, 5, 6)), [3]) == [0.0, 0.35, 0.35, 1.0, 0.35, 0.35, 0.0]


@pytest.mark.parametrize("kind", [Kind.HOLD, Kind.COLLECTIVE, Kind.MET, Kind.KEPT])
def test_the_other_side_of_a_communication_bears_on_it_from_both_sides(kind: Kind) -> None:
    made = graph(3, (kind, 0, 1))
    assert (value(made, [0]), value(made, [1])) == ([1.0, 0.35, 0.0], [0.35, 1.0, 0.0])


def test_a_wait_bears_only_where_it_waited() -> None:
    made = graph(2, (Kind.WAIT, 0, 1))
    assert value(made, [0], end={0: MS + 5 * US}) == [1.0, 0.35]
    assert value(made, [0], end={0: MS + 5 * US}, least_wait=6 * US) == [1.0, 0.0]
    assert value(made, [0], end={0: MS}) == [1.0, 0.0]


def test_neighbors_in_time_fade_and_add_up() -> None:
    made = graph(3, (Kind.ORDER, 0, 1), (Kind.STREAM, 1, 2))
    assert value(made, [1]) == [0.25, 1.0, 0.25]
    assert value(made, [2]) == [0.0, 0.25, 1.0]
    assert value(made, [0, 2], end={0: US, 1: MS + US}) == [1.0, round(0.25 * 2 * np.exp(-0.4995), 4), 1.0]


def test_what_is_kept_is_the_most_relevant_and_of_equals_the_heavier() -> None:
    found = Bearing(np.array([0.35, 1.0, 0.2, 0.35, 0.25]), np.zeros(5, dtype=np.bool_))
    weight = np.array([1, 1, 9, 2, 1], dtype=np.int64)
    assert kept(found, weight).tolist() == [1, 3, 0, 4]
    assert kept(found, weight, Rule(nodes=2)).tolist() == [1, 3]


def test_the_constants_are_those_of_the_paper() -> None:
    assert Rule(pair=0.35, near=0.25, fades=2_000_000, hops=2, least=0.25, nodes=80) == RULE


def plain(start: Int64, end: Int64, found: list[tuple[Kind, int, int]], chosen: set[int], rows: int) -> list[float]:
    """The rule, an edge at a time."""
    out = [0.0] * rows
    family = [(b, a) for kind, b, a in found if kind in (Kind.CHILD, Kind.LAUNCH)]
    for before, after in family:
        out[after] += RULE.pair * (before in chosen)
    reached = chosen
    for _ in range(RULE.hops):
        reached = {before for before, after in family if after in reached}
        for row in reached:
            out[row] += RULE.pair
    other = [(b, a) for k, b, a in found if k >= Kind.HOLD or (k == Kind.WAIT and end[b] > start[a])]
    for row in range(rows):
        if row not in chosen and any((row == a and b in chosen) or (row == b and a in chosen) for b, a in other):
            out[row] += RULE.pair
    for kind, before, after in found:
        if kind in (Kind.ORDER, Kind.STREAM):
            far = RULE.near * np.exp(-max(0, int(start[after] - end[before])) / RULE.fades)
            out[after] += far * (before in chosen)
            out[before] += far * (after in chosen)
    return [1.0 if row in chosen else min(1.0, worth) for row, worth in enumerate(out)]


ROWS = 8


@given(
    st.lists(st.tuples(st.sampled_from(list(Kind)), st.integers(0, ROWS - 1), st.integers(0, ROWS - 1)), max_size=20),
    st.sets(st.integers(0, ROWS - 1), max_size=3),
    st.lists(st.tuples(st.integers(0, 9 * MS), st.integers(0, 5 * MS)), min_size=ROWS, max_size=ROWS),
)
def test_over_any_graph_it_is_the_rule_an_edge_at_a_time(
    found: list[tuple[Kind, int, int]], chosen: set[int], times: list[tuple[int, int]]
) -> None:
    found = [edge for edge in found if edge[1] != edge[2]]
    start = np.array([low for low, _ in times], dtype=np.int64)
    end = start + np.array([dur for _, dur in times], dtype=np.int64)
    got = bearing(start, end, graph(ROWS, *found), np.array(sorted(chosen), dtype=np.int64)).value
    assert got == pytest.approx(plain(start, end, found, chosen, ROWS))
