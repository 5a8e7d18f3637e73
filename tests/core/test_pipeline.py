"""From files to the store."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from teller_core import pipeline
from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.learned import Learned
from teller_core.data.report import WhyReport
from teller_core.pipeline import STAGES, import_paths
from teller_core.store.store import Store
from tests.core.judge.serving import Ask, serve

EVENTS = [
    {"ph": "X", "name": "aten::mm", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 10 * at, "dur": 5} for at in range(9)
]


def trace(folder: Path) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": EVENTS}))
    return path


def test_content_that_another_process_stores_meanwhile_is_already_known(tmp_path: Path) -> None:
    path = trace(tmp_path)

    def overtaken(capture: Capture, assessment: Assessment) -> Iterable[WhyReport]:
        with Store.open(tmp_path / "t.db") as other:
            (report,) = import_paths([path], other).captures
        assert not report.already_known
        return STAGES.diagnose(capture, assessment)

    with Store.open(tmp_path / "t.db") as store:
        (report,) = import_paths([path], store, stages=replace(STAGES, diagnose=overtaken)).captures
        assert report.already_known
        assert [known.id for known in store.captures()] == [report.id]


def test_progress_is_told_from_the_first_byte_on(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    path = trace(tmp_path)
    with Store.open(tmp_path / "t.db") as store:
        import_paths([path], store, progress=lambda stage, done, total: told.append((stage, done, total)))
    size = path.stat().st_size
    assert told[:2] == [("check trace.json", size, size), ("trace.json", size, size)]
    assert [stage for stage, _, _ in told[2:] if stage != "trace.json"] == ["rebuild", "judge", "store"]


def test_a_swapped_assessment_is_made_whether_or_not_its_service_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def mine(capture: Capture, learned: Learned | None) -> Assessment:
        asked.append(learned)
        return STAGES.assess(capture, None)

    known = object()
    for number, found in enumerate((None, known)):
        monkeypatch.setattr(pipeline, "usual_for", lambda *_, found=found: found)
        with Store.open(tmp_path / f"{number}.db") as store:
            import_paths([trace(tmp_path)], store, stages=replace(STAGES, assess=mine))
    assert asked == [None, known]


def test_progress_of_judging_counts_requests(tmp_path: Path) -> None:
    capture, numbers = serve([Ask(40.0 * i, output=3) for i in range(5)])
    told: list[tuple[str, int, int]] = []
    mine = replace(STAGES, rebuild=lambda *given: replace(capture, id=given[2]), assess=lambda *_: numbers)
    with Store.open(tmp_path / "t.db") as store:
        import_paths(
            [trace(tmp_path)], store, stages=mine, progress=lambda stage, done, total: told.append((stage, done, total))
        )
    assert [(done, total) for stage, done, total in told if stage == "judge"] == [
        (0, 0),
        *((i, 5) for i in range(1, 6)),
    ]
