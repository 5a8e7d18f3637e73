"""Two opinions pooled: likelihoods that sum to one, and no cause that nothing speaks for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from teller_core.data.pooling import FIRST, LEAST, NONE, UNTOLD, Asked, Weights, chosen, evident, one, pooled

CAUSES = 5
CLASSES = FIRST + CAUSES


@some.composite
def asked(draw: some.DrawFn) -> Asked:
    count, seed = draw(some.integers(1, 6)), draw(some.integers(0, 2**32 - 1))
    chance = np.random.default_rng(seed)
    clues = np.zeros((count, CAUSES, 3), dtype=np.float32)
    found = chance.random((count, CAUSES)) < 0.4
    clues[found] = np.column_stack([chance.uniform(0.0, 2.0, found.sum()), chance.uniform(0.3, 1.0, found.sum()),
                                    chance.integers(0, 2, found.sum())])  # fmt: skip
    clues[chance.random((count, CAUSES)) < 0.2] = np.nan
    known = np.append([True, True], chance.random(CAUSES) < 0.7)
    raw = np.where(known, chance.gamma(0.3, size=(count, CLASSES)) + 1e-12, 0.0)
    return Asked(clues, raw / raw.sum(axis=1, keepdims=True), chance.random(count), known)


weights = some.builds(Weights, *[some.floats(-5, 5) for _ in Weights().vector])


@given(asked(), weights)
def test_they_sum_to_one_and_leave_out_what_nobody_can_say(given: Asked, counted: Weights) -> None:
    likely = pooled(given, counted)
    assert likely.sum(axis=1) == pytest.approx(np.ones(len(likely))) and (likely >= 0).all()
    nobody = ~given.known[FIRST:] & ~evident(given.clues)
    assert (likely[:, FIRST:][nobody] == 0).all()


@given(asked(), weights, some.floats(0, 1))
def test_no_cause_is_named_that_nothing_speaks_for_or_that_another_outweighs(
    given: Asked, counted: Weights, threshold: float
) -> None:
    likely, may = pooled(given, counted), evident(given.clues)
    for row, said in enumerate(chosen(likely, may, threshold).tolist()):
        if said >= FIRST:
            assert may[row, said - FIRST] and likely[row, said] >= threshold
            assert likely[row, said] >= np.delete(likely[row], UNTOLD).max()
        else:
            assert (said == NONE) == (likely[row, NONE] >= 0.5)


def plain(likely: list[float], told: int = -1, known: list[bool] | None = None) -> Asked:
    """One request; the rule of cause ``told`` is sure of it, all others saw nothing."""
    clues = np.zeros((CAUSES, 3), dtype=np.float32)
    if told >= 0:
        clues[told] = 0.5, 0.9, 1.0
    return one(clues, np.array(likely), 0.5, np.array(known or [True] * CLASSES))


def test_without_weight_for_rules_it_is_what_the_model_says() -> None:
    likely = [0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1]
    assert pooled(plain(likely, 3), Weights(told=0.0))[0] == pytest.approx(likely)


def test_a_claim_of_rules_gains_by_a_model_that_agrees_and_loses_by_one_that_contradicts() -> None:
    agrees, shrugs, contradicts = (
        float(pooled(plain([0.02, 0.02, cause, other, 0.02, 0.02, 0.02], 0), Weights(told=2.0))[0, FIRST])
        for cause, other in ((0.8, 0.1), (0.45, 0.45), (0.02, 0.88))
    )
    assert agrees > 0.9 > shrugs > 0.6 and contradicts < 0.3


def test_what_a_model_never_learned_is_to_it_what_it_cannot_tell() -> None:
    known = [True, True, True, True, True, True, False]
    said = pooled(plain([0.05, 0.65, 0.1, 0.1, 0.05, 0.05, 0.0], 4, known), Weights(told=2.0))[0]
    assert said[-1] > 0.6 and said.argmax() == CLASSES - 1
    assert pooled(plain([0.05, 0.65, 0.1, 0.1, 0.05, 0.05, 0.0], -1, known), Weights())[0, -1] == 0.0


def test_a_model_that_is_surer_than_it_can_be_still_lets_rules_speak() -> None:
    sure = pooled(plain([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0), Weights(told=12.0))[0]
    assert sure[FIRST] == pytest.approx(1 / (1 + np.exp(-12.0 * 0.9) / LEAST + 5 * np.exp(-12.0 * 0.9)), rel=1e-6)
