"""``teller model``, from its words to its exit code."""

from pathlib import Path

import numpy as np
import pytest

from teller_core.calls.model import READ
from teller_core.cli import main
from teller_core.data.said import unsupported as unsupported_in
from teller_core.data.sheets import Kind
from teller_core.model.judging import SHIPPED, load, spoken
from teller_core.model.options import PARTS
from teller_core.model.training import CARD, WEIGHTS
from tests.core.model.test_lives import folder_of, taught
from tests.core.model.test_training import SMALL
from tests.core.model.words.making import finding, report

pytest.importorskip("torch")
pytest.importorskip("transformers")
from teller_core.model.net import network


def test_the_call_knows_what_a_network_reads() -> None:
    assert READ == PARTS


def test_sheets_go_in_and_a_model_with_its_card_comes_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = network.small
    monkeypatch.setattr(network, "small", lambda shape, symbols, words: whole(SMALL, symbols, words))
    sheets, made = tmp_path / "sheets", tmp_path / "made"
    sheets.mkdir()
    folder_of(sheets, *(taught(20, seed) for seed in range(3)))
    call = ["model", "train", "--sheets", str(sheets), "--to", str(made), "--updates", "2"]
    assert main(call) == 0
    told = capsys.readouterr()
    assert "# The root-cause model" in told.out and "update 2 of 2" in told.err
    assert (made / WEIGHTS).stat().st_size < 8_000_000 and (made / CARD).read_text("utf-8") == told.out
    assert main(["model", "card", str(made / WEIGHTS)]) == 0
    assert capsys.readouterr().out == told.out
    _speaks(made / WEIGHTS)
    assert main([*call, "--seed", "1"]) == 2
    assert "it holds a model of other data or options" in capsys.readouterr().err


def _speaks(path: Path) -> None:
    """A model that has learned next to nothing says what is true all the same."""
    sheets = taught(20, 5).sheets
    row = int(np.flatnonzero(sheets.kind == Kind.REQUEST)[0])
    answer = report(finding())
    said = spoken(load(path), sheets, row, answer)
    assert not said.dropped and "812.5 ms" in said.text and not unsupported_in(said.text, answer)


@pytest.mark.skipif(SHIPPED.is_file(), reason="a model ships")
def test_without_a_model_its_card_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "card"]) == 2
    assert "there is no such file. Train one: teller model train" in capsys.readouterr().err


def test_what_it_says_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "card", "--json"]) == 2
    assert "Leave --json away" in capsys.readouterr().err
