"""Real files as people would give them: every folder of the corpus imports, and every file is accounted for as committed.

``python -m tests.core.ingest.test_corpus_folders`` writes the committed numbers anew. The readers' own tests compare them
with counts that were made without the readers.
"""

import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

from teller_core.data.losses import LOSSES
from teller_core.data.report import CaptureReport
from teller_core.pipeline import import_paths
from teller_core.store.store import Store

TRACES = Path(__file__).parents[4] / "shared" / "traces"
EXPECTED = Path(__file__).parents[2] / "data" / "corpus_expect.toml"
FOLDERS = sorted({path.parent for path in TRACES.rglob("*") if path.is_file() and path.parent != TRACES})
FOREIGN = {".sql": "the schema of a database, for people", ".tsv": "a list of the files, for people"}
"""Endings of files that are no traces and lie among them, and why they are there."""
ANSWERS = {"fault_injection.log", "reference_missing_ranks.txt"}

pytestmark = pytest.mark.skipif(not FOLDERS, reason="no real traces beside the checkout (../shared)")


def is_foreign(name: str) -> bool:
    return Path(name).suffix in FOREIGN or Path(name).name in ANSWERS


def given(folder: Path) -> list[Path]:
    """What somebody would name to import ``folder`` alone: the files in it, where there are folders below it."""
    inner = any(path.is_dir() for path in folder.iterdir())
    return [folder / "*.*"] if inner else [folder]


def name_of(folder: Path) -> str:
    return str(folder.relative_to(TRACES))


def imported(folder: Path) -> list[CaptureReport]:
    with tempfile.TemporaryDirectory() as room, Store.open(Path(room) / "t.db") as store:
        return import_paths(given(folder), store).captures


def counts(report: CaptureReport) -> dict[str, dict[str, Any]]:
    """What is committed of a capture: a table a file."""
    return {
        file.name: {
            "format": file.format,
            "in_file": file.events_in_file,
            "kept": file.events_kept,
            "other": file.events_other,
            "problems": file.problems,
        }
        for file in report.files
        if not is_foreign(file.name)
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder.name != "schemas"], ids=name_of)
def test_a_folder_of_real_files_imports_with_every_event_accounted_for(folder: Path) -> None:
    (report,) = imported(folder)
    unread = {file.name: dict(file.problems) for file in report.files if not file.format}
    assert {name: why for name, why in unread.items() if not is_foreign(name)} == {}
    assert all(why == {"answer_file": 1} for name, why in unread.items() if Path(name).name in ANSWERS)
    for file in report.files:
        lost = sum(file.problems.values()) if file.format else 0
        assert file.events_in_file == file.events_kept + sum(file.events_other.values()) + lost, file.name
        assert file.events_kept > 0 or not file.events_in_file, file.name
    assert set(report.problems) <= set(LOSSES)
    assert counts(report) == tomllib.loads(EXPECTED.read_text()).get(name_of(folder))


def test_every_file_of_the_corpus_is_in_the_committed_numbers() -> None:
    committed = tomllib.loads(EXPECTED.read_text())
    told = {f"{folder}/{name}" for folder, files in committed.items() for name in files}
    there = {str(path.relative_to(TRACES)) for path in TRACES.rglob("*") if path.is_file() and path.parent != TRACES}
    assert {name for name in there if not is_foreign(name)} == told


def _table(counted: dict[str, int]) -> str:
    return "{ " + ", ".join(f'"{key}" = {counted[key]}' for key in sorted(counted)) + " }" if counted else "{}"


def main() -> None:
    """Write what importing every folder of the corpus counts."""
    lines = ["# Made by importing: python -m tests.core.ingest.test_corpus_folders"]
    for folder in (folder for folder in FOLDERS if folder.name != "schemas"):
        for report in imported(folder):
            lines.append(f'\n["{name_of(folder)}"]')
            for name, said in sorted(counts(report).items()):
                cells = [
                    f"{key} = {_table(value) if isinstance(value, dict) else repr(value)}"
                    for key, value in said.items()
                ]
                lines.append(f'"{name}" = {{ {", ".join(cells)} }}')
    EXPECTED.write_text("\n".join(lines).replace("'", '"') + "\n")
    sys.stderr.write(f"{len(FOLDERS)} folders\n")


if __name__ == "__main__":
    main()
