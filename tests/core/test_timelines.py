"""What people look at, of services that were really recorded: bounded, marked, and as a trace that reads back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core import answers, slices, timelines
from teller_core.data.report_timeline import TimelineReport
from teller_core.data.table import UNKNOWN
from teller_core.errors import UnknownName
from teller_core.ingest.kineto.reader import read
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from teller_core.tell.report.page import report_page
from teller_core.tell.timeline.request import RequestRows

CAPTURES = Path(__file__).parents[1] / "data" / "captures"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Two ranks of a service on two nodes, with a delay between them, of some steps of which there are profiles."""
    with Store.open(tmp_path_factory.mktemp("drawn") / "t.db") as opened:
        import_paths([CAPTURES / "vllm_2node"], opened, together=True)
        yield opened


@pytest.fixture(scope="module")
def profiled(store: Store) -> str:
    """The target of a step of which both ranks have a profile."""
    work = store.work(store.resolve())
    seen = np.bincount(work.step[work.row >= 0])
    return f"step {int(np.argmax(seen))}"


def requests(store: Store) -> list[int]:
    return [int(str(row[0])) for row in answers.slow(store, limit=100).rows]


def drawn(store: Store) -> list[TimelineReport]:
    return [timelines.timeline(store, answers.why(store, str(number))) for number in requests(store)]


def test_every_request_is_drawn_beside_one_that_was_faster_with_no_more_marks_than_stated(store: Store) -> None:
    made = drawn(store)
    assert len(made) > 3
    for one in made:
        assert sum(len(row.text) for panel in one.panels for row in panel.rows) <= timelines.MARKS
        for panel in one.panels:
            for row in panel.rows:
                sizes = {
                    len(column) for column in (row.start_ms, row.dur_ms, row.kind, row.text, row.count, row.finding)
                }
                assert len(sizes) == 1 and min(row.start_ms) >= 0
                ends = [start + dur for start, dur in zip(row.start_ms, row.dur_ms, strict=True)]
                assert max(ends) <= panel.length_ms + 0.001
        asked = [panel for panel in one.panels if panel.side == "asked" and panel.shows == "request"]
        assert [panel.request for panel in asked] == [one.request]
        beside = [panel.request for panel in one.panels if panel.side == "beside" and panel.shows == "request"]
        assert beside == ([] if one.beside is None else [one.beside]) and one.beside != one.request
    assert any(one.beside is not None for one in made)


def test_a_step_with_profiles_is_drawn_rank_by_rank(store: Store) -> None:
    steps = [panel for one in drawn(store) for panel in one.panels if panel.shows == "step"]
    assert steps
    groups = {row.group.split(",")[0] for panel in steps for row in panel.rows}
    assert {"rank 0", "rank 1"} <= groups
    assert {"operator"} <= {row.layer for panel in steps for row in panel.rows}


def test_a_step_of_too_many_spans_is_drawn_without_them_and_that_is_said_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "SPANS", 0)
    steps = [panel for one in drawn(store) for panel in one.panels if panel.shows == "step"]
    assert steps and all("spans were too many to draw" in panel.note for panel in steps)
    assert {panel.left_out for panel in steps} == {0}


def test_that_a_request_is_not_drawn_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "request_lanes", lambda *_: RequestRows([], UNKNOWN, UNKNOWN, ""))
    for one in drawn(store):
        assert f"when request {one.request} began or ended is not known" in one.note
        assert not any(panel.shows == "request" for panel in one.panels)


def test_every_answer_is_a_page_below_a_megabyte(store: Store) -> None:
    for number in requests(store):
        answer = answers.why(store, str(number))
        beside = timelines.illustrated(store, answer)
        page = report_page(answer, beside.timeline, beside.cut, beside.why_no_cut)
        assert len(page) < 1_000_000 and f"Why request {number} was slow" in page


def test_a_slice_as_a_trace_reads_back_with_every_span_of_the_step(store: Store, profiled: str, tmp_path: Path) -> None:
    pieces, events = timelines.as_chrome(store, profiled)
    path = tmp_path / "slice.json"
    path.write_text("".join(pieces), "utf-8")
    back = read(path)
    assert len(back) == events == slices.causal_slice(store, profiled).events
    one, few = timelines.as_chrome(store, profiled, rank=store.traced(store.resolve())[0])
    assert 0 < few < events and sum(piece.count('"ph": "X"') for piece in one) == few


def test_a_span_below_a_handle_is_a_trace_too(store: Store) -> None:
    rank = store.traced(store.resolve())[0]
    _, events = timelines.as_chrome(store, f"{rank}:0")
    assert events >= 1


def test_a_span_is_on_the_clock_of_the_capture_as_its_step_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Store.ranks
    monkeypatch.setattr(
        Store, "ranks", lambda self, capture: [replace(rank, shift=5_000) for rank in known(self, capture)]
    )
    rank = store.traced(store.resolve())[0]
    assert [mine.shift for mine in slices.uncut(store, f"{rank}:0").spans] == [5_000]


def test_a_step_without_a_profile_is_no_trace_and_says_so(store: Store) -> None:
    work = store.work(store.resolve())
    without = next(step for step in work.step.tolist() if not np.any(work.row[work.step == step] >= 0))
    with pytest.raises(UnknownName, match="no profile overlaps step"):
        timelines.as_chrome(store, f"step {without}")
