"""Every view shows what it is named after, and the probe's windows stand where they stood in their life."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.capture import Capture
from teller_core.data.table import Mask, take
from teller_core.data.trace import Layer
from teller_core.lab.benchmark.pack import Packed
from teller_core.lab.blocks import BlockTruth
from teller_core.lab.probe import windows as probe_windows
from teller_core.lab.probe.views import VIEWS, Glance, identifiers, lines, operators, order, processes, sizes
from teller_core.lab.probe.windows import HARD, windows_of
from tests.core.lab.benchmark.told import BEGIN, SECOND, block, calm, strike, window
from tests.core.lab.evaluation.made import episode, profiled


def glance(capture: Capture, **place: int) -> Glance:
    usual = {"round": 0, "at": 1, "among": 4, "before": 1, "since": SECOND // 2, "until": 2 * SECOND}
    return Glance(capture, **{**usual, **place}, usual=frozenset({("engine", "host-1/7")}))


def traced(capture: Capture, names: Mapping[str, str] | None = None, arg: str = "") -> Capture:
    """``capture`` with other ``names`` in its first trace, and the argument ``arg`` of one operator."""
    first, *others = capture.ranks
    assert first.tree is not None
    trace, said = first.tree.trace, names or {}
    trace = replace(trace, names=[said.get(name, name) for name in trace.names])
    if arg:
        row = int(np.flatnonzero(trace.layer == Layer.OPERATOR)[0])
        code = np.where(np.arange(len(trace.arg)) == row, len(trace.args), trace.arg).astype(np.int32)
        trace = replace(trace, arg=code, args=[*trace.args, arg])
    return replace(capture, ranks=[replace(first, tree=replace(first.tree, trace=trace)), *others])


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


def test_a_process_that_rested_in_a_short_window_is_there_and_one_that_is_gone_from_a_long_one_is_not() -> None:
    samples = LIFE.samples
    alone = replace(LIFE, samples=take(samples, np.zeros(len(samples.start), np.bool_)))
    short, long = (processes(glance(alone, until=seconds * SECOND)) for seconds in (4, 5))
    assert (short["samples of engine"], short["hosts"]) == (1, 1)
    assert (long.get("samples of engine", 0), long["hosts"]) == (0, 0)


def test_a_process_that_few_windows_have_is_seen_in_a_short_one() -> None:
    samples = LIFE.samples
    more = replace(LIFE, samples=replace(samples, process=["host-9/99", *samples.process[1:]]))
    assert processes(glance(more))["hosts"] == processes(glance(LIFE))["hosts"] + 1


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


def test_compiled_graphs_of_two_models_are_called_alike() -> None:
    def called(text: str) -> set[str]:
        capture = profiled(0).seen.capture
        return set(operators(glance(traced(capture, names={"aten::sdpa": text}))))

    first = "## Call CompiledFxGraph fd2t2djtxp3x57fonxyjamzpxmh5vapsq2vpl7j5yfuoc4pu6u ##"
    other = "## Call CompiledFxGraph fifhw3kbgo3jk6ldjk775w6q7kcev5wbegthopzrtkhelhnev2dc ##"
    assert called(first) == called(other) != called("aten::scaled_dot_product_attention")


def test_where_the_profiler_stopped_is_no_argument_and_any_other_kind_is() -> None:
    def arguments(text: str) -> float:
        return sizes(glance(traced(profiled(0).seen.capture, arg=text)))["arguments in profiles"]

    before = sizes(glance(profiled(0).seen.capture))["arguments in profiles"]
    assert arguments('{"finished":false}') == before
    assert arguments('{"marked":1}') == arguments('{"finished":false,"marked":2}') == before + 1


def test_operators_of_a_process_without_steps_are_told_apart() -> None:
    capture = profiled(0).seen.capture
    away = replace(capture, work=replace(capture.work, rank=capture.work.rank + 1))
    with_steps, without = sizes(glance(capture)), sizes(glance(away))
    assert "operator aten::sdpa" in operators(glance(capture))
    assert "operator aten::sdpa" not in operators(glance(away))
    assert "operator aten::sdpa without steps" in operators(glance(away))
    assert (with_steps["traces"], with_steps["traces without steps"]) == (1, 0)
    assert (without["traces"], without["traces without steps"], without["lanes in profiles"]) == (0, 1, 0)


def test_operators_between_steps_are_counted_and_those_after_the_last_are_not() -> None:
    def between(steps: Mask) -> float:
        return sizes(glance(replace(capture, work=take(capture.work, steps))))["rows between steps"]

    capture = profiled(0).seen.capture
    at = np.arange(len(capture.work.step))
    assert between(at >= 0) == between(at < 10) < between(at != 5)


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


def test_only_what_most_windows_of_a_life_have_is_usual() -> None:
    windows = [window(number, 0, []) for number in range(4)]
    ends = np.array([windows[at].begin + SECOND for at in (0, 1, 2, 3, 0, 1)], dtype=np.int64)
    samples = take(LIFE.samples, np.arange(len(LIFE.samples.start)) < len(ends))
    samples = replace(samples, stop=ends, role=["engine"] * 4 + ["helper"] * 2, process=["/7"] * 4 + ["/8"] * 2)
    assert probe_windows._usual(replace(LIFE, samples=samples), windows) == {("engine", "/7")}
