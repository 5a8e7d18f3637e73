"""Steps that only lines time: an engine is simulated, its lines are stamped by coarse and late clocks, and what is placed is
held against what was simulated.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.capture import Capture
from teller_core.data.records import ClientRecord, Iteration, Process, Recording
from teller_core.data.table import UNKNOWN
from teller_core.judge.assess import assess
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.line_times import ends

FRONTEND = Process("", 1, "frontend")
S, MS, US = 10**9, 10**6, 10**3
BEGIN = 1_700_000_000 * S


def line(number: int, written: int, took: int | None, resolution: int) -> Iteration:
    stamp = written // resolution * resolution
    return Iteration(FRONTEND, stamp, resolution, 0, number, int(number == 0), 9, min(number, 1), min(number, 1), took)


def capture(rows: Sequence[tuple[int, int | None]], resolution: int, clients: Sequence[ClientRecord] = ()) -> Capture:
    """``rows``: when the line of each step was written, and what it says that the step took."""
    iterations = [line(i, BEGIN + written, took, resolution) for i, (written, took) in enumerate(rows)]
    return rebuild(Recording(iterations=iterations, clients=list(clients)), [], capture_id="c", name="")


def steady(count: int, took: int, between: int, late: int = 0) -> list[tuple[int, int]]:
    return [((i + 1) * (took + between) + late, took) for i in range(count)]


@pytest.mark.parametrize("resolution", [US, MS, S])
def test_a_step_lasts_as_long_as_its_line_says_whatever_the_stamps(resolution: int) -> None:
    rows = [(30 * MS, 22_640 * US), (43 * MS, 11_590 * US), (53 * MS, 8_920 * US), (2_000 * MS, 12 * MS)]
    found = capture(rows, resolution)
    assert assess(found).steps.took.tolist() == [took for _, took in rows]
    assert (found.steps.end() - found.steps.begin()).tolist() == [took for _, took in rows]


def test_steps_of_whole_seconds_keep_their_order_and_end_within_their_second() -> None:
    found = capture(steady(300, 9 * MS, 1 * MS), S)
    second = np.array([(BEGIN + written) // S * S for written, _ in steady(300, 9 * MS, 1 * MS)])
    assert np.all(found.steps.finished >= second) and np.all(found.steps.finished <= second + S)
    assert np.all(found.steps.launched[1:] >= found.steps.finished[:-1])


def test_a_line_that_was_written_late_is_put_right_by_those_behind_it() -> None:
    rows = steady(50, 10 * MS, 0)
    held = [(max(written, 400 * MS) if written > 100 * MS else written, took) for written, took in rows]
    found = capture(held, US)
    true = np.array([BEGIN + written for written, _ in rows])
    assert np.abs(found.steps.finished - true).max() <= 10 * US * len(rows)


def test_beside_finer_times_of_requests_a_step_of_an_unknown_moment_is_not_placed() -> None:
    client = ClientRecord("r", BEGIN + 1, BEGIN + 600 * MS)
    idle, busy = steady(30, 9 * MS, 1 * MS), steady(400, 10 * MS, 0)
    assert np.all(capture(idle, S, [client]).steps.launched == UNKNOWN)
    assert assess(capture(idle, S, [client])).steps.took.tolist() == [9 * MS] * 30
    placed = capture(busy, S, [client]).steps.launched
    assert np.count_nonzero(placed != UNKNOWN) > 200


def test_steps_that_run_over_one_another_stand_as_their_lines_do() -> None:
    rows = [((i + 1) * 10 * MS, 19 * MS) for i in range(500)]
    found = capture(rows, US)
    assert found.steps.finished.tolist() == [BEGIN + written + US for written, _ in rows]
    assert assess(found).steps.took.tolist()[1:] == [10 * MS] * 499
    low = np.array([(BEGIN + written) // S * S for written, _ in rows])
    first, last = ends(low, low + S, np.full(500, 19 * MS))
    assert np.array_equal(first, last) and np.array_equal(last, low + S)


def test_a_line_without_a_duration_times_nothing_but_an_end() -> None:
    found = capture([(10 * MS, None), (20 * MS, None)], US)
    assert np.all(found.steps.elapsed == UNKNOWN) and np.all(found.steps.launched == UNKNOWN)
    assert found.steps.delivered.tolist() == [BEGIN + 10 * MS + US, BEGIN + 20 * MS + US]


@given(
    st.lists(st.tuples(st.integers(1, 300 * MS), st.integers(0, 2 * S)), min_size=1, max_size=40),
    st.sampled_from([MS, S]),
)
def test_the_true_ends_lie_between_the_earliest_and_the_latest(engine: list[tuple[int, int]], resolution: int) -> None:
    took = np.array([took for took, _ in engine])
    true = np.cumsum(took + np.array([idle for _, idle in engine]))
    low = true // resolution * resolution
    first, last = ends(low, low + resolution, took)
    assert np.all(first <= true) and np.all(true <= last)
    assert np.all(np.diff(last) >= took[1:]) and np.all(np.diff(first) >= 0)
