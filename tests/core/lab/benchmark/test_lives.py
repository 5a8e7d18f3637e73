"""The table of the benchmark's lives: both sides have all that there is, spread alike, and names tell nothing."""

import re
from collections import Counter

import pytest

from teller_core.lab.benchmark.lives import CALM, KINDS, LOADS, MODELS, NOT_HERE, SIDES, STRIKES, Kind, fits, table
from teller_core.lab.blocks import plan_life
from teller_core.lab.injectors import injector, injectors


def test_there_are_lives_and_strikes_enough() -> None:
    lives = table()
    assert len(lives) >= 36
    assert sum(len(life.wanted) for life in lives) >= 400
    assert len({injector(fault).cause for life in lives for fault, _ in life.wanted} - {None}) >= 18


def test_every_injector_that_can_be_done_is_done_on_both_sides_at_two_severities() -> None:
    wanted = {name for name, one in injectors().items() if not NOT_HERE.intersection(one.needs)}
    for side in SIDES:
        done = Counter(fault for life in table() for fault, _ in life.wanted if life.side == side)
        assert done.keys() == wanted
        assert min(done.values()) >= 2
        causes = Counter(injector(fault).cause for fault in done.elements())
        assert min(causes.values()) >= 6
        hard = {
            fault: len({s for life in table() for f, s in life.wanted if (life.side, f) == (side, fault)})
            for fault in done
        }
        assert sum(many >= 2 for many in hard.values()) >= 0.8 * len(hard)


def test_a_kind_of_service_has_other_pairs_of_model_and_load_on_the_other_side() -> None:
    pairs = [{(life.kind, life.model, life.load) for life in table() if life.side == side} for side in SIDES]
    assert len(pairs[0] - pairs[1]) >= 6


@pytest.mark.parametrize("engine", ["vllm", "transformers"])
def test_models_and_loads_are_spread_alike_on_both_sides(engine: str) -> None:
    spread = {
        side: [
            Counter(getattr(life, what) for life in table() if (life.side, life.kind.engine) == (side, engine))
            for what in ("model", "load")
        ]
        for side in SIDES
    }
    assert spread["train"] == spread["test"]
    for counted, names in zip(spread["train"], (MODELS, LOADS), strict=True):
        assert set(counted) == set(names)
        assert len(set(counted.values())) == 1


def test_each_kind_of_service_has_as_many_lives_on_both_sides() -> None:
    for kind in dict(KINDS):
        count = sum(many for each, many in KINDS if each == kind)
        assert [sum((life.side, life.kind) == (side, kind) for life in table()) for side in SIDES] == [count, count]


def test_a_life_asks_for_nothing_that_its_service_has_not() -> None:
    for life in table():
        assert len(life.wanted) == STRIKES
        assert all(fits(injector(fault), life.kind) for fault, _ in life.wanted)
        assert sum(injector(fault).cause is None for fault, _ in life.wanted) >= CALM
        assert sum(len(block.strikes) for block in plan_life(life.seed, life.wanted, life.requests)) == STRIKES
    assert not fits(injector("late_rank"), Kind())
    assert fits(injector("late_rank"), Kind(ranks=2))
    assert not fits(injector("link_loss"), Kind(ranks=2))
    assert not fits(injector("engine_quota"), Kind("transformers"))


def test_names_tell_nothing_and_stand_for_all_that_is_asked_for() -> None:
    names = [life.name for life in table()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[0-9a-f]{8}", name) for name in names)
    assert names == [life.name for life in table()]
    assert not set(names) & {life.name for life in table(seed=7)}
    assert len({life.seed for life in table()}) == len(names)
