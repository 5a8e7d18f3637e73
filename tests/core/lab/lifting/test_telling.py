"""How well savings are predicted, to a person and as JSON."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from teller_core.cli import main
from teller_core.lab.benchmark import pack
from teller_core.lab.lifting import predict
from teller_core.lab.lifting.pairs import Pair, Sums
from teller_core.lab.lifting.predict import ELSEWHERE

MS = 1e6


def pair(what: Any, ours: float, silent: str = "") -> Pair:
    sums = Sums(24, 900 * MS, 300 * MS, 9 * MS, ours * MS, 360 * MS, 240 * MS)
    return Pair("0a1b", "vllm", "gc_pause", "host.gc_pause", "clear", "worker", what, sums, 9 * MS, silent)


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lives").mkdir()
    sides = [SimpleNamespace(about={"side": side}) for side in ("train", "train", "test")]
    monkeypatch.setattr(pack, "lives", lambda folder: sides)

    def predicted(lives: list[Any], progress: Any, at_once: int) -> list[Pair]:
        assert {life.about["side"] for life in lives} == {"train"}
        found = [pair("requests", ours) for ours in (306.0, 294.0, 330.0)]
        return [*found, pair("requests", 0.0, ELSEWHERE), pair("steps", 450.0)]

    monkeypatch.setattr(predict, "predicted", predicted)
    return tmp_path


def test_a_folder_of_packed_lives_is_answered_by_how_well_savings_are_predicted(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "lifted", str(packed), "--side", "train", "--to", str(packed / "all.json")]) == 0
    out = capsys.readouterr().out
    assert "requests: median error of what the end of a fault was predicted to save" in out
    line = next(line for line in out.splitlines() if line.startswith("host.gc_pause"))
    assert line.split()[1:] == ["3", "1", "2.0%", "20.0%", "20.0%", "3.0%"]
    assert "it was checked on 1 faults only" in out
    assert "2 lives of the train side." in out
    report = json.loads((packed / "all.json").read_text())
    assert [one["silent"] for one in report["pairs"]] == [None, None, None, ELSEWHERE, None]


def test_the_same_as_json(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "lifted", str(packed), "--side", "train", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    cause = next(one for one in report["causes"] if (one["cause"], one["what"]) == ("host.gc_pause", "requests"))
    assert (cause["pairs"], cause["silent"], cause["error"], cause["not_claimed"]) == (3, 1, 0.02, None)
    assert [one["what"] for one in report["causes"] if one["cause"] == "all"] == [
        "requests",
        "steps",
        "profiled",
        "told",
    ]


def test_a_side_without_lives_is_refused(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack.lives(packed).pop()
    assert main(["lab", "lifted", str(packed)]) == 2
    assert "no life of the test side is packed" in capsys.readouterr().err
