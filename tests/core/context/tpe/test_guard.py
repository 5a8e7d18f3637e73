"""The guard: what stays open, against the obvious way to say it."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.context.tpe.columns import self_times
from teller_core.context.tpe.guard import ALONE, Normal, opened
from teller_core.data.assessment import SURPRISING
from tests.core.context.tpe.forests import shapes, tree_of


@given(shapes(), st.data())
def test_open_stays_what_is_long_surprising_or_the_worst_of_a_place_that_adds_what_is_felt(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    def column(values: st.SearchStrategy[float]) -> list[float]:
        return data.draw(st.lists(values, min_size=len(rows), max_size=len(rows)))

    tree = tree_of(rows, [int(own) for own in column(st.integers(0, 100))])
    own = self_times(tree)
    residual = column(st.sampled_from([float("nan"), 0.0, SURPRISING]))
    place = [int(at) for at in column(st.integers(-1, 3))]
    normal = Normal(
        np.array(column(st.sampled_from([0.0, 2.0, 4.0])), dtype=np.float32),
        np.array(residual, dtype=np.float32),
        np.array(place, dtype=np.int32),
    )
    least = 0.1 * int(tree.trace.end.max() - tree.trace.start.min())
    known = [not math.isnan(value) for value in residual]
    excess = [
        float(o) - float(np.exp(np.float64(n))) if k else 0.0 for o, n, k in zip(own, normal.log, known, strict=True)
    ]
    expected = {row for row in range(len(rows)) if own[row] >= max(least, 1.0)}
    expected |= {
        row for row in range(len(rows)) if known[row] and residual[row] >= SURPRISING and excess[row] >= ALONE * least
    }
    for each in set(place):
        mine = [row for row in range(len(rows)) if place[row] == each]
        if sum(excess[row] for row in mine) >= max(least, 1.0):
            expected.add(max(mine, key=lambda row: (excess[row], -row)))
    assert np.flatnonzero(opened(tree, own, normal, felt=0.1)).tolist() == sorted(expected)
