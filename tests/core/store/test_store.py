"""What is kept is found again: by prefix, by page, by name, by window."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.steps import Requests, Steps
from teller_core.data.table import UNKNOWN, take
from teller_core.errors import InputError, StoreError, UnknownName
from teller_core.store.chunks import chunks_of
from teller_core.store.store import Store
from tests.core.store.made import answer_of, assessment_of, capture_of, differences, filled, report_of, tree_of


@pytest.fixture
def store(tmp_path: Path):
    with Store.open(tmp_path / "teller.db") as opened:
        yield opened


def keep(store: Store, identity: str, **values: list[int]) -> None:
    """Save a plain capture, with these values of its three requests by metric."""
    capture = capture_of(identity)
    store.save(capture, assessment_of(values), [answer_of(identity, 2)], report_of(capture))


def test_the_same_content_twice_is_one_capture(store: Store):
    capture = capture_of("0a", tree_of(50))
    assert store.save(capture, assessment_of({}), [], report_of(capture)) is True
    size = store.path.stat().st_size
    assert store.knows("0a")
    assert store.save(capture, assessment_of({}), [], report_of(capture)) is False
    assert len(store.captures()) == 1
    assert store.path.stat().st_size == size


def test_captures_come_newest_first_and_the_newest_is_meant_without_a_prefix(store: Store):
    for identity in ("0a11", "0b22", "0a33"):
        keep(store, identity)
    assert [report.id for report in store.captures()] == ["0a33", "0b22", "0a11"]
    assert store.resolve() == "0a33"


def test_a_capture_is_called_by_any_prefix_that_no_other_has(store: Store):
    for identity in ("0a11", "0b22", "0a33"):
        keep(store, identity)
    assert store.resolve("0b") == store.resolve("0B22") == "0b22"
    with pytest.raises(UnknownName, match="2 ids begin like that"):
        store.resolve("0a")
    for wrong in ("ff", "0b222", "", "%", "_", "\N{LATIN SMALL LETTER E WITH ACUTE}", "\ud800"):
        with pytest.raises(UnknownName, match="none of the 3 captures here begins like that"):
            store.resolve(wrong)


def test_an_empty_store_says_to_import(store: Store):
    assert store.captures() == []
    for prefix in (None, "0a"):
        with pytest.raises(UnknownName, match="nothing has been imported yet"):
            store.resolve(prefix)


def test_an_id_that_is_not_there_is_refused_by_every_question(store: Store):
    for ask in (store.capture, store.assessment, store.report, store.steps, store.slow_rows):
        with pytest.raises(UnknownName, match="no capture here has this id"):
            ask("ffff")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    with Store.open(tmp_path_factory.mktemp("store") / "teller.db") as opened:
        yield opened


_numbers = count()


@settings(max_examples=50)
@given(st.lists(st.just(UNKNOWN) | st.integers(0, 4), max_size=9), st.integers(1, 4))
def test_pages_of_the_slow_list_are_the_sorted_list_whatever_their_size(shared: Store, values: list[int], limit: int):
    capture = capture_of(f"{next(_numbers):x}", requests=len(values))
    shared.save(capture, assessment_of({"e2e": values}), [], report_of(capture))
    found, cursor = list[tuple[int, int | None]](), None
    while True:
        page = shared.slow_rows(capture.id, "e2e", limit, cursor)
        assert page.total == len(values)
        assert len(page.rows) <= limit
        found += [(row.request, row.value) for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            break
    known = sorted((i + 1 for i, value in enumerate(values) if value != UNKNOWN), key=lambda i: (-values[i - 1], i))
    assert found == [(i, values[i - 1]) for i in known] + [(i + 1, None) for i, v in enumerate(values) if v == UNKNOWN]


def test_a_row_of_the_slow_list_says_all_that_is_known_of_a_request(store: Store):
    keep(store, "0a", e2e=[5_000, 9_000, UNKNOWN], ttft=[10, 20, 30], tpot=[1, 2, UNKNOWN])
    first = store.slow_rows("0a").rows[0]
    assert first._asdict() == {
        "request": 2, "engine_id": "cmpl-1", "value": 9_000, "e2e": 9_000, "ttft": 20, "tpot": 2, "itl_max": None,
        "queue": 1_000, "over_work": 9.0, "over_load": None, "verdict": "cause", "cause": "host.gc_pause",
        "began": 0,
    }  # fmt: skip
    by_ttft = store.slow_rows("0a", "ttft").rows
    assert [(row.request, row.value, row.e2e, row.verdict) for row in by_ttft] == [
        (3, 30, None, None),
        (2, 20, 9_000, None),
        (1, 10, 5_000, None),
    ]
    assert store.slow_rows("0a", "itl_max").rows == []


def test_the_values_of_a_metric_come_in_the_order_of_the_requests(store: Store):
    keep(store, "0a", e2e=[5_000, 9_000, UNKNOWN], ttft=[10])
    assert store.values("0a").tolist() == [5_000, 9_000, UNKNOWN]
    assert store.values("0a", "ttft").tolist() == [10, UNKNOWN, UNKNOWN]


def test_the_queue_is_what_the_table_of_requests_says_it_is(store: Store):
    plain = capture_of("0a", requests=6)
    second = 1_000_000_000
    requests = replace(
        plain.requests,
        queue_ns=np.array([77, UNKNOWN, UNKNOWN, 77, 77, 77]),
        queued=np.array([500, 500, UNKNOWN, second, 500, 2_000]),
        scheduled=np.array([1_500, 1_500, 1_500, second + 5, second, 1_500]),
    )
    store.save(replace(plain, requests=requests), assessment_of({"e2e": [6, 5, 4, 3, 2, 1]}), [], report_of(plain))
    assert [row.queue for row in store.slow_rows("0a").rows] == [1_000, 1_000, None, 77, 77, 77]
    assert requests.queue().tolist() == [1_000, 1_000, UNKNOWN, 77, 77, 77]


@pytest.mark.parametrize(
    "cursor",
    [
        "e2e.5." + "9" * 30,
        f"e2e.{'9' * 30}.1",
        f"e2e.-{'9' * 30}.1",
        "e2e.5." + "9" * 5000,
        "",
        "x",
        "e2e.5",
        "ttft.5.1",
        "e2e.five.1",
        "e2e.5.-1",
        "e2e.5.1.1",
        "e2e.5.\u00b2",
        "e2e.9e9.1",
    ],
)
def test_a_cursor_from_elsewhere_is_refused(store: Store, cursor: str):
    keep(store, "0a", e2e=[1, 2, 3])
    with pytest.raises(InputError, match="does not come from this list"):
        store.slow_rows("0a", "e2e", 2, cursor)


def test_a_metric_that_is_not_kept_is_refused(store: Store):
    keep(store, "0a", e2e=[1, 2, 3])
    with pytest.raises(InputError, match="Use one of e2e, ttft, tpot, itl_max"):
        store.slow_rows("0a", "slo")


def test_operators_are_listed_by_their_time_and_found_by_their_names(store: Store):
    capture = capture_of("0a")
    names = ["aten::mm", "aten::addmm", "aten::mm", "100%_sure", "odd \ud800"]
    store.save(capture, assessment_of({}, names), [], report_of(capture))
    listed = store.operator_names("0a")
    assert sorted(listed.names) == sorted(set(names))
    assert sum(listed.totals.values()) == sum(range(5))
    assert listed.names[0] == "odd \ud800"
    found = store.operator_rows("0a", ["aten::mm", "odd \ud800", "nothing"])
    assert (found.name, found.total.tolist()) == (["odd \ud800", "aten::mm", "aten::mm"], [4, 2, 0])
    assert store.operator_rows("0a", ["mm"]).name == []


def test_a_request_is_called_by_its_number_or_any_of_its_ids(store: Store):
    plain = capture_of("0a")
    ids = replace(plain.requests, engine_id=["3", "cmpl-9", ""], trace_id=["", "ff", "ff"])
    capture = replace(plain, requests=ids)
    store.save(capture, assessment_of({}), [], report_of(capture))
    called = {"1": 1, "3": 3, "cmpl-9": 2, "client-2": 3, "ff": 2, " 3": 3, "cmpl-9 \n": 2}
    assert {name: store.request_number("0a", name) for name in called} == called
    for wrong in ("0", "4", "", "nobody", "\ud800", "99999999999999999999", "\u00b2"):
        with pytest.raises(UnknownName, match="has requests 1 to 3, and none is called that"):
            store.request_number("0a", wrong)


def test_windows_of_steps_hold_what_the_whole_tables_hold_there(store: Store):
    capture = capture_of("0a", requests=3, steps=6)
    store.save(capture, assessment_of({}), [], report_of(capture))
    steps = store.steps("0a", 2, 5)
    assert steps.scheduled.tolist() == capture.steps.scheduled[2:5].tolist()
    assert store.work("0a", 2, 5).step.tolist() == [2, 3, 4]
    assert store.requests("0a", 1).engine_id == ["cmpl-1", "cmpl-2"]
    part = store.participation("0a", 2, 5)
    assert part.step.tolist() == [2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert part.request.tolist() == [0, 1, 2] * 3
    assert store.participation("0a", 9, 12).step.tolist() == []
    assert differences(store.participation("0a"), capture.participation) == []


@pytest.mark.parametrize(
    "window", [(0, 1), (99, 101), (81, 83), (163, 165), (164, 400), (0, 400), (399, 999), (500, 600), (7, 7)]
)
def test_a_window_of_steps_may_begin_and_end_in_any_chunk(store: Store, window: tuple[int, int]):
    capture = capture_of("0a", requests=100, steps=400)
    store.save(capture, assessment_of({}), [], report_of(capture))
    inside = (capture.participation.step >= window[0]) & (capture.participation.step < window[1])
    assert differences(store.participation("0a", *window), take(capture.participation, inside)) == []


def test_unknown_is_null_to_whoever_looks_with_other_tools(store: Store):
    plain = capture_of("0a")
    steps = filled(Steps, 1, scheduled=[UNKNOWN], kv_usage=[float("nan")], number=[-1])
    capture = replace(plain, steps=steps, requests=filled(Requests, 1, number=[1], queued=[UNKNOWN]))
    store.save(capture, assessment_of({}), [], report_of(capture))
    row = store._con.execute("SELECT scheduled, kv_usage, number FROM steps").fetchone()  # pyright: ignore[reportPrivateUsage]
    assert row == (None, None, -1)


def test_spans_that_are_not_there_are_refused(store: Store):
    capture = capture_of("0a", tree_of(50))
    store.save(capture, assessment_of({}), [], report_of(capture))
    for low, high in ((-1, 3), (5, 4), (0, 51), (60, None)):
        with pytest.raises(UnknownName, match="rows 0 to 49"):
            store.tree_rows("0a", 0, low, high)
    with pytest.raises(UnknownName, match="no trace of it"):
        store.tree_rows("0a", 1)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE chunks SET data = x'00' WHERE field = 'start'",
        "UPDATE chunks SET data = substr(data, 1, 40) WHERE field = 'dur'",
        "DELETE FROM chunks WHERE field = 'link'",
        "DELETE FROM chunks WHERE field = 'names'",
    ],
)
def test_a_damaged_part_is_refused_and_the_rest_stays_readable(store: Store, damage: str):
    capture = capture_of("0a", tree_of(50))
    store.save(capture, assessment_of({}), [answer_of("0a", 1)], report_of(capture))
    store._con.execute(damage)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(StoreError, match="damaged"):
        store.tree_rows("0a", 0, 3, 20)
    assert store.answer("0a", 1) == answer_of("0a", 1)
    store._con.execute("UPDATE answers SET report = x'28b52ffd'")  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(StoreError, match="damaged"):
        store.answer("0a", 1)


@pytest.mark.parametrize("column", ["layer", "lane"])
def test_spans_of_a_layer_or_a_lane_that_is_none_are_refused(store: Store, column: str):
    tree = tree_of(50)
    capture = capture_of("0a", tree)
    store.save(capture, assessment_of({}), [], report_of(capture))
    odd = next(chunks_of(np.full(50, 99, dtype=getattr(tree.trace, column).dtype), delta=False))
    sql = "UPDATE chunks SET data = ? WHERE field = ? AND columns = (SELECT key FROM column_sets WHERE kind = 'spans')"
    store._con.execute(sql, (odd, column))  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(StoreError, match="damaged"):
        store.tree_rows("0a", 0, 3, 20)
