"""Ours with the model as a method: the answers of numbers and rules, with its word on each."""

import numpy as np
import pytest

from teller_core.errors import InputError
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.methods import method, ours
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


@pytest.mark.skipif(SHIPPED.is_file(), reason="a model ships")
def test_without_weights_it_says_what_to_do() -> None:
    with pytest.raises(InputError, match="Train one: teller model train"):
        method("fused").train([], {}, 0)
