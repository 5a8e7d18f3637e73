"""What people are told about the formats."""

import pytest

from teller_core.cli import main
from teller_core.data.report import FormatReport, FormatsReport
from teller_core.ingest.catalog import NOTES, formats
from teller_core.ingest.formats import FORMATS, UNTRIED, reader_of, sniffed

TOLD = formats().formats


def test_every_format_is_told_once_in_the_order_in_which_a_file_is_tried() -> None:
    assert [known.name for known in TOLD] == [name for name, _, _ in FORMATS]
    assert len({known.name for known in TOLD}) == len(TOLD)
    assert {known.name for known in TOLD if not known.tried} == UNTRIED


@pytest.mark.parametrize("known", TOLD, ids=lambda known: known.name)
def test_a_format_says_what_it_is_what_its_files_are_called_and_what_they_give(known: FormatReport) -> None:
    assert known.what.endswith(".") and len(known.what) > 20 and "``" not in known.what and "\n" not in known.what
    assert known.name in NOTES, "it needs a line in catalog.NOTES"
    assert known.files
    assert known.tier is None or 0 <= known.tier <= 4


def test_no_note_is_about_a_format_that_is_not_there() -> None:
    assert set(NOTES) == {name for name, _, _ in FORMATS}


def test_the_reader_of_a_format_is_found_by_its_name() -> None:
    assert [reader_of(name) for name, _, _ in FORMATS] == [read for _, _, read in FORMATS]
    assert sniffed(b"nothing that anybody knows\n") == ""


def test_the_command_line_lists_them_without_a_store(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TELLER_DB", "/nowhere/at/all.db")
    assert main(["formats"]) == 0
    out, _ = capsys.readouterr()
    assert all(known.name in out for known in TOLD) and max(map(len, out.splitlines())) <= 80
    assert main(["formats", "--json"]) == 0
    assert FormatsReport.model_validate_json(capsys.readouterr().out) == formats()
