"""The model as a method: with weights that learned next to nothing it says one thing of every step and request."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.context.tpe.default import default
from teller_core.errors import InputError
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.methods import method
from teller_core.lab.evaluation.methods.model import judge, sure
from teller_core.model.card import Reads
from teller_core.model.judging import SHIPPED, Model, load
from teller_core.model.training import WEIGHTS, train
from teller_core.model.verdicts import Verdict, Verdicts
from tests.core.lab.evaluation.made import profiled, side
from tests.core.model.test_training import QUICK, WORK

pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    made = tmp_path_factory.mktemp("model")
    reads = Reads(default().hash, 128)
    train(replace(WORK, reads=reads, plan=replace(QUICK, updates=1)), made, lambda text: None)
    return load(made / WEIGHTS, threads=1)


@pytest.mark.parametrize("episode", [side([0])[0], profiled(0)], ids=["plain", "profiled"])
def test_it_says_one_thing_of_each_step_and_request(model: Model, episode: Episode) -> None:
    capture = episode.seen.capture
    said = judge(model, episode.seen)
    said.check(capture)
    assert np.isfinite(said.step_score).all() and len(capture.steps.engine)
    names = {name for mine in said.operators for name in mine}
    assert names or not any(rank.tree is not None for rank in capture.ranks)
    assert all(0 <= rank < len(capture.ranks) for mine in said.ranks for rank in mine)
    named = [bool(causes) == (verdict == "cause") for causes, verdict in zip(said.causes, said.verdict, strict=True)]
    assert all(named)


def test_how_sure_it_is_is_of_what_it_says() -> None:
    none = np.zeros(3, dtype=np.float32)
    said = Verdicts(
        verdict=np.array([Verdict.CALM, Verdict.CAUSE, Verdict.UNTOLD], dtype=np.uint8),
        abnormal=np.array([0.1, 0.9, 0.8]),
        cause=np.array([2, 2, 2], dtype=np.int32),
        sure=np.array([0.2, 0.7, 0.3], dtype=np.float32),
        likely=np.zeros((3, 4), dtype=np.float32),
        suspects=none,
        pieces=none,
        together=none,
        facts=none,
    )
    assert sure(said) == pytest.approx([0.9, 0.7, 0.8])


@pytest.mark.skipif(SHIPPED.is_file(), reason="a model ships")
def test_without_weights_it_says_what_to_do() -> None:
    with pytest.raises(InputError, match="Train one: teller model train"):
        method("model").train([], {}, 0)
