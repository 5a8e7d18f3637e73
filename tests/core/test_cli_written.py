"""Answers that are files: a page, and a trace."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from teller_core import cli
from teller_core.cli import Verbs
from teller_core.data.report_timeline import WrittenReport
from teller_core.errors import UnknownName

Make = Callable[..., Verbs]


@pytest.fixture(autouse=True)
def _a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TELLER_DB", str(tmp_path / "t.db"))


def test_a_report_is_a_page_and_says_where_it_is(
    verbs: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "42"], verbs) == 0
    out, err = capsys.readouterr()
    page = (tmp_path / "report-42.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>") and "Why request 42 was slow" in page
    assert (
        out
        == f"report-42.html: why request 42 was slow, {len(page.encode()) / 1000:,.0f} kB. Open it with a browser.\n"
    )
    assert err == "" and [path.name for path in tmp_path.iterdir()] == ["report-42.html"]


def test_a_report_goes_where_it_is_asked_to_and_its_data_is_json(
    verbs: Make, tmp_path: Path, samples: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.html").write_text("before")
    assert cli.main(["report", "42", "-o", "a.html", "--json"], verbs) == 0
    said = WrittenReport.model_validate_json(capsys.readouterr().out)
    assert said.file == "a.html" and said.bytes == (tmp_path / "a.html").stat().st_size
    assert said.timeline == samples.timeline()


def test_arguments_reach_the_answer(verbs: Make, samples: Any) -> None:
    asked: list[object] = []

    def why(_: object, request: str, **named: object) -> Any:
        asked.append((request, named))
        return samples.verdict()

    words = ["report", "abc", "--metric", "ttft", "--slo-ms", "200", "--capture", "3f", "--against", "monday"]
    assert cli.main(words, lambda: verbs(why=why)) == 0
    assert asked == [("abc", {"metric": "ttft", "slo_ms": 200.0, "capture": "3f", "against": "monday"})]


def test_a_folder_that_is_not_there_is_refused_and_nothing_is_left(
    verbs: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "42", "-o", "none/a.html"], verbs) == 2
    assert capsys.readouterr().err.startswith("teller: 'a.html': it cannot be written (No such file or directory).")
    (tmp_path / "folder").mkdir()
    assert cli.main(["report", "42", "-o", "folder"], verbs) == 2
    capsys.readouterr()
    assert cli.main(["report", "42", "-o", "."], verbs) == 2
    assert capsys.readouterr().err.startswith("teller: '.': it cannot be written (Is a directory).")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_was_there_stays_where_writing_fails(verbs: Make, tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "half"
        raise UnknownName("the span", "it went away", "Ask again")

    (tmp_path / "t.json").write_text("before")
    made = verbs(as_chrome=lambda store, target, **_: (pieces(), 1))
    assert cli.main(["slice", "step", "17", "--chrome", "t.json"], lambda: made) == 2
    assert (tmp_path / "t.json").read_text() == "before" and len(list(tmp_path.iterdir())) == 1


def test_a_slice_is_written_as_a_trace(verbs: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[object] = []

    def as_chrome(_: object, target: str, **named: object) -> tuple[Iterator[str], int]:
        asked.append((target, named))
        return iter(['{"traceEvents": ', "[]}"]), 1234

    words = ["slice", "step", "17", "--rank", "1", "--capture", "3f", "--chrome", "t.json"]
    assert cli.main(words, lambda: verbs(as_chrome=as_chrome)) == 0
    assert asked == [("step 17", {"rank": 1, "capture": "3f"})]
    assert json.loads((tmp_path / "t.json").read_text()) == {"traceEvents": []}
    assert "1,234 spans of step 17" in capsys.readouterr().out
