"""Weights that do not ship are judged, and nothing is written."""

from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.errors import FormatError, InputError
from teller_core.lab.benchmark.pack import Packed
from teller_core.lab.evaluation import loading, unshipped
from teller_core.lab.evaluation.episode import TEST, TRAIN
from teller_core.lab.evaluation.running import Sides
from teller_core.lab.evaluation.tables import said
from teller_core.lab.evaluation.unshipped import Weights, evaluate_weights
from tests.core.lab.evaluation.made import side

pytest.importorskip("torch")
pytest.importorskip("transformers")
from teller_core.model.judging import Model, load
from tests.core.model.weights_made import weights_in


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights_in(tmp_path_factory.mktemp("model"))


def quiet(text: str) -> None:
    """Nobody looks."""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lives that are read of those in ``tmp_path``: two of each side, one of which the weights were chosen by."""
    names: list[str] = []
    about = {"life-0": TRAIN, "life-1": TRAIN, "life-2": TEST, "life-3": TEST}
    packed = [Packed(name, tmp_path, {"side": each}, []) for name, each in about.items()]

    def unpacked(life: Packed, store: Path) -> None:
        store.write_text("")

    def sides(given: loading.Opened, *more: object) -> Sides:
        names.extend(life.name for life in given.lives)
        by_side = {which: [int(n[-1]) for n in names if about[n] == which] for which in (TRAIN, TEST)}
        return Sides(side(by_side[TRAIN]), side(by_side[TEST]))

    def chosen(path: Path, *, threads: int) -> Model:
        model = load(path, threads=threads)
        plan = replace(model.card.plan, unseen="host.gc_pause")
        return replace(model, card=replace(model.card, held=["life-1", "elsewhere"], plan=plan))

    monkeypatch.setattr(loading, "lives", lambda folder: packed)
    monkeypatch.setattr(loading, "unpack", unpacked)
    monkeypatch.setattr(unshipped, "cores", lambda: 1)
    monkeypatch.setattr(unshipped, "sides", sides)
    monkeypatch.setattr(unshipped, "load", chosen)
    return names


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        (TEST, (["life-2", "life-3"], "Test side: 2 lives")),
        (TRAIN, (["life-1"], "Training side, lives that the weights were chosen by: 1 lives")),
    ],
)
def test_weights_are_judged_on_lives_that_they_did_not_learn_from(
    where: str, wanted: tuple[list[str], str], weights: Path, tmp_path: Path, read: list[str]
) -> None:
    (text,) = evaluate_weights("fused", Weights(weights, where), tmp_path, (3,), quiet)
    lives, head = wanted
    assert read == lives and text.splitlines()[1].startswith(head)
    assert weights.name in text.splitlines()[0] and "unseen.called_abnormal" in text
    assert not [*tmp_path.iterdir()] and said(text) is not None


def test_a_method_that_asks_no_model_takes_no_weights(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ours asks no model"):
        evaluate_weights("ours", Weights(weights, TEST), tmp_path, (4,), quiet)


def test_what_is_wrong_with_weights_is_told_before_lives_are_read(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"nowhere\.safetensors"):
        evaluate_weights("model", Weights(tmp_path / "nowhere.safetensors", TEST), tmp_path / "no lives", (4,), quiet)
    model = load(weights, threads=1)
    foreign = replace(model, card=replace(model.card, reads=replace(model.card.reads, vocabulary="another")))
    monkeypatch.setattr(unshipped, "load", lambda path, *, threads: foreign)
    with pytest.raises(FormatError, match="trained with another vocabulary of traces"):
        evaluate_weights("model", Weights(weights, TEST), tmp_path / "no lives", (4,), quiet)
