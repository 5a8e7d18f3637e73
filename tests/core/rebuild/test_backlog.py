"""Device work without a launch: queued before the window, or its launch lost. By hand, and on real traces by their definition."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.trace import Lane, Layer
from teller_core.ingest.kineto.reader import read
from teller_core.pipeline import import_paths
from teller_core.rebuild.backlog import without_launch
from teller_core.rebuild.nest import nest
from teller_core.store.store import Store
from tests.core.ingest.kineto.kineto_oracle import expand, told
from tests.core.rebuild.test_nest import trace_of
from tests.core.rebuild.tree_oracle import Span

HOST, STREAM = Lane("1", "1", False), Lane("0", "7", True)
FILES = sorted((Path(__file__).parents[4] / "shared" / "traces" / "kineto").glob("**/*.json.gz"))
QUEUED, LOST = "queued_before_the_window", "device_work_without_launch"


def counted(spans: list[Span]) -> dict[str, int]:
    return without_launch(nest(trace_of(spans)))


def defined(rows: list[Span]) -> dict[str, int]:
    """The counts as the words say: work whose correlation no call has, earlier than all calls or not."""
    calls = {r.link for r in rows if r.layer == Layer.RUNTIME and not r.lane.device and r.link > 0}
    work = [r.link for r in rows if r.lane.device and r.layer in (Layer.KERNEL, Layer.COMMUNICATION)]
    alone = [link for link in work if link not in calls]
    queued = sum(0 < link < min(calls, default=0) for link in alone)
    return {name: n for name, n in ((LOST, len(alone) - queued), (QUEUED, queued)) if n}


def span(layer: Layer, link: int) -> Span:
    return Span(10, 5, HOST if layer == Layer.RUNTIME else STREAM, layer, link)


def test_work_with_ids_below_every_call_was_queued_and_the_rest_lost_its_launch() -> None:
    calls = [span(Layer.RUNTIME, 100), span(Layer.RUNTIME, 102)]
    work = [span(Layer.KERNEL, link) for link in (98, 99, 100, 101, 102, 103)]
    assert counted([*calls, *work]) == {QUEUED: 2, LOST: 2}


def test_where_no_call_was_recorded_nobody_can_tell_when_it_was_queued() -> None:
    assert counted([span(Layer.KERNEL, 3), span(Layer.COMMUNICATION, 4)]) == {LOST: 2}


def test_work_without_an_id_lost_its_launch() -> None:
    assert counted([span(Layer.RUNTIME, 7), span(Layer.KERNEL, -1)]) == {LOST: 1}


@given(
    st.lists(
        st.builds(
            span,
            st.sampled_from([Layer.RUNTIME, Layer.KERNEL, Layer.COMMUNICATION]),
            st.one_of(st.just(-1), st.integers(1, 9)),
        ),
        max_size=12,
    )
)
def test_any_work_is_counted_as_the_words_say(spans: list[Span]) -> None:
    assert counted(spans) == defined(spans)


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="no real traces beside the checkout (../shared)")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_real_traces_are_counted_as_the_standard_library_counts_them(path: Path) -> None:
    rows = [Span(row.start, row.dur, row.lane, row.layer, row.link) for row in told(expand(path)).rows]
    assert without_launch(nest(read(path))) == defined(rows)


def test_a_capture_says_what_was_queued_before_and_what_lost_its_launch(tmp_path: Path) -> None:
    case = Path(__file__).parents[2] / "data" / "kineto" / "work_queued_before_the_window_has_no_caller" / "input.json"
    with Store.open(tmp_path / "t.db") as store:
        (report,) = import_paths([case], store).captures
        assert report.ranks[0].problems == {QUEUED: 2, LOST: 1}
