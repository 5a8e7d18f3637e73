"""The requests of a window: the same work each time, and what a fault of load makes of it."""

import random
from collections.abc import Mapping

import pytest

from teller_core.lab.injectors import Injector, draw, injector, injectors
from teller_core.lab.load import Piece
from teller_core.lab.mixes import MIXES
from teller_core.lab.requests import BEGINNING, MOST_OUTPUT, MOST_WORDS, changed, named, ordinary, touched, warm_up

BEGINNING_WORDS = 600
ASKS = ordinary(random.Random(3), beginning=BEGINNING_WORDS)
OF_LOAD = [one for one in injectors().values() if one.act in ("others", "shift", "bursts", "prefix", "schema")]


def knobs(fault: str) -> Mapping[str, float]:
    return draw(injector(fault), "strong", random.Random(1))


def test_requests_are_the_seeds_own_and_in_order() -> None:
    assert ordinary(random.Random(3), beginning=BEGINNING_WORDS) == ASKS
    assert ordinary(random.Random(4), beginning=BEGINNING_WORDS) != ASKS
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


@pytest.mark.parametrize("mix", MIXES)
def test_every_prompt_begins_alike_and_nothing_follows_where_nothing_is_shared(mix: str) -> None:
    asks = ordinary(random.Random(3), 40, mix, BEGINNING_WORDS)
    assert {ask.opening[0] for ask in asks} == {Piece(BEGINNING, BEGINNING_WORDS)}
    assert all(piece.text == BEGINNING for ask in ordinary(random.Random(3), 40) for piece in ask.opening)


def test_a_service_that_is_warm_knows_the_beginning_and_what_a_schema_is() -> None:
    assert {ask.opening for ask in warm_up(BEGINNING_WORDS)} == {(Piece(BEGINNING, BEGINNING_WORDS),)}
    assert [ask.properties > 0 for ask in warm_up(grammar=True)].count(True) == 1


def test_a_beginning_that_changes_with_every_request_keeps_its_length_and_what_stands_before() -> None:
    own, _ = changed(ASKS, injector("prefix_cache_miss"), {"words": 200}, random.Random(2))
    assert {ask.opening[0] for ask in own} == {Piece(BEGINNING, BEGINNING_WORDS - 200)}
    assert len({ask.opening[1].text for ask in own}) == len(own)
    assert {sum(piece.words for piece in ask.opening) for ask in own} == {BEGINNING_WORDS}
    whole, _ = changed(ASKS, injector("prefix_cache_miss"), {"words": BEGINNING_WORDS}, random.Random(2))
    assert all(piece.text != BEGINNING for ask in whole for piece in ask.opening)


def test_a_new_beginning_is_paid_for_once_and_then_shared() -> None:
    one, knobs = injector("cold_cache"), {"words": 200, "beginnings": 2}
    own, _ = changed(ASKS, one, knobs, random.Random(2))
    texts = [ask.opening[1].text for ask in own]
    assert [place for place, text in enumerate(texts) if text not in texts[:place]] == touched(len(ASKS), one, knobs)
    assert len(touched(len(ASKS), one, knobs)) == 2
    again, _ = changed(ASKS, one, knobs, random.Random(3))
    assert {ask.opening[1].text for ask in again}.isdisjoint(texts)


def test_all_requests_are_touched_where_each_is_struck_by_itself() -> None:
    for fault in ("prefix_cache_miss", "grammar_compile", "host_stall"):
        assert [*touched(6, injector(fault), {"words": 200, "properties": 3})] == [0, 1, 2, 3, 4, 5]


def test_a_schema_comes_with_every_request() -> None:
    own, _ = changed(ASKS, injector("grammar_compile"), {"properties": 30}, random.Random(2))
    assert [ask.properties for ask in own] == [30] * len(ASKS)
