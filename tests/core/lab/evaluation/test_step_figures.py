"""Figures of steps: chances are held against what is true, and every part of the abnormal steps is told by itself."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.table import Float64
from teller_core.lab.evaluation.calibration import PARTS, equal_parts, error_of_parts
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Judged, nothing
from teller_core.lab.evaluation.metrics import figures
from teller_core.lab.evaluation.rows import StepRows, rows_of
from teller_core.lab.evaluation.step_figures import LEAST_CHANCES, of_chances
from tests.core.lab.evaluation.made import episode, side

SURE = (0.0, 0.02, 0.05, 0.1, 0.3, 0.6, 0.9, 0.99)


def rows(score: Float64, label: Float64, lives: int = 8) -> StepRows:
    """Steps that stand in one episode each, dealt to lives in turn, ten a window."""
    count = len(score)
    one = rows_of([episode(0, "gc")], [nothing(episode(0, "gc").seen.capture)]).steps
    columns = {name: np.resize(column, count) for name, column in vars(one).items()}
    return replace(
        one,
        **columns
        | {
            "life": (np.arange(count) % lives).astype(np.int32),
            "window": (np.arange(count) // 10).astype(np.int32),
            "moment": np.arange(count, dtype=np.int64),
            "label": label.astype(np.bool_),
            "score": score,
        },
    )


def drawn(count: int) -> tuple[Float64, Float64]:
    """Chances, and what became of them."""
    chance = np.random.default_rng(7)
    sure = chance.choice(SURE, count)
    return sure, (chance.random(count) < sure).astype(np.float64)


def test_chances_that_come_true_as_often_as_they_say_have_hardly_an_error() -> None:
    sure, label = drawn(20_000)
    found = of_chances(rows(sure, label), chances=True)
    assert found.value < 0.01 and found.low <= found.value and found.better == -1 and found.positives == 2_000
    bold = of_chances(rows(np.minimum(1.0, 2 * sure), label), chances=True)
    expected = float(np.mean(np.abs(np.minimum(1.0, 2 * sure) - sure)))
    assert bold.value == pytest.approx(expected, abs=0.01)


def test_parts_have_as_many_steps_each_however_the_chances_lie() -> None:
    sure = np.concatenate([np.zeros(1400), np.linspace(0.9, 1.0, 100)])
    assert np.bincount(equal_parts(sure), minlength=PARTS).tolist() == [100] * PARTS
    many, right = np.full(PARTS, 100.0), np.zeros(PARTS)
    assert error_of_parts(many, np.full(PARTS, 50.0), right) == pytest.approx(0.5)
    assert np.isnan(error_of_parts(0 * many, right, right))


def test_no_error_is_told_of_few_steps_or_of_scores_that_are_no_chances() -> None:
    sure, label = drawn(LEAST_CHANCES)
    assert not np.isnan(of_chances(rows(sure, label), chances=True).value)
    few = of_chances(rows(sure[1:], label[1:]), chances=True)
    assert np.isnan(few.value) and few.why == "1,999 steps"
    shared = replace(rows(sure, label), moment=np.arange(len(sure)) // 16)  # the same steps in several episodes
    assert of_chances(shared, chances=True).why == "1,000 steps"
    assert of_chances(rows(sure, label), chances=False).why == "its scores are no chances"
    blind = np.where(np.arange(len(sure)) == 0, np.nan, sure)
    assert of_chances(rows(blind, label), chances=True).why == "1,999 steps"


def seeing(wanted: Callable[[Episode], bool]) -> Callable[[Episode], Judged]:
    """Who tells the abnormal steps of the wanted episodes, and no other."""

    def said(one: Episode) -> Judged:
        hit = (one.labels.step == 1) & wanted(one)
        return replace(nothing(one.seen.capture), step_score=hit.astype(np.float64), step_flag=hit.astype(np.uint8))

    return said


def test_felt_steps_are_told_in_each_view_and_by_how_hard_they_were_struck() -> None:
    felt = side(range(7))
    weak = [
        replace(one, labels=replace(one.labels, severity="slight", d_prime=1.0, cause="comm.degraded_link"))
        for one in felt
    ]
    across = [replace(one, labels=replace(one.labels, cause="comm.degraded_link")) for one in felt]

    def values(method: Callable[[Episode], Judged]) -> dict[str, float]:
        episodes = [*felt, *weak, *across]
        return {f.key: f.value for f in figures(rows_of(episodes, [method(one) for one in episodes]))}

    inside = values(seeing(lambda one: one.labels.cause != "comm.degraded_link"))
    assert (inside["step_felt_vertical.f1_at_43"], inside["step_felt_horizontal.f1_at_43"]) == (1.0, 0.0)
    strong = values(seeing(lambda one: one.labels.severity == "strong"))
    assert (strong["step_felt_horizontal.f1_at_43"], strong["step_horizontal.f1_at_43"]) == (
        1.0,
        pytest.approx(0.67, abs=0.1),
    )
    assert (strong["step_severity_strong.f1_at_43"], strong["step_severity_slight.f1_at_43"]) == (1.0, 0.0)
