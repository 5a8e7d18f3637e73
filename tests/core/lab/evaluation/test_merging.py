"""Rows that are alike count as one, and nothing that weighs them sees a difference."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.lab.evaluation.merging import merged

rows = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["a", "b"]), st.booleans(), st.sampled_from([0.5, float("nan")])),
    max_size=40,
)


@given(rows)
def test_every_kind_stands_once_with_how_many_are_of_it(drawn: list[tuple[int, str, bool, float]]) -> None:
    number, text, flag, share = (list(column) for column in zip(*drawn, strict=True)) if drawn else ([], [], [], [])
    pairs = np.column_stack([np.array(number, np.int32), np.array(flag, np.int32)]).astype(np.int32).reshape(-1, 2)
    found = merged(np.array(text, np.str_), pairs, np.array(share, np.float64))
    kinds = {repr(row): sum(repr(row) == repr(other) for other in drawn) for row in drawn}
    assert sorted(found.times.tolist()) == sorted(map(float, kinds.values()))
    assert {
        repr(drawn[at]): count for at, count in zip(found.first.tolist(), found.times.tolist(), strict=True)
    } == kinds
    assert all(repr(drawn[found.first[of]]) == repr(row) for row, of in zip(drawn, found.of.tolist(), strict=True))
