"""The requests of a window: the same work each time, and what a fault of load makes of it."""

import random
from collections.abc import Mapping

import pytest

from teller_core.lab.injectors import Injector, draw, injector, injectors
from teller_core.lab.requests import MOST_OUTPUT, MOST_WORDS, changed, named, ordinary

ASKS = ordinary(random.Random(3))
OF_LOAD = [one for one in injectors().values() if one.act in ("others", "shift", "bursts")]


def knobs(fault: str) -> Mapping[str, float]:
    return draw(injector(fault), "strong", random.Random(1))


def test_requests_are_the_seeds_own_and_in_order() -> None:
    assert ordinary(random.Random(3)) == ASKS
    assert ordinary(random.Random(4)) != ASKS
    assert [ask.at for ask in ASKS] == sorted(ask.at for ask in ASKS)


@pytest.mark.parametrize("one", OF_LOAD, ids=lambda one: one.name)
def test_whoever_is_compared_is_as_many_and_nobody_asks_for_too_much(one: Injector) -> None:
    for severity in ("slight", "clear", "strong", "extreme"):
        own, others = changed(ASKS, one, draw(one, severity, random.Random(2)), random.Random(2))
        assert len(own) == len(ASKS)
        assert all(ask.words <= MOST_WORDS and ask.output <= MOST_OUTPUT for ask in [*own, *others])
        assert [ask.at for ask in own] == sorted(ask.at for ask in own)


def test_requests_of_others_leave_the_ordinary_ones_as_they_are() -> None:
    own, others = changed(ASKS, injector("long_prefill"), knobs("long_prefill"), random.Random(2))
    assert own == ASKS
    assert len(others) >= 1
    assert min(ask.words for ask in others) > max(ask.words for ask in ASKS)


def test_what_strikes_elsewhere_changes_no_request() -> None:
    assert changed(ASKS, injector("gc_pause"), knobs("gc_pause"), random.Random(2)) == (ASKS, ())
    assert changed(ASKS, None, {}, random.Random(2)) == (ASKS, ())


def test_shifts_and_bursts() -> None:
    longer, _ = changed(ASKS, injector("longer_answers"), {"output_percent": 300}, random.Random(2))
    assert [ask.output for ask in longer] == [3 * ask.output for ask in ASKS]
    closer, _ = changed(ASKS, injector("larger_batches"), {"gap_percent": 50}, random.Random(2))
    assert [ask.at for ask in closer] == pytest.approx([ask.at / 2 for ask in ASKS])
    bursts, _ = changed(ASKS, injector("arrival_burst"), {"bursts": 3}, random.Random(2))
    assert len({ask.at for ask in bursts}) == 3


def test_names_tell_neither_window_nor_order() -> None:
    names = [ask.rid for ask in named(ASKS, random.Random(5))]
    assert len(set(names)) == len(ASKS)
    assert {len(name) for name in names} == {12}
    assert names != sorted(names)
