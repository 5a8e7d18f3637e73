"""Every view shows what it is named after, and the probe's windows stand where they stood in their life."""

from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.data.capture import Capture
from teller_core.lab.benchmark.pack import Packed
from teller_core.lab.blocks import BlockTruth
from teller_core.lab.probe import windows as probe_windows
from teller_core.lab.probe.views import VIEWS, Glance, identifiers, lines, operators, order, processes, sizes
from teller_core.lab.probe.windows import HARD, windows_of
from tests.core.lab.benchmark.told import BEGIN, SECOND, block, calm, strike, window
from tests.core.lab.evaluation.made import episode, profiled


def glance(capture: Capture, **place: int) -> Glance:
    usual = {"round": 0, "at": 1, "among": 4, "before": 1, "since": SECOND // 2, "until": 2 * SECOND}
    return Glance(capture, **{**usual, **place})


LIFE = episode(0, "gc").seen.capture


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_numbers_by_name_and_the_same_again(name: str) -> None:
    for capture in (LIFE, profiled(0).seen.capture):
        found = VIEWS[name](glance(capture))
        assert found == VIEWS[name](glance(capture)) and all(isinstance(value, int | float) for value in found.values())


def test_a_process_that_comes_is_seen() -> None:
    pauses = LIFE.pauses
    first = f"pauses of {pauses.role[0]}"
    more = replace(LIFE, pauses=replace(pauses, process=["host-1/99", *pauses.process[1:]]))
    before, after = processes(glance(LIFE)), processes(glance(more))
    assert after[first] == before[first] + 1


def test_ids_of_another_shape_are_seen_and_other_digits_of_one_shape_are_not() -> None:
    def called(names: list[str]) -> dict[str, float]:
        table = replace(LIFE.requests, client_id=(names * len(LIFE.requests.client_id))[: len(LIFE.requests.client_id)])
        found = identifiers(glance(replace(LIFE, requests=table)))
        return {name: share for name, share in found.items() if name.startswith("client_id like")}

    assert called(["cmpl-09af31bc22"]) == called(["cmpl-0b00dd1f13"]) != called(["warmup-09af31bc22"])


def test_a_line_is_seen_by_its_template() -> None:
    found = lines(glance(LIFE))
    assert len(found) == 2 and all(name.startswith("line ") for name in found)


def test_an_operator_is_seen_by_its_name() -> None:
    assert "operator aten::sdpa" in operators(glance(profiled(0).seen.capture))


def test_a_longer_window_has_no_more_samples_a_second() -> None:
    short, long = sizes(glance(LIFE, until=SECOND)), sizes(glance(LIFE, until=3 * SECOND))
    assert long["rows of samples"] == pytest.approx(short["rows of samples"] / 3)
    assert {name for name in short if short[name] != long[name]} <= {
        f"rows of {each}" for each in ("samples", "readings")
    }


def test_order_is_told_in_the_round_and_in_the_life() -> None:
    found = order(glance(LIFE, at=3, before=11))
    assert (found["last of its round"], found["first of its round"], found["windows before it"]) == (1.0, 0.0, 11.0)


def test_windows_are_those_of_the_life_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def truth(number: int, first: int) -> BlockTruth:
        strikes = [strike(), strike("longer_prompts", None)]
        made = [window(first + 1, 0, []), calm(first, []), window(first + 2, 1, [])]
        return block(strikes, made, number)

    monkeypatch.setattr(probe_windows, "capture_of", lambda life, tier: LIFE)
    life = Packed("a1", Path(__file__), {}, [truth(0, 0), truth(1, 5)])
    found = windows_of(life)
    assert [(one.round, one.strike) for one in found] == [(0, -1), (0, 0), (0, 1), (1, -1), (1, 2), (1, 3)]
    assert [one.cause for one in found[:3]] == ["", "host.blocking_call", HARD]
    assert [one.bags["order"]["windows before it"] for one in found] == list(range(6))
    assert set(found[0].bags) == set(VIEWS) and BEGIN > 0
