"""Every method has one shape, sees no truth, and finds in made services what was put into them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from teller_core.data.log_templates import template
from teller_core.data.records import FileRead
from teller_core.errors import UnknownName
from teller_core.lab.evaluation.cause_map import MOST_SUSPICIOUS, request_rows, steps_of
from teller_core.lab.evaluation.causes import balanced, named, struck, within
from teller_core.lab.evaluation.detection import at_prior, average_precision, ranked
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.learners import mixture
from teller_core.lab.evaluation.method import BUDGET, CANNOT, Judged, Method
from teller_core.lab.evaluation.methods import METHODS, method
from teller_core.lab.evaluation.methods.kde import Kernels
from teller_core.lab.evaluation.ranking import hits, place
from teller_core.lab.evaluation.rows import Rows, rows_of
from teller_core.lab.evaluation.seen import blinded
from teller_core.pipeline import STAGES
from tests.core.lab.evaluation.made import CAUSES, episode, profiled, side

pytest.importorskip("sklearn", reason="needs the lab extra")

OF_STEPS = ("ours", "numbers", "zscore", "quantile", "forest", "kde", "copula", "regression", "logs")
OF_OPERATORS = ("ours", "numbers", "zscore", "regression", "path", "paper")


@cache
def judged(name: str) -> tuple[list[Episode], list[Judged]]:
    """What a method says of lives that it was not trained on."""
    return _run(METHODS[name], side([0, 1, 2]), side([3, 4]))


@cache
def of_profiles(name: str) -> tuple[list[Episode], list[Judged]]:
    return _run(METHODS[name], [profiled(0), profiled(1)], [profiled(2)])


def _run(one: Method, train: Sequence[Episode], test: Sequence[Episode]) -> tuple[list[Episode], list[Judged]]:
    learned = one.train(train, one.grid[-1], 0)
    return list(test), [one.judge(learned, each.seen) for each in test]


def rows(found: tuple[list[Episode], list[Judged]]) -> Rows:
    return rows_of(*found)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_one_thing_of_each_step_and_request(name: str) -> None:
    one = METHODS[name]
    assert one.name == name and one.about and 1 <= len(one.grid) <= BUDGET
    for each, said in zip(*judged(name), strict=True):
        each.labels.check(each.seen.capture)
        said.check(each.seen.capture)


@pytest.mark.parametrize("name", OF_STEPS)
def test_a_method_ranks_the_steps_that_something_struck_before_the_others(name: str) -> None:
    steps = rows(judged(name)).steps
    weight = at_prior(steps.label, np.ones(len(steps.label)), 0.1)
    blind = average_precision(ranked(steps.label, np.zeros(len(steps.label))), weight)
    assert blind == pytest.approx(0.1)
    # Lines are of a window, not of a step; a forest looks at one number at a time.
    least = {"logs": 0.5, "forest": 0.7}.get(name, 0.9)
    assert average_precision(ranked(steps.label, steps.score), weight) >= least


@pytest.mark.parametrize("name", OF_STEPS)
def test_a_method_names_the_cause_of_most_requests_and_none_of_healthy_ones(name: str) -> None:
    requests = rows(judged(name)).requests
    given = named(requests.truth, requests.claims)
    assert within(given, 1)[struck(given)].mean() >= 0.9
    assert balanced(given, np.ones(len(requests.truth))) >= 0.9


@pytest.mark.parametrize("name", OF_OPERATORS)
def test_a_method_that_localizes_names_the_slow_operator(name: str) -> None:
    operators = rows(of_profiles(name)).operators
    pairs = zip(operators.named, operators.right, strict=True)
    places = np.array([place(mine, right) for mine, right in pairs], dtype=np.int32)
    assert hits(places, 1).mean() >= 0.9


def test_the_paper_cannot_tell_of_steps_without_a_profile() -> None:
    assert all(np.isnan(said.step_score).all() for said in judged("paper")[1])
    (said,) = of_profiles("paper")[1]
    assert not np.isnan(said.step_score).any()


def test_rules_alone_suspect_no_span_and_expect_nothing() -> None:
    for said in (*judged("rules")[1], *of_profiles("rules")[1]):
        assert np.isnan(said.step_score).all() and not any(said.operators)


def test_the_difference_between_ranks_needs_two_of_them() -> None:
    one, two = profiled(0), profiled(1, ranks=2)
    _, (alone, both) = _run(METHODS["cross_rank"], [one], [one, two])
    assert np.isnan(alone.step_score).all() and not any(alone.ranks)
    assert not np.isnan(both.step_score).any() and {len(mine) for mine in both.ranks} == {2}


def test_what_a_method_says_does_not_hang_on_names_or_labels() -> None:
    one = episode(3, "gc")
    renamed = replace(
        one.seen.capture, id="gc_pause", name="gc_pause-strong", files=[FileRead("gc_pause.log", "vllm_log", 1)]
    )
    assert blinded(renamed).capture.id == one.seen.capture.id
    assert [file.name for file in blinded(renamed).capture.files] == ["file-0"]
    for name in ("ours", "logs"):
        learned = METHODS[name].train(side([0, 1]), METHODS[name].grid[0], 0)
        first, again = (METHODS[name].judge(learned, seen) for seen in (one.seen, blinded(renamed)))
        assert first.causes == again.causes and np.array_equal(first.step_score, again.step_score, equal_nan=True)


def test_ours_says_what_an_import_answers_and_nothing_of_what_is_not_asked() -> None:
    seen = episode(3, "gc").seen
    reports = list(STAGES.diagnose(seen.capture, seen.assessment))
    whole = METHODS["ours"].judge(None, seen)
    assert whole.verdict == [report.verdict for report in reports] and "cause" in whole.verdict
    assert [[claim.cause for claim in mine] for mine in whole.causes] == [
        [finding.cause for finding in report.findings] for report in reports
    ]
    asked = np.arange(len(reports)) % 2 == 0
    some = METHODS["ours"].judge(None, blinded(seen.capture, asked))
    assert some.causes[::2] == whole.causes[::2] and some.verdict[::2] == whole.verdict[::2]
    assert not any(some.causes[1::2]) and set(some.verdict[1::2]) == {CANNOT}


def test_the_same_seed_gives_the_same_answers() -> None:
    one = METHODS["forest"]
    train, test = side([0, 1]), episode(2, "disk")
    first, again = (one.judge(one.train(train, one.grid[0], 5), test.seen) for _ in range(2))
    assert np.array_equal(first.step_score, again.step_score)


def test_lines_of_one_template_differ_in_their_values_alone() -> None:
    assert template("", "Preempted 3f9a77c02b after 12.5 ms at 0x7f00") == template(
        "", "Preempted 00aa17c02b after 9 ms at 0x1"
    )
    assert template("vllm.preempted", "anything") == "vllm.preempted"


def test_requests_of_which_no_step_is_known_have_those_that_ran_meanwhile() -> None:
    seen = episode(0, "gc").seen
    nobody = replace(
        seen.capture,
        participation=replace(
            seen.capture.participation,
            **{name: column[:0] for name, column in vars(seen.capture.participation).items()},
        ),
    )
    told, guessed = steps_of(seen), steps_of(blinded(nobody))
    assert all(set(a.tolist()) <= set(b.tolist()) for a, b in zip(told, guessed, strict=True))


def test_a_method_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownName, match="none of ours"):
        method("oracle")
    assert set(CAUSES.values()) <= {claim.cause for said in judged("ours")[1] for mine in said.causes for claim in mine}


def test_the_posterior_of_a_mixture_is_that_of_scikit_learn() -> None:
    from sklearn.mixture import GaussianMixture

    chance = np.random.default_rng(4)
    value = np.concatenate([chance.normal(0, 1, (60, 3)), chance.normal(4, 2, (40, 3))])
    theirs = GaussianMixture(2, covariance_type="diag", reg_covar=1e-4, random_state=1, max_iter=200).fit(value)
    assert np.allclose(mixture(value, 2, 1).posterior(value), theirs.predict_proba(value))


def test_a_request_has_the_mean_of_its_most_suspicious_steps() -> None:
    seen = episode(1, "disk").seen
    score = np.where(np.arange(len(seen.case.begin)) % 7 == 0, np.nan, seen.steps.took)
    found = request_rows(seen, score)
    for request, mine in enumerate(steps_of(seen)):
        ordered = sorted(mine.tolist(), key=lambda step: -score[step] if score[step] == score[step] else np.inf)
        value = seen.steps.value[ordered[:MOST_SUSPICIOUS]]
        means = [column[~np.isnan(column)].mean() if not np.isnan(column).all() else np.nan for column in value.T]
        known = score[mine][~np.isnan(score[mine])]
        assert found[request, : len(means)] == pytest.approx(means, nan_ok=True)
        assert found[request, len(means) : len(means) + 2] == pytest.approx([known.max(), known.mean()])
    assert np.array_equal(found[:, -seen.requests.shape[1] :], seen.requests, equal_nan=True)
    nothing_known = request_rows(seen, np.full(len(score), np.nan))
    assert np.isnan(nothing_known[:, found.shape[1] - seen.requests.shape[1] - 2 :][:, :2]).all()


def test_a_density_is_the_sum_of_its_kernels() -> None:
    chance = np.random.default_rng(4)
    middle, rows = chance.normal(size=(50, 3)), np.concatenate([chance.normal(size=(150, 3)), np.full((1, 3), 40.0)])
    away = ((rows[:, None] - middle) ** 2).sum(axis=2) / (2 * 0.5**2)
    least = away.min(axis=1)
    expected = np.log(np.exp(least[:, None] - away).sum(axis=1)) - least
    assert Kernels(middle, 0.5).score_samples(rows) == pytest.approx(expected, rel=1e-4, abs=1e-3)
