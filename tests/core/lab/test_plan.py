"""An episode follows from its seed alone, and every fault gets its turn."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.errors import UnknownName
from teller_core.lab.plan import CAUSES, REQUESTS, fault_of, plan_episode

SEEDS = st.integers(0, 999)
FAULTS = st.sampled_from([None, *CAUSES])


@given(SEEDS, FAULTS)
def test_a_seed_gives_the_same_plan_again(seed: int, fault: str | None) -> None:
    assert plan_episode(seed, fault) == plan_episode(seed, fault)


@given(SEEDS, FAULTS)
def test_a_fault_strikes_while_requests_are_still_sent(seed: int, fault: str | None) -> None:
    plan = plan_episode(seed, fault)
    assert len(plan.asks) == REQUESTS
    assert len({ask.rid for ask in plan.asks}) == REQUESTS
    assert [ask.at for ask in plan.asks] == sorted(ask.at for ask in plan.asks)
    assert 0 < plan.strike < plan.asks[-1].at


@given(SEEDS)
def test_only_a_long_prefill_has_long_prompts_and_they_come_while_it_strikes(seed: int) -> None:
    plan = plan_episode(seed, "long_prefill")
    long = [ask for ask in plan.asks if ask.words > 1000]
    assert {ask.rid for ask in long} == plan.long_requests
    assert 1 <= len(long) <= 3
    assert all(ask.words < 1000 for ask in plan_episode(seed, "gc_pause").asks)


@given(st.integers(0, 100))
def test_six_seeds_in_a_row_have_the_six_faults(block: int) -> None:
    assert Counter(fault_of(block * 6 + place) for place in range(6)) == Counter(list(CAUSES))


def test_the_order_of_the_faults_is_not_always_the_same() -> None:
    orders = {tuple(fault_of(block * 6 + place) for place in range(6)) for block in range(20)}
    assert len(orders) > 10


def test_a_fault_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownName, match="cpu_hog, long_prefill"):
        plan_episode(1, "meteorite")
