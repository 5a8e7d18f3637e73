"""Ours with the model as a method: the answers of numbers and rules, with its word on each."""

import numpy as np
import pytest

from teller_core.errors import InputError
from teller_core.judge import claims, clues, diagnose
from teller_core.judge.evidence import Clue
from teller_core.judge.scene import Scene
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.methods import fused, method, ours
from teller_core.lab.evaluation.methods import model as model_method
from teller_core.lab.evaluation.methods.fused import judge
from teller_core.lab.evaluation.seen import blinded
from teller_core.model.judging import SHIPPED, Model, load
from tests.core.lab.evaluation.made import episode, profiled

pytest.importorskip("torch")
pytest.importorskip("transformers")
from tests.core.model.weights_made import weights_in


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(weights_in(tmp_path_factory.mktemp("model")), threads=1)


@pytest.mark.parametrize("given", [episode(0, "gc"), profiled(0)], ids=["plain", "profiled"])
def test_it_says_one_thing_of_each_step_and_request(model: Model, given: Episode) -> None:
    said = judge(model, given.seen)
    said.check(given.seen.capture)
    assert np.isfinite(said.step_score).all()
    for mine, theirs in zip(said.operators, ours.suspected(given.seen), strict=True):
        assert set(theirs) <= set(mine) and len(set(mine)) == len(mine)
    named = [bool(causes) == (verdict == "cause") for causes, verdict in zip(said.causes, said.verdict, strict=True)]
    assert all(named)


def test_only_what_is_asked_about_is_answered(model: Model) -> None:
    given = episode(0, "gc")
    asked = np.zeros(len(given.labels.request), dtype=np.bool_)
    asked[7] = True
    one, all_of_them = judge(model, blinded(given.seen.capture, asked)), judge(model, given.seen)
    assert one.causes[7] == all_of_them.causes[7] and one.sure[7] == all_of_them.sure[7]
    assert not any(one.causes[:7]) and not one.sure[8:].any()


def test_steps_that_nobody_asks_about_are_not_read(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    given = profiled(0)
    asked = np.zeros(len(given.labels.step), dtype=np.bool_)
    asked[[3, 9]] = True
    one, whole = judge(model, blinded(given.seen.capture, asked_steps=asked)), judge(model, given.seen)
    assert np.flatnonzero(np.isfinite(one.step_score)).tolist() == [3, 9]
    assert one.step_score[asked] == pytest.approx(whole.step_score[asked], abs=1e-5)
    assert one.operators[3] == whole.operators[3]
    monkeypatch.setattr(model_method, "step_sheets", lambda *given: pytest.fail("a sheet was written"))
    nothing_asked = judge(model, blinded(given.seen.capture, asked_steps=asked & False))
    assert not np.isfinite(nothing_asked.step_score).any()


def test_rules_are_heard_once_for_a_sheet_and_once_for_its_answer(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []

    def counted(view: Scene) -> list[Clue]:
        heard.append(view.life.request)
        return claims.heard(view)

    monkeypatch.setattr(clues, "heard", counted)
    monkeypatch.setattr(diagnose, "heard", counted)
    monkeypatch.setattr(clues, "MOST_KEPT", 5)
    monkeypatch.setattr(fused, "MOST_KEPT", 5)
    seen = blinded(episode(0, "gc").seen.capture)
    judge(model, seen)
    assert sorted(heard) == sorted([*seen.requests_asked.tolist()] * 2)
    assert len(seen.case.measured["heard of the last requests"]) == 5


@pytest.mark.skipif(SHIPPED.is_file(), reason="a model ships")
def test_without_weights_it_says_what_to_do() -> None:
    with pytest.raises(InputError, match="Train one: teller model train"):
        method("fused").train([], {}, 0)
