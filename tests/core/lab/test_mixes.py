"""Mixes of requests: as published, scaled, the same for the same seed."""

import random
from statistics import fmean

import pytest

from teller_core.errors import UnknownName
from teller_core.lab.mixes import (
    AT_ONCE,
    GAP_S,
    LEAST_OUTPUT,
    LEVELS,
    MIXES,
    MOST_OUTPUT,
    OUTPUT,
    OUTPUT_TOKENS,
    PROMPT_TOKENS,
    RATES,
    SHARED,
    TALKS,
    WORDS,
    sizes,
)

MANY = 4000
FIGURES = (PROMPT_TOKENS, OUTPUT_TOKENS, SHARED, AT_ONCE, RATES)


@pytest.mark.parametrize("mix", MIXES)
def test_sizes_are_the_seeds_own_in_order_and_within_their_limits(mix: str) -> None:
    made = sizes(mix, MANY, random.Random(1))
    assert made == sizes(mix, MANY, random.Random(1))
    assert made != sizes(mix, MANY, random.Random(2))
    assert len(made) == MANY
    assert made[0].at == 0.0
    assert [size.at for size in made] == sorted(size.at for size in made)
    assert {LEAST_OUTPUT, MOST_OUTPUT} <= {size.output for size in made}
    assert all(LEAST_OUTPUT <= size.output <= MOST_OUTPUT for size in made)
    assert all(0 <= size.shared < size.words <= 650 and size.talk <= TALKS for size in made)


@pytest.mark.parametrize("mix", MIXES)
def test_whichever_mix_it_is_the_service_has_about_as_much_to_do(mix: str) -> None:
    made = [size for seed in range(200) for size in sizes(mix, 24, random.Random(seed))]
    gaps = [sizes(mix, 24, random.Random(seed))[-1].at / 23 for seed in range(200)]
    assert fmean(size.words for size in made) == pytest.approx(WORDS, rel=0.15)
    assert fmean(size.output for size in made) == pytest.approx(OUTPUT, rel=0.1)
    assert fmean(gaps) == pytest.approx(GAP_S, rel=0.15)


def test_users_of_a_bursty_mix_come_at_once_and_those_of_others_do_not() -> None:
    apart = {mix: len({size.at for size in sizes(mix, MANY, random.Random(1))}) for mix in MIXES}
    assert apart["steady"] == apart["chat"] == MANY
    assert apart["bursty"] < MANY / 2


def test_even_requests_share_nothing_and_conversations_what_was_published() -> None:
    assert {size.shared for size in sizes("steady", MANY, random.Random(1))} == {0}
    shares = [size.shared / size.words for size in sizes("chat", MANY, random.Random(1))]
    assert fmean(shares) == pytest.approx(0.384, abs=0.04)  # the mean of the published record


def test_the_published_figures_are_quantiles() -> None:
    assert all(len(table) == len(LEVELS) and [*table] == sorted(table) for table in FIGURES)


def test_a_mix_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownName, match="none of steady, chat, bursty"):
        sizes("wild", 3, random.Random(1))
