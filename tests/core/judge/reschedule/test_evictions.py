"""Where requests came back after an eviction."""

import numpy as np

from teller_core.judge.reschedule.evictions import Rows, evictions


def found(
    at: list[int], tokens: list[int], again: list[int], *, preemptions: int, gone: list[int]
) -> list[tuple[int, int]]:
    rows = Rows(
        np.array(at),
        np.zeros(len(at), dtype=np.int32),
        np.array(tokens, dtype=np.int64),
        np.array(again, dtype=np.int64),
    )
    told = evictions(rows, np.array([0]), np.array([preemptions]), np.cumsum(gone))
    return [(row, int(told.kept[row])) for row in np.flatnonzero(told.back).tolist()]


def test_a_text_that_is_computed_again_shows_an_eviction() -> None:
    assert found([0, 1, 4], [40, 1, 42], [0, 0, 41], preemptions=1, gone=[0, 0, 1, 0, 0]) == [(2, 0)]


def test_what_is_not_computed_again_was_still_cached() -> None:
    assert found([0, 1, 4], [40, 1, 10], [0, 0, 9], preemptions=1, gone=[0, 0, 1, 0, 0]) == [(2, 32)]
    assert found([0, 4], [64, 1], [0, 0], preemptions=1, gone=[0, 1, 0, 0, 0]) == [(1, 64)]


def test_one_who_was_left_out_and_not_evicted_goes_on() -> None:
    assert found([0, 4], [64, 1], [0, 0], preemptions=0, gone=[0, 1, 0, 0, 0]) == []
    assert found([0, 4], [64, 1], [0, 0], preemptions=1, gone=[0, 0, 0, 0, 0]) == []
    assert found([0, 4], [63, 1], [0, 0], preemptions=1, gone=[0, 1, 0, 0, 0]) == []


def test_chunks_of_what_is_computed_again_are_one_eviction() -> None:
    assert found([0, 5, 6, 7], [40, 16, 16, 9], [0, 16, 16, 8], preemptions=1, gone=[0, 1, *[0] * 6]) == [(1, 0)]


def test_one_evicted_again_while_it_computed_again_begins_anew() -> None:
    rows = found([0, 5, 9, 10], [40, 16, 32, 9], [0, 16, 32, 8], preemptions=2, gone=[0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0])
    assert rows == [(1, 0), (2, 0)]
