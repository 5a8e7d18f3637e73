"""Figures of whole methods: what is said, what is not for want of independent windows, and that they are right for an oracle."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from teller_core.lab.evaluation import figure
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.figure import Figure
from teller_core.lab.evaluation.method import CANNOT, CAUSE, TYPICAL, Claim, Judged, nothing
from teller_core.lab.evaluation.metrics import alarms, answers, figures, of_all_faulty, of_unseen
from teller_core.lab.evaluation.rows import rows_of
from teller_core.lab.evaluation.step_figures import distinct_healthy, of_steps
from tests.core.lab.evaluation.made import WINDOW, episode, side

LIVES = side(range(7))
"""42 struck windows."""


def oracle(one: Episode) -> Judged:
    """Says what is true, and is sure."""
    request = one.labels.request
    return replace(
        nothing(one.seen.capture),
        step_score=np.where(one.labels.step == 1, 1.0, 0.0),
        step_flag=(one.labels.step == 1).astype(np.uint8),
        causes=[[Claim(cause, 1.0)] if cause not in ("", "?") else [] for cause in request],
        verdict=[CAUSE if cause not in ("", "?") else TYPICAL for cause in request],
        sure=np.ones(len(request)),
    )


def crying(one: Episode) -> Judged:
    """Claims the same of everybody."""
    count = len(one.labels.request)
    return replace(
        oracle(one), causes=[[Claim("host.gc_pause", 0.5)]] * count, verdict=[CAUSE] * count, sure=np.full(count, 0.5)
    )


def said(episodes: Sequence[Episode], method: Callable[[Episode], Judged]) -> dict[str, Figure]:
    return {figure.key: figure for figure in figures(rows_of(episodes, [method(each) for each in episodes]))}


def test_who_says_what_is_true_has_the_best_of_every_figure() -> None:
    found = said(LIVES, oracle)
    best = {key: figure.value for key, figure in found.items() if figure.better > 0 and not np.isnan(figure.value)}
    assert {"request.top_1", "request.macro_f1", "step.f1_at_43", "step.pr_auc_at_5", "effect_from_3.top_1"} <= set(
        best
    )
    assert set(best.values()) == {1.0}
    least = {key: figure.value for key, figure in found.items() if figure.better < 0 and not np.isnan(figure.value)}
    assert least == dict.fromkeys(least, 0.0) and "certainty.ece" in least and "healthy_beside.alarms_an_hour" in least
    assert all(figure.low == figure.high == figure.value for figure in found.values() if not np.isnan(figure.low))


def test_who_always_cries_is_told_by_what_it_costs() -> None:
    found = said(LIVES, crying)
    assert found["request.top_1"].value == pytest.approx(1 / 3, abs=0.03)
    assert found["request.healthy_unclaimed"].value == 0.0
    # One alarm in each healthy window, of WINDOW each.
    assert found["healthy_beside.alarms_an_hour"].value == pytest.approx(3600 / (WINDOW / 1000))


@pytest.mark.parametrize(("unsure", "right"), [(0, 1.0), (7, 1.0), (len(LIVES), 5 / 6)])
def test_a_tenth_of_struck_requests_may_stay_without_a_cause(unsure: int, right: float) -> None:
    least = {id(each) for each in LIVES[:unsure]}  # one of six stays without in each of these

    def half_sure(one: Episode) -> Judged:
        told = oracle(one)
        struck = [at for at, cause in enumerate(one.labels.request) if cause not in ("", "?")]
        sure = told.sure.copy()
        causes = list(told.causes)
        for at in struck[: len(struck) // 6 if id(one) in least else 0]:
            causes[at], sure[at] = [], 1.0  # sure of nothing that it claims
        return replace(told, causes=causes, sure=sure)

    found = said(LIVES, half_sure)["certainty.cause_right_at_90"].value
    assert found == pytest.approx(right)


def test_nothing_is_said_of_fewer_than_thirty_windows() -> None:
    few = said(LIVES[:6], oracle)
    assert np.isnan(few["request.top_1"].value) and few["request.top_1"].why == "12 windows"
    assert few["request.top_1"].positives == 12 and said(LIVES, oracle)["request.top_1"].positives == 42


def test_a_window_that_stands_in_several_episodes_is_one() -> None:
    again = [episode(0, "gc") for _ in range(20)]
    found = said(again, oracle)
    assert found["request.top_1"].positives == 2
    rows = rows_of(again, [oracle(each) for each in again]).steps
    assert distinct_healthy(rows) == int((again[0].labels.step == 0).sum())


def test_low_priors_need_many_healthy_steps_of_many_lives() -> None:
    found = said(LIVES, oracle)
    assert not np.isnan(found["step.pr_auc_at_5"].value)
    assert np.isnan(found["step.pr_auc_at_1"].value) and "of 7 lives" in found["step.pr_auc_at_1"].why
    many = rows_of(LIVES, [oracle(each) for each in LIVES]).steps
    repeated = replace(
        many,
        **{name: np.concatenate([column] * 3) for name, column in vars(many).items() if name not in ("life", "moment")},
        life=np.concatenate([many.life + 100 * at for at in range(3)]).astype(np.int32),
        moment=np.concatenate([many.moment] * 3),
    )
    low = {figure.key: figure for figure in of_steps(repeated, "step")}
    assert (low["step.pr_auc_at_1"].value, low["step.recall_at_fpr_0.1"].value) == (1.0, 1.0)


def test_hard_negatives_count_by_themselves() -> None:
    hard = [episode(life, kind, hard=True) for life in range(7) for kind in ("gc", "disk", "starved")]
    assert said(hard, oracle)["request.hard_unclaimed"].value == 1.0
    found = said(hard, crying)
    assert found["request.hard_unclaimed"].value == 0.0
    assert found["healthy_beside.alarms_an_hour"].value == pytest.approx(3600 / (WINDOW / 1000))


def test_a_cause_kept_from_training_is_to_be_called_abnormal_and_not_another_cause() -> None:
    def unseen(method: Callable[[Episode], Judged]) -> tuple[float, ...]:
        rows = rows_of(LIVES, [method(each) for each in LIVES]).requests
        found = of_unseen(answers(rows), "host.io_stall")
        assert [one.key.partition(".")[2] for one in found] == ["called_abnormal", "named", "named_wrongly"]
        assert [one.better for one in found] == [1, 0, -1]
        return tuple(one.value for one in found)

    def undecided(one: Episode) -> Judged:
        return replace(oracle(one), causes=[[]] * len(one.labels.request), verdict=[CANNOT] * len(one.labels.request))

    def content(one: Episode) -> Judged:
        return replace(undecided(one), verdict=[TYPICAL] * len(one.labels.request))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "LEAST_POSITIVES", 14)  # a third of the struck windows
        assert unseen(oracle) == (1.0, 1.0, 0.0)
        assert unseen(crying) == (1.0, 1.0, 1.0)
        assert unseen(undecided) == (1.0, 0.0, 0.0)
        assert unseen(content) == (0.0, 0.0, 0.0)


def test_typical_is_a_miss_where_everybody_is_struck() -> None:
    def content(one: Episode) -> Judged:
        return replace(oracle(one), causes=[[]] * len(one.labels.request), verdict=[TYPICAL] * len(one.labels.request))

    requests = rows_of(LIVES, [content(each) for each in LIVES]).requests
    found = {figure.key: figure.value for figure in of_all_faulty(answers(requests))}
    assert (found["all_faulty.called_normal"], found["all_faulty.top_1"]) == (1.0, 0.0)


def test_what_strikes_between_ranks_is_told_apart_from_what_strikes_inside_one() -> None:
    def between(one: Episode) -> Episode:
        request = ["comm.degraded_link" if cause == one.labels.cause else cause for cause in one.labels.request]
        return replace(one, labels=replace(one.labels, cause="comm.degraded_link", request=request))

    def blind(one: Episode) -> Judged:
        """Right, but of what strikes between ranks it says nothing."""
        right = oracle(one)
        if one.labels.cause != "comm.degraded_link":
            return right
        silent: list[list[Claim]] = [[] for _ in right.causes]
        return replace(right, step_score=0 * right.step_score, step_flag=0 * right.step_flag, causes=silent)

    found = said([*LIVES, *map(between, LIVES)], blind)
    assert (found["view_vertical.top_1"].value, found["view_horizontal.top_1"].value) == (1.0, 0.0)
    assert (found["step_vertical.f1_at_43"].value, found["step_horizontal.f1_at_43"].value) == (1.0, 0.0)
    assert found["request.top_1"].value == pytest.approx(0.5)
    assert found["step_horizontal.f1_at_43"].positives == 42
    assert said(LIVES, oracle)["view_horizontal.top_1"].why == "0 windows"


def test_without_healthy_time_there_are_no_alarms_an_hour() -> None:
    one = replace(LIVES[0], labels=replace(LIVES[0].labels, healthy_ns=0))
    (figure,) = alarms(rows_of([one], [oracle(one)]), "x")
    assert np.isnan(figure.value) and figure.why == "no healthy window"
