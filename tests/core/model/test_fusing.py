"""The weights of two opinions: the likeliest there are, and those that were put in."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from teller_core.data.pooling import FIRST, NONE, UNTOLD, Asked, Fusion, Weights, pooled
from teller_core.data.sheets import CLUE, cause_ids
from teller_core.data.table import Int64
from teller_core.model.calibrating import Calibration
from teller_core.model.classes import classes
from teller_core.model.fusing import PRIOR, by_tier, fitted, fused, fused_by_tier, fused_scores, sure_of
from teller_core.model.measured import Scores
from tests.core.model.making import inputs_of, sheets_of


def made(count: int, seed: int, *, model: float, rules: float) -> tuple[Asked, Int64]:
    """Requests half of which something struck; the model and the rules find it as often as that, and else something else."""
    chance = np.random.default_rng(seed)
    truth = np.where(chance.random(count) < 0.5, NONE, FIRST + chance.integers(0, 4, count))
    strange = np.where(chance.random(count) < 0.5, NONE, FIRST + chance.integers(0, 4, count))
    seen = np.where(chance.random(count) < model, truth, strange)
    likely = np.full((count, classes()), 0.2 / (classes() - 1))
    likely[np.arange(count), seen] = 0.8
    told = np.where(chance.random(count) < rules, truth, chance.permutation(truth))
    clues = np.zeros((count, len(cause_ids()), len(CLUE)), dtype=np.float32)
    rows = np.flatnonzero(told >= FIRST)
    clues[rows, told[rows] - FIRST] = 0.4, 0.9, 1.0
    known = np.ones(classes(), dtype=np.bool_)
    return Asked(clues, likely / likely.sum(axis=1, keepdims=True), (seen != NONE) * 0.8 + 0.1, known), truth


def surprise(asked: Asked, truth: Int64, weights: Weights) -> float:
    likely = pooled(asked, weights)[np.arange(len(truth)), truth]
    return float(-np.log(likely).sum() + 0.5 * PRIOR * np.sum((weights.vector - Weights().vector) ** 2))


@given(some.integers(0, 10**6), some.floats(0.3, 0.95), some.floats(0.3, 0.95))
@settings(max_examples=15, deadline=None)
def test_no_other_weights_near_by_make_the_truth_likelier(seed: int, model: float, rules: float) -> None:
    asked, truth = made(120, seed, model=model, rules=rules)
    best = fitted(asked, truth)
    least, chance = surprise(asked, truth, best), np.random.default_rng(seed)
    for size in (1e-3, 0.1, 1.0):
        moved = Weights(*(best.vector + chance.normal(0.0, size, len(best.vector))).tolist())
        assert surprise(asked, truth, moved) >= least - 1e-9


def test_who_is_right_counts_more() -> None:
    sharp = fitted(*made(1500, 0, model=0.95, rules=0.4))
    blunt = fitted(*made(1500, 1, model=0.4, rules=0.95))
    assert sharp.model > blunt.model + 0.2 and blunt.told > sharp.told + 1
    assert blunt.quiet > sharp.quiet


def test_both_together_are_no_less_right_than_either_and_know_how_right_they_are() -> None:
    asked, truth = made(3000, 2, model=0.7, rules=0.7)
    likely = pooled(asked, fitted(asked, truth))
    rules = np.where(asked.clues[:, :, 2].any(axis=1), FIRST + asked.clues[:, :, 2].argmax(axis=1), NONE)
    right = [float((said == truth).mean()) for said in (likely.argmax(axis=1), asked.likely.argmax(axis=1), rules)]
    assert right[0] >= max(right[1:])
    said = likely.argmax(axis=1)
    sure = sure_of(likely, said)
    assert abs(float(sure.mean()) - right[0]) < 0.03
    assert (said == truth)[sure > 0.9].mean() > 0.93 and 0.3 < (sure > 0.9).mean() < 0.9


def test_a_cause_that_the_model_never_learned_is_left_to_rules() -> None:
    asked, truth = made(1500, 3, model=0.9, rules=0.9)
    strange = truth == FIRST + 3
    likely = asked.likely.copy()
    likely[strange, UNTOLD] += likely[strange, FIRST + 3]
    likely[:, FIRST + 3] = 0.0
    known = asked.known.copy()
    known[FIRST + 3] = False
    given = Asked(asked.clues, likely / likely.sum(axis=1, keepdims=True), asked.abnormal, known)
    said = pooled(given, fitted(given, truth)).argmax(axis=1)
    evident = asked.clues[:, 3, 1] > 0
    assert (said[strange & evident] == FIRST + 3).mean() > 0.8
    assert (said[strange & ~evident] != FIRST + 3).all() and (strange & ~evident).any()


def test_it_is_fitted_to_requests_whose_truth_is_known_and_says_how_good_it_is() -> None:
    sheets, wanted = sheets_of(400, 3)
    inputs = inputs_of(sheets, wanted)
    flat = np.zeros((400, classes()))
    scores = Scores(np.zeros(400), flat, *(np.zeros(0) for _ in range(4)), loss={})
    known = np.ones(classes(), dtype=np.bool_)
    fusion = fused(scores, inputs, Calibration(), known)
    assert (
        fusion.weights.told > 2 and fusion.weights.quiet > 1
    )  # the rules of made sheets are right, the model says nothing
    request = inputs.requests
    asked = Asked(inputs.clues[request], Calibration().causes(flat)[request], np.full(request.sum(), 0.5), known)
    told = fused_scores(asked, wanted[request], fusion)
    assert told["fused, a struck request: top-1"] > 0.9 and told["fused, a struck request: right where named"] > 0.9
    assert told["fused, healthy requests: given a cause"] == 0.0
    nobody = replace(inputs, wanted=replace(inputs.wanted, cause=np.full(400, -1, np.int32)))
    assert fused(scores, nobody, Calibration(), known) == Fusion()


def test_a_tier_with_enough_struck_requests_has_weights_of_its_own() -> None:
    sheets, wanted = sheets_of(600, 3)
    inputs = inputs_of(sheets, wanted)
    tier = np.where(np.arange(600) % 2 == 0, 4, 2).astype(np.int32)
    clues = np.where(tier[:, None, None] == 2, np.float32(np.nan), inputs.clues)  # at T2 no rule says anything
    inputs = replace(inputs, tier=tier, clues=clues)
    scores = Scores(np.zeros(600), np.zeros((600, classes())), *(np.zeros(0) for _ in range(4)), loss={})
    known = np.ones(classes(), dtype=np.bool_)
    found = by_tier(scores, inputs, Calibration(), known)
    every = fused(scores, inputs, Calibration(), known)
    assert found[0] == found[1] == found[3] == every  # nobody was struck there
    assert found[4].weights.told > every.weights.told > found[2].weights.told
    told = fused_by_tier(scores, inputs, Calibration(), known, found)
    assert told["T4, fused, a struck request: top-1"] > 0.9 > told["T2, fused, a struck request: top-1"]


@pytest.mark.parametrize("struck", [0, 300])
def test_few_requests_leave_the_weights_where_they_were(struck: int) -> None:
    asked, truth = made(300, 4, model=0.9, rules=0.9)
    few = Asked(asked.clues[:struck], asked.likely[:struck], asked.abnormal[:struck], asked.known)
    moved = np.abs(fitted(few, truth[:struck]).vector - Weights().vector).max()
    assert moved == 0.0 if not struck else moved > 0.5
