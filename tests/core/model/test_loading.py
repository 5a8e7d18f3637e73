"""One model for a process: loaded once, in the background, and no thread of it left behind."""

import signal
import threading
from pathlib import Path

import pytest

from teller_core.model import loading
from teller_core.model.loading import ENDING, LOADING, NOT_INSTALLED, NOT_TRAINED, UNUSABLE, Loader
from teller_core.model.words.grammar import words_hash

pytest.importorskip("torch")
pytest.importorskip("transformers")
from teller_core.model.judging import Model
from tests.core.model.weights_made import weights_in


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights_in(tmp_path_factory.mktemp("model"))


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "teller-model"]


def test_without_weights_it_says_so_and_starts_nothing(tmp_path: Path) -> None:
    loader = Loader(tmp_path / "none.safetensors")
    assert loader.ask() == NOT_TRAINED and loader.identity == "" and not threads()


def test_without_the_extra_it_says_what_to_install(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "installed", lambda: False)
    loader = Loader(weights, wait=True)
    assert loader.ask() == NOT_INSTALLED and "teller-mcp[model]" in NOT_INSTALLED and not threads()


def test_who_waits_has_it_and_who_does_not_is_told_that_it_comes(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, real = threading.Event(), loading.import_module

    def slowly(name: str) -> object:
        held.wait(60)
        return real(name)

    monkeypatch.setattr(loading, "import_module", slowly)
    loader = Loader(weights)
    assert [loader.ask(), loader.ask()] == [LOADING, LOADING] and len(threads()) == 1
    held.set()
    loader.close()
    assert not threads()
    waited = Loader(weights, wait=True)
    model = waited.ask()
    assert isinstance(model, Model) and waited.ask() is model and model.card.reads.words == words_hash()


def test_what_is_being_loaded_is_given_up_at_the_end(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = Loader(weights)

    def ending(name: str) -> None:
        assert name == "torch"
        loader._closed = True  # pyright: ignore[reportPrivateUsage]  # as closing does, at this very moment

    monkeypatch.setattr(loading, "import_module", ending)
    loader.ask()
    loader.close()
    assert loader.ask() == ENDING and not threads()
    closed = Loader(weights)
    closed.close()
    assert closed.ask() == ENDING and not threads()


@pytest.mark.parametrize("fault", [ImportError, OSError])
def test_an_extra_that_does_not_work_is_told_with_how_to_see_why(
    weights: Path, monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    def broken(name: str) -> None:
        raise fault(name)

    monkeypatch.setattr(loading, "import_module", broken)
    assert Loader(weights, wait=True).ask() == UNUSABLE and not threads()


def test_ctrl_c_ends_the_waiting_at_once_and_nothing_goes_on_behind_it(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()

    def interrupted(name: str) -> None:
        signal.raise_signal(signal.SIGINT)
        held.wait(60)

    monkeypatch.setattr(loading, "import_module", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            Loader(weights, wait=True).ask()
        assert not threads()
    finally:
        held.set()


def test_a_file_that_is_no_model_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"no model")
    said = Loader(path, wait=True).ask()
    assert isinstance(said, str) and "it is no file of a model" in said


def test_other_weights_have_another_name(weights: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    other.write_bytes(weights.read_bytes() + b" ")
    names = {Loader(path).identity for path in (weights, weights, other)}
    assert len(names) == 2 and all(len(name) == 16 for name in names)
