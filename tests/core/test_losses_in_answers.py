"""What was lost on the way from files to a capture stands in every answer that it could change."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from teller_core import answers, slices
from teller_core.cli import main
from teller_core.data.report import CaptureReport
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from teller_core.tell.explain import unsupported

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "vllm_full"
ENGINE = 10556
DROPPED = "events without a duration, dropped (3)"
BROKEN = "files that are damaged or cut short (1)"


def damaged(folder: Path) -> Path:
    """A recorded service with a profile that lost three events, and a file that was cut."""
    shutil.copytree(CAPTURE, folder)
    begin = 1_795_961_985_000_000
    rows = [
        {
            "ph": "X",
            "name": "aten::mm",
            "cat": "cpu_op",
            "pid": ENGINE,
            "tid": 1,
            "ts": begin + 10_000 * at,
            "dur": 8000,
        }
        for at in range(900)
    ]
    rows += [
        {"ph": "X", "name": "aten::mm", "cat": "cpu_op", "pid": ENGINE, "tid": 1, "ts": begin + at} for at in range(3)
    ]
    (folder / f"torch-{ENGINE}-1.json").write_text(json.dumps({"traceEvents": rows}))
    (folder / f"torch-{ENGINE}-2.json").write_text('{"traceEvents": [{"ph": "X", "ts": 1')
    return folder


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, CaptureReport, CaptureReport]]:
    room = tmp_path_factory.mktemp("losses")
    with Store.open(room / "t.db") as store:
        (whole,) = import_paths([CAPTURE], store).captures
        (report,) = import_paths([damaged(room / "run")], store).captures
        yield store, whole, report


def test_captures_list_every_loss_by_name_and_in_words(
    stored: tuple[Store, CaptureReport, CaptureReport], capsys: pytest.CaptureFixture[str]
) -> None:
    store, whole, report = stored
    assert {"no_dur", "broken_file"} <= report.problems.keys() and not {"no_dur", "broken_file"} & whole.problems.keys()
    assert main(["captures", "--db", str(store.path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert DROPPED in out and BROKEN in out


def test_why_says_what_could_change_it_and_counts_it_in_its_coverage(
    stored: tuple[Store, CaptureReport, CaptureReport],
) -> None:
    store, whole, report = stored
    profiled = [one for at in range(report.requests) if (one := answers.why(store, str(at + 1), capture=report.id))]
    assert all(BROKEN in " ".join(one.not_seen) and one.coverage.lost["broken_file"] == 1 for one in profiled)
    seen = [one for one in profiled if one.coverage.profiled]
    assert seen and all(DROPPED in " ".join(one.not_seen) and one.coverage.lost["no_dur"] == 3 for one in seen)
    assert all("no_dur" not in one.coverage.lost for one in profiled if not one.coverage.profiled)
    assert all(unsupported(one) == [] for one in profiled)
    untold = [one.reason for one in profiled if one.verdict == "could_not_tell"]
    assert all("could not be read" in reason for reason in untold)
    again = answers.why(store, "1", capture=report.id, metric="ttft")
    assert again.coverage.lost == profiled[0].coverage.lost
    assert "broken_file" not in answers.why(store, "1", capture=whole.id).coverage.lost


def test_slices_operators_lists_and_comparisons_say_it_in_their_notes(
    stored: tuple[Store, CaptureReport, CaptureReport],
) -> None:
    store, whole, report = stored
    notes = [
        slices.causal_slice(store, "step 3", capture=report.id).note,
        slices.tokens(store, "step 3", capture=report.id).note,
        answers.explain_operator(store, "aten::mm", capture=report.id).note,
        answers.compare(store, whole.id, report.id).note,
        answers.compare(store, "1", "2", capture=report.id).note,
    ]
    assert all(DROPPED in note and BROKEN in note for note in notes)
    assert "after, lost in reading" in notes[3]
    assert BROKEN in answers.slow(store, capture=report.id).note
    assert "lost in reading" not in slices.causal_slice(store, "step 3", capture=whole.id).note
