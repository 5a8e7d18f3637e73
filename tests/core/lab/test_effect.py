"""By how much a window was slower: known factors come back with an interval around them, and small ones are refused."""

from typing import Any

import numpy as np
import pytest

from teller_core.lab.effect import Ratio, apart, latency, noise, ratios, too_small

MS = 1_000_000


def row(first: float, gaps: list[float], error: str | None = None) -> dict[str, Any]:
    """A client's row: the first token after ``first`` ms, the others after ``gaps`` ms each."""
    times = [int(value * MS) for value in np.cumsum([first, *gaps])]
    return {"start_ns": 0, "tok_ns": times, "end_ns": times[-1] + 2 * MS, "err": error}


def window(seed: int, factor: float, requests: int = 24) -> list[dict[str, Any]]:
    """The same requests each time, ``factor`` as slow, with a few percent of chance."""
    work, chance = np.random.default_rng(0), np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for _ in range(requests):
        gaps = work.uniform(5, 9, 12)
        slow = factor * chance.uniform(0.97, 1.03)
        rows.append(row(20 * slow, [gap * slow for gap in gaps]))
    return rows


def test_the_four_latencies_of_a_row() -> None:
    one = row(10, [4, 9, 5])
    found = [latency(one, metric) for metric in ("ttft", "itl_mean", "itl_max", "e2e")]
    assert found == [10 * MS, 6 * MS, 9 * MS, 30 * MS]


@pytest.mark.parametrize("metric", ["ttft", "itl_mean", "itl_max", "e2e"])
def test_what_was_not_measured_has_no_latency(metric: str) -> None:
    assert latency(row(10, [4], error="HTTP 500"), metric) is None
    assert latency({"start_ns": 0, "tok_ns": [], "end_ns": 5, "err": None}, metric) is None


def test_the_time_between_tokens_of_one_token_is_nothing() -> None:
    assert latency(row(10, []), "itl_mean") is None
    assert latency(row(10, []), "itl_max") is None


def rounds(factor: float, count: int = 4, requests: int = 6) -> list[list[list[dict[str, Any]]]]:
    """Rounds of two healthy windows and one that is ``factor`` as slow; each round has the machine's luck of its own."""
    chance = np.random.default_rng(9)
    luck = chance.uniform(0.5, 2.0, count)
    return [
        [
            window(seed, luck[turn] * slow, requests)
            for seed, slow in ((turn, 1.0), (turn + 50, 1.0), (turn + 90, factor))
        ]
        for turn in range(count)
    ]


@pytest.mark.parametrize("factor", [1.0, 1.3, 4.0])
def test_a_known_factor_lies_in_its_interval_whatever_luck_a_round_has(factor: float) -> None:
    found = ratios(rounds(factor), 7)
    assert found["itl_mean"].median == pytest.approx(factor, rel=0.03)
    assert found["itl_mean"].low <= factor * 1.01
    assert found["itl_mean"].high >= factor * 0.99
    assert found == ratios(rounds(factor), 7)


def test_a_round_that_had_other_luck_than_the_others_widens_the_interval() -> None:
    one = rounds(1.3)
    one[0][2] = window(90, 30.0, 6)
    assert ratios(one, 7)["e2e"].high > 2 * ratios(rounds(1.3), 7)["e2e"].high


def test_requests_that_failed_anywhere_are_left_out_and_too_few_give_nothing() -> None:
    struck = window(3, 2.0)
    struck[0] = row(1, [1, 1], error="HTTP 500")
    assert ratios([[window(1, 1.0), struck]], 7)["e2e"].pairs == 23
    assert ratios([[window(1, 1.0, 4), window(3, 2.0, 4)]], 7) == {}


def test_windows_of_other_requests_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match=r"longer|shorter"):
        ratios([[window(1, 1.0, 10), window(2, 1.0, 11)]], 7)


def test_a_healthy_window_is_set_beside_the_others_of_its_round() -> None:
    two = [[window(1, 1.0), window(2, 2.0)]]
    apart_by = np.log(2) / np.sqrt(2)
    assert apart(two, "e2e") == [pytest.approx(-apart_by, abs=0.05), pytest.approx(apart_by, abs=0.05)]
    three = apart([[window(1, 1.0), window(2, 1.0), window(3, 8.0)]], "e2e")
    assert three == [
        pytest.approx(value / np.sqrt(1.5), abs=0.05) for value in (-np.log(8) / 2, -np.log(8) / 2, np.log(8))
    ]
    assert apart([[window(1, 1.0, 0), window(2, 2.0, 0)]], "e2e") == []
    assert apart([[window(1, 1.0)]], "e2e") == []


@pytest.mark.parametrize("twins", [2, 3])
def test_noise_is_that_of_one_window(twins: int) -> None:
    chance = np.random.default_rng(4)
    luck = np.exp(chance.normal(0, 0.3, (400, twins)))
    windows = [[[row(20 * each, [])] for each in own] for own in luck]
    assert noise(apart(windows, "ttft")) == pytest.approx(0.3, rel=0.05)
    assert noise([]) == 0.0


@pytest.mark.parametrize(
    ("ratio", "sigma", "why"),
    [
        (Ratio(1.4, 1.2, 1.6, 20), 0.02, ""),
        (Ratio(1.4, 0.9, 1.9, 20), 0.02, "the interval of the ratio begins at 0.90"),
        (Ratio(1.03, 1.01, 1.05, 20), 0.0, "the ratio is 1.03, below 1.05"),
        (Ratio(1.4, 1.2, 1.6, 20), 0.2, "the ratio is 1.40, and by chance it may be 1.44 here"),
        (None, 0.0, "too few requests can be compared"),
    ],
)
def test_what_is_no_effect_is_said_why(ratio: Ratio | None, sigma: float, why: str) -> None:
    assert too_small(ratio, sigma, 2, 4) == why
