"""The numbers behind a tail: parts that sum, intervals that hold what is true, groups that stand out or do not."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.parts import PHASES
from teller_core.data.tails import Sums
from teller_core.tell.tail import CLUSTERS, cut, groups, phases, quantile_of, rounded, stands_out

MS = 1_000_000


@given(st.lists(st.fractions(-(10**9), 10**9), max_size=12))
def test_rounded_parts_are_whole_sum_to_the_rounded_whole_and_are_off_by_less_than_one(parts: list[Fraction]) -> None:
    whole = rounded(parts)
    assert sum(whole) == round(sum(parts, Fraction(0)))
    assert all(abs(one - part) <= 1 for one, part in zip(whole, parts, strict=True))


@given(st.lists(st.integers(0, 50), min_size=90, max_size=300), st.sampled_from([0.5, 0.9, 0.95]))
def test_a_quantile_is_the_least_value_that_so_many_do_not_exceed(values: list[int], quantile: float) -> None:
    found = quantile_of(np.array(values, np.int64), quantile)
    assert sum(value <= found for value in values) >= quantile * len(values) - 1e-9
    assert sum(value < found for value in values) < quantile * len(values)
    told = cut(np.array(values, np.int64))
    assert told is not None
    assert told.bounds.low <= told.p50 <= told.bounds.high <= told.bounds.tail


def one(capture: int, tail: bool, queue: list[float]) -> Sums:
    """Requests of one capture that only waited, ms each."""
    ns = [round(ms * MS) for ms in queue]
    at = PHASES.index("queue")
    only = [0] * len(PHASES)
    only[at] = 1
    return Sums(
        tail, capture, 0, len(ns), sum(ns), [sum(ns) * is_queue for is_queue in only],
        [len(ns) * is_queue for is_queue in only], [float(sum(each**2 for each in ns)) * is_queue for is_queue in only],
    )  # fmt: skip


@pytest.mark.parametrize("captures", [1, CLUSTERS, 40])
def test_an_interval_holds_what_a_phase_really_adds_also_where_requests_of_a_capture_are_slow_together(
    captures: int,
) -> None:
    held = 0
    for seed in range(300):
        random = np.random.default_rng(seed)
        sums: list[Sums] = []
        for capture in range(captures):
            apart = random.normal(0, 20) if captures >= CLUSTERS else 0.0  # of all requests of a capture
            sums += [one(capture, True, (900 + apart + random.normal(0, 10, 15)).tolist())]
            sums += [one(capture, False, (100 + random.normal(0, 10, 60)).tolist())]
        queue = phases(sums)[PHASES.index("queue")]
        assert queue.low_ms is not None
        assert queue.high_ms is not None
        held += queue.low_ms <= 800 <= queue.high_ms
    assert 0.86 < held / 300 < 0.99


def test_a_phase_that_chance_may_explain_or_that_is_a_trifle_is_not_named() -> None:
    noisy = [one(0, True, [1, 1, 1, 1, 5000]), one(0, False, [1.0] * 40)]
    assert not any(part.named for part in phases(noisy))
    clear = [one(0, True, [900, 950, 1000, 1050, 1100]), one(0, False, [1.0] * 40)]
    assert [part.part for part in phases(clear) if part.named] == ["queue"]


def test_a_group_stands_out_by_its_share_and_not_by_its_size() -> None:
    tail = {"usual": (40, 400), "struck": (40, 400), "few": (4, 40)}
    middle = {"usual": (500, 500), "struck": (20, 20)}
    found = {group.what: group for group in groups(tail, middle)}
    assert sum(group.ns for group in found.values()) == 9
    assert stands_out(found["struck"], 3)
    assert not stands_out(found["usual"], 3)  # half of the tail, but nearly all of the middle
    assert not stands_out(found["few"], 3)
    assert not stands_out(found["struck"], 10**24)  # of so many tried, one stands out by chance
