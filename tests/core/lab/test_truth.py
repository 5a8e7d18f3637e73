"""Who was struck follows from the injections and the requests' own times, and from nothing else."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from teller_core.lab.outside import Delay
from teller_core.lab.plan import plan_episode
from teller_core.lab.truth import find_truth, prefill_delays

MS = 1_000_000


def _row(rid: str, start: int, end: int, tokens: int = 10) -> dict[str, Any]:
    return {"rid": rid, "start_ns": start * MS, "end_ns": end * MS, "tok_ns": list(range(tokens))}


def _delay(start: int, stop: int) -> Delay:
    return Delay(start * MS, stop * MS, (stop - start) * MS)


def test_who_lost_enough_was_struck_and_nobody_else() -> None:
    rows = [
        _row("before", 0, 400),
        _row("through", 300, 1300),
        _row("touched", 0, 530),
        _row("long", 0, 10_000),
        _row("after", 1000, 1400),
    ]
    truth = find_truth(plan_episode(1, "gc_pause"), [_delay(500, 700), _delay(800, 900)], rows)
    assert truth.struck == ["through"]
    assert truth.cause == "host.gc_pause"
    assert truth.interval == [500 * MS, 900 * MS]
    assert (truth.moved["struck"], truth.moved["unstruck"]) == (1, 4)
    assert truth.moved["lost_ms_median"] == 300.0
    assert truth.moved["slowdown_median"] == 1.43


def test_without_a_fault_nobody_is_struck_and_no_interval_is_named() -> None:
    truth = find_truth(plan_episode(1, "none"), [], [_row("a", 0, 100)])
    assert (truth.cause, truth.struck, truth.interval) == (None, [], [])


def test_the_ratio_compares_with_those_nearest_in_length() -> None:
    rows = [
        _row("hit", 0, 2000),
        _row("like", 5000, 6000),
        _row("like2", 6000, 7000),
        *(_row(f"x{i}", 9000, 9010, 500) for i in range(5)),
    ]
    moved = find_truth(plan_episode(1, "gc_pause"), [_delay(0, 1000)], rows).moved
    assert moved["struck"] == 1
    assert moved["ratio_median"] > 2.0


def test_the_long_request_itself_is_not_struck() -> None:
    plan = plan_episode(3, "long_prefill")
    long = next(iter(plan.others))
    truth = find_truth(plan, [_delay(0, 500)], [_row(long, 0, 900), _row("blocked", 0, 900)])
    assert truth.struck == ["blocked"]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=6),
    st.integers(0, 40),
    st.integers(1, 40),
)
def test_what_a_request_lost_is_the_injected_time_inside_its_own(
    gaps: list[tuple[int, int]], start: int, length: int
) -> None:
    delays: list[Delay] = []
    at = 0
    for gap, took in gaps:
        delays.append(_delay((at + gap) * 10, (at + gap + took) * 10))
        at += gap + took
    lost = sum(
        1
        for delay in delays
        for tick in range(delay.start, delay.stop, MS)
        if start * 10 * MS <= tick < (start + length) * 10 * MS
    )
    truth = find_truth(plan_episode(1, "gc_pause"), delays, [_row("it", start * 10, (start + length) * 10)])
    assert bool(truth.struck) == (lost >= max(50, 0.05 * length * 10))


def test_steps_that_carry_a_long_prompt_delay_by_what_they_take_beyond_the_others() -> None:
    def step(number: int, start: int, took: int, tokens: dict[str, int]) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"n": number, "t": start * MS, "dur": 1, "tokens": tokens}, {
            "n": number,
            "t": (start + took) * MS,
            "dur": 0,
        }

    steps = [
        step(0, 0, 10, {"a": 1}),
        step(1, 20, 110, {"a": 1, "big": 400}),
        step(2, 140, 10, {"a": 1, "big": 1}),
        step(3, 160, 10, {"a": 5}),
    ]
    idle = {"t": 0, "dur": 5}
    delays = prefill_delays(
        [idle, *(prepared for prepared, _ in steps)], [updated for _, updated in steps], frozenset({"big"})
    )
    assert delays == [Delay(20 * MS, 130 * MS, 100 * MS)]


def test_it_is_written_as_json(tmp_path: Path) -> None:
    find_truth(plan_episode(1, "none"), [], []).write(tmp_path / "truth.json")
    assert json.loads((tmp_path / "truth.json").read_text())["fault"] == "none"
