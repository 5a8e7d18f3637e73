"""Pieces of a sheet: those that took most, with all they hang below."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.context.sheet_pieces import LEAST_CALLS, heaviest, usual_of
from teller_core.data.assessment import Baselines


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 1000)), max_size=40), st.integers(1, 12))
@settings(deadline=None)
def test_the_heaviest_pieces_are_kept_with_what_they_hang_below(rows: list[tuple[int, int]], most: int) -> None:
    parent = np.array([above % (at + 1) - 1 for at, (above, _) in enumerate(rows)], np.int64)
    own = np.array([ns for _, ns in rows], np.int64)
    kept = heaviest(parent, own, most).tolist()
    assert len(kept) <= most and kept == sorted(set(kept))
    assert all(parent[at] == -1 or parent[at] in kept for at in kept)
    if len(rows) <= most:
        assert kept == list(range(len(rows)))
    elif rows:
        chain, at = [], int(np.argmax(own))
        while at >= 0:
            chain.append(at)
            at = int(parent[at])
        assert len(chain) > most or set(chain) <= set(kept)


def test_what_is_usual_for_a_name_counts_its_places_by_their_calls_and_leaves_out_what_was_hardly_called() -> None:
    count = np.array([30, 10, LEAST_CALLS - 1], np.int32)
    whole, shares = np.array([1_000_000, 16_000_000, 5], np.int64), np.zeros(3)
    table = Baselines(
        ["mm", "mm", "rare"],
        ["a", "b", ""],
        [""] * 3,
        np.full(3, 3, np.uint8),
        count,
        whole,
        shares,
        whole,
        *[shares] * 3,
    )
    found = usual_of(table)
    assert set(found) == {("mm", 3)}
    assert abs(np.exp(found["mm", 3]) - 2_000_000) < 10_000
