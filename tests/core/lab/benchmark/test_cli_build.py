"""``teller lab build`` on the command line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from teller_core.cli import main
from teller_core.lab.benchmark import build as building
from teller_core.lab.benchmark.build import Built
from teller_core.lab.benchmark.lives import LifePlan, table


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[LifePlan]:
    """The lives that were asked for; the last one cannot be had."""
    seen: list[LifePlan] = []

    def build(plans: Sequence[LifePlan], folder: Path, into: Path, progress: Any, *, vllm: Path | None) -> list[Built]:
        seen.extend(plans)
        progress("life 1: recording")
        failed = Built(plans[-1].name, plans[-1].side, 0, 0, [], new=False, failed="It did not come up.")
        return [
            Built(plan.name, plan.side, 7, 11, [("gc_pause", "clear", "small")], new=True) for plan in plans[:-1]
        ] + [failed]

    monkeypatch.setattr(building, "build", build)
    return seen


def test_lives_are_asked_for_by_their_places(
    asked: list[LifePlan], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lab", "build", str(tmp_path / "recordings"), "--into", str(tmp_path / "packed")]
    assert main([*words, "--lives", "3-5", "--json"]) == 2
    assert [plan.name for plan in asked] == [plan.name for plan in table()[2:5]]
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert [line["failed"] for line in report["lives"]] == [None, None, "It did not come up."]
    assert report["lives"][0]["rejected"] == [{"fault": "gc_pause", "severity": "clear", "why": "small"}]
    assert err.endswith("life 1: recording\n")
    asked.clear()
    main([*words, "--lives", "2"])
    assert [plan.name for plan in asked] == [table()[1].name]
    asked.clear()
    main(words)
    assert len(asked) == len(table())
    done = len(table()) - 1
    assert f"{done} of {done + 1} lives are there, with {11 * done} episodes" in capsys.readouterr().out


@pytest.mark.parametrize("lives", ["0", "5-3", "1-900", "x", "3-"])
def test_places_that_are_not_there_are_refused(
    asked: list[LifePlan], tmp_path: Path, capsys: pytest.CaptureFixture[str], lives: str
) -> None:
    assert main(["lab", "build", str(tmp_path), "--lives", lives]) == 2
    assert asked == []
    assert "--lives" in capsys.readouterr().err
