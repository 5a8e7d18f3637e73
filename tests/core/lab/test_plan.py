"""An episode follows from its seed alone, and every fault gets its turn."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.errors import UnknownName
from teller_core.lab.injectors import injector
from teller_core.lab.plan import FAULTS, NONE, REQUESTS, fault_of, plan_episode

SEEDS = st.integers(0, 999)
NAMED = st.sampled_from([None, *FAULTS])


@given(SEEDS, NAMED)
def test_a_seed_gives_the_same_plan_again(seed: int, fault: str | None) -> None:
    assert plan_episode(seed, fault) == plan_episode(seed, fault)


@given(SEEDS, NAMED)
def test_a_fault_strikes_while_requests_are_still_sent(seed: int, fault: str | None) -> None:
    plan = plan_episode(seed, fault)
    assert len(plan.asks) - len(plan.others) == REQUESTS
    assert len({ask.rid for ask in plan.asks}) == len(plan.asks)
    assert [ask.at for ask in plan.asks] == sorted(ask.at for ask in plan.asks)
    assert 0 < plan.at < plan.asks[-1].at


@given(SEEDS)
def test_only_long_prompts_of_others_add_requests_and_they_come_while_it_strikes(seed: int) -> None:
    plan = plan_episode(seed, "long_prefill")
    others = [ask for ask in plan.asks if ask.rid in plan.others]
    least, most = injector("long_prefill").knobs["words"]["clear"]
    assert others
    assert all(least <= ask.words <= most and plan.at <= ask.at < plan.at + plan.length for ask in others)
    assert all(not plan_episode(seed, fault).others for fault in FAULTS if fault != "long_prefill")


@given(st.integers(0, 100))
def test_six_seeds_in_a_row_have_the_six_faults(block: int) -> None:
    assert Counter(fault_of(block * 6 + place) for place in range(6)) == Counter(FAULTS)


def test_the_order_of_the_faults_is_not_always_the_same() -> None:
    orders = {tuple(fault_of(block * 6 + place) for place in range(6)) for block in range(20)}
    assert len(orders) > 10


def test_every_fault_is_an_injectors_that_the_demos_engine_has_a_place_for() -> None:
    for fault in FAULTS:
        plan = plan_episode(7, fault)
        assert plan.fault == fault
        assert (plan.cause is None) == (fault == NONE)
        assert fault == NONE or "transformers" in injector(fault).engines


def test_a_fault_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownName, match="cpu_colocation, long_prefill"):
        plan_episode(1, "meteorite")
