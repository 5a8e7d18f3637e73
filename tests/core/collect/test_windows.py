"""When a window of the profiler is asked for: at a moment, on a signal, for a slow request; and never too often."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.collect.windows import tail
from teller_core.collect.windows.control import REASONS, Window, ask, asked_in, close
from teller_core.collect.windows.slow import ENOUGH, REMEMBERED, Usual, Watched
from teller_core.collect.windows.tail import Tail
from teller_core.collect.windows.triggers import Plan, Watch, plan_of
from teller_core.errors import InputError

S = 1_000_000_000
MS = 1_000_000


def _write(path: Path, events: Sequence[tuple[str, str, int, int | None]]) -> None:
    """Append (event, request, Unix ns, tokens) as the recorder writes them."""
    with path.open("a") as file:
        for name, request, when, tokens in events:
            row = {"ph": "I", "t": when, "tid": 1, "name": f"request.{name}", "rid": request}
            file.write(json.dumps(row if tokens is None else {**row, "tokens": tokens}) + "\n")


def _usual(cap: Path, first_ms: int = 50, a_token_ms: int = 5, count: int = ENOUGH + 10) -> int:
    """Write ``count`` requests that all took the same, and return when the last ended."""
    for at in range(count):
        begin, tokens = at * S, 11
        first = begin + first_ms * MS
        end = first + (tokens - 1) * a_token_ms * MS
        facts = [("received", None, begin), ("first_token", None, first), ("finished", tokens, end)]
        _write(cap / "host-1.jsonl", [(name, f"r{at}", when, known) for name, known, when in facts])
    return count * S


def test_what_is_asked_for_is_written_whole_and_can_be_taken_back(tmp_path: Path) -> None:
    ask(tmp_path, Window(2.5, 7, 900, shapes=True), "mcp")
    assert (tmp_path / "PROFILE").read_text() == "2.5 steps=7 events=900 reason=mcp shapes"
    ask(tmp_path, Window(120, None, None))
    assert (tmp_path / "PROFILE").read_text() == "120 reason=call"
    ask(tmp_path, Window(10, 4, None, at=17))
    assert (tmp_path / "PROFILE").read_text() == "10 steps=4 at=17 reason=call"
    assert sorted(os.listdir(tmp_path)) == ["PROFILE"]
    close(tmp_path)
    close(tmp_path)
    assert asked_in(tmp_path) is None


@given(
    st.builds(
        Window,
        st.floats(1, 600).map(lambda seconds: float(f"{seconds:g}")),
        st.none() | st.integers(1, 100_000),
        st.none() | st.integers(1, 2_000_000),
        st.booleans(),
        st.booleans(),
        st.none() | st.integers(1, 10**18),
    ),
    st.sampled_from(REASONS),
)
def test_whoever_looks_reads_the_bounds_that_were_asked_for(
    tmp_path_factory: pytest.TempPathFactory, how: Window, reason: str
) -> None:
    cap = tmp_path_factory.mktemp("cap")
    ask(cap, how, reason)
    there = asked_in(cap)
    assert there is not None
    assert (there.reason, there.window, there.when) == (reason, how, (cap / "PROFILE").stat().st_mtime_ns)
    assert there.record().get("at_ns") == how.at


@given(st.binary(max_size=60) | st.text("0123456789=. \nstepvna").map(str.encode))
def test_whatever_the_control_file_holds_is_read_as_some_window(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    cap = tmp_path_factory.mktemp("cap")
    (cap / "PROFILE").write_bytes(text)
    there = asked_in(cap)
    assert there is not None
    assert json.loads(json.dumps(there.record(), allow_nan=False)) == there.record()


BAD = [Window(0), Window(1e9), Window(steps=0), Window(steps=10**9), Window(events=-1)]


@pytest.mark.parametrize("how", [*BAD, Window(at=-1), Window(at=time.time_ns() + 10**12)])
def test_bounds_out_of_range_are_refused(tmp_path: Path, how: Window) -> None:
    with pytest.raises(InputError, match=r"between|ahead"):
        ask(tmp_path, how)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        ask(tmp_path / "none", Window())


@pytest.mark.parametrize(
    ("texts", "plan"),
    [
        ((), Plan()),
        (("start",), Plan(after_requests=(1,))),
        (("30s", "1.5 s"), Plan(at_seconds=(1.5, 30.0))),
        (("100 requests", "1 request", "slow"), Plan(after_requests=(1, 100), slow=True)),
    ],
)
def test_a_plan_is_read_from_words(texts: tuple[str, ...], plan: Plan) -> None:
    assert plan_of(texts) == plan


@pytest.mark.parametrize("text", ["", "soon", "0 requests", "1.5 requests", "-3s", "30", "99999999s", "s"])
def test_words_that_name_no_moment_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--window"):
        plan_of([text])


def test_windows_open_at_their_times_once(tmp_path: Path) -> None:
    watch = Watch(tmp_path, Plan(at_seconds=(2.0, 30.0)), start=0)
    assert watch.poll(1 * S) == []
    (asked,) = watch.poll(2 * S)
    assert (asked.when, asked.reason, asked.request) == (2 * S, "time", "")
    assert watch.poll(3 * S) == []
    assert [one.reason for one in watch.poll(31 * S)] == ["time"]


def test_a_window_opens_after_so_many_requests(tmp_path: Path) -> None:
    watch = Watch(tmp_path, Plan(after_requests=(3,)), start=0)
    for at in range(3):
        assert watch.poll(at) == []
        _write(tmp_path / f"host-{at}.jsonl", [("received", f"r{at}", at, None)])
    assert [one.reason for one in watch.poll(4)] == ["requests"]
    assert watch.poll(60 * S) == []


def test_the_moments_that_did_not_come_are_named_as_they_were_asked_for(tmp_path: Path) -> None:
    watch = Watch(tmp_path, plan_of(["start", "1.5s", "90 s", "500 requests", "slow"]), start=7 * S)
    _write(tmp_path / "host-1.jsonl", [("received", "r", 8 * S, None)])
    assert [one.reason for at in (8, 20) for one in watch.poll(at * S)] == ["start", "time"]
    assert watch.left() == ["90s", "500 requests", "slow"]


def test_a_signal_opens_a_window_but_not_beside_another(tmp_path: Path) -> None:
    watch = Watch(tmp_path, Plan(window=Window(seconds=5)), start=0)
    watch.signal()
    assert [one.reason for one in watch.poll(S)] == ["signal"]
    watch.signal()
    assert watch.poll(4 * S) == []
    assert watch.refused == 1
    assert watch.poll(10 * S) == []
    watch.signal()
    assert [one.reason for one in watch.poll(11 * S)] == ["signal"]


def test_what_others_asked_for_is_told_and_makes_slow_ones_wait(tmp_path: Path) -> None:
    now = _usual(tmp_path)
    watch = Watch(tmp_path, Plan(slow=True), start=0)
    assert watch.poll(now) == []
    ask(tmp_path, Window(2.0, 4, None), "mcp")
    (asked,) = watch.poll(now)
    assert (asked.reason, asked.window) == ("mcp", Window(2.0, 4, None))
    _write(tmp_path / "host-1.jsonl", [("received", "late", asked.when, None)])
    assert watch.poll(asked.when + 10 * S) == []
    assert [one.reason for one in watch.poll(asked.when + 61 * S)] == ["slow"]


def test_nothing_more_is_opened_than_the_plan_allows(tmp_path: Path) -> None:
    watch = Watch(tmp_path, Plan(at_seconds=tuple(range(10, 100, 10)), most=3), start=0)
    opened = [one for at in range(100) for one in watch.poll(at * S)]
    assert (len(opened), watch.refused) == (3, 6)


@pytest.mark.parametrize(
    ("late", "slow"),
    [
        ([("first_token", 150 * MS, None)], True),
        ([("first_token", 90 * MS, None)], False),
        ([("first_token", 50 * MS, None), ("finished", 250 * MS, 11)], True),
        ([("first_token", 50 * MS, None), ("finished", 130 * MS, 11)], False),
        ([("aborted", 5 * S, None)], False),
    ],
)
def test_a_request_is_slow_against_those_before_it(
    tmp_path: Path, late: list[tuple[str, int, int | None]], slow: bool
) -> None:
    watch = Watch(tmp_path, Plan(slow=True), start=0)
    now = _usual(tmp_path)
    assert watch.poll(now) == []
    _write(tmp_path / "host-1.jsonl", [("received", "late", now, None)])
    _write(tmp_path / "host-1.jsonl", [(name, "late", now + after, tokens) for name, after, tokens in late])
    assert [one.request for one in watch.poll(now + 60 * MS)] == (["late"] if slow else [])


def test_a_request_that_still_waits_is_slow_before_it_ends_and_its_window_rests_afterwards(tmp_path: Path) -> None:
    watch = Watch(tmp_path, Plan(slow=True, cool_down_s=60), start=0)
    now = _usual(tmp_path)
    _write(tmp_path / "host-1.jsonl", [("received", "late", now, None)])
    assert watch.poll(now + 99 * MS) == []
    (asked,) = watch.poll(now + 101 * MS)
    assert (asked.reason, asked.request) == ("slow", "late")
    assert asked.record()["request"] == "late"
    _write(tmp_path / "host-1.jsonl", [("received", "later", now + S, None)])
    assert watch.poll(now + 59 * S) == []
    assert watch.refused == 0
    assert [one.request for one in watch.poll(now + 62 * S)] == ["later"]


def test_a_request_that_never_ends_opens_one_window_only(tmp_path: Path) -> None:
    watch = Watch(tmp_path, Plan(slow=True), start=0)
    now = _usual(tmp_path)
    _write(tmp_path / "host-1.jsonl", [("received", "lost", now, None)])
    opened = [one for after in range(1, 1200) for one in watch.poll(now + after * S)]
    assert [one.request for one in opened] == ["lost"]


def test_where_the_engine_names_a_request_later_its_wait_counts_from_its_arrival(tmp_path: Path) -> None:
    watched = Watched()
    watched.take({"name": "request.added", "rid": "cmpl-1-0-ab", "t": 900, "at": 100, "front": "cmpl-1"})
    watched.take({"name": "request.added", "rid": "cmpl-2-0-ab", "t": 900})
    assert [one.received for one in watched.going.values()] == [100, 900]
    assert watched.seen == 2


def test_of_few_requests_none_is_slow(tmp_path: Path) -> None:
    watch = Watch(tmp_path, Plan(slow=True), start=0)
    now = _usual(tmp_path, count=ENOUGH - 1)
    _write(tmp_path / "host-1.jsonl", [("received", "late", now, None)])
    assert watch.poll(now + 100 * S) == []


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=REMEMBERED + 300))
def test_the_limit_is_that_of_the_latest_values(values: list[int]) -> None:
    usual = Usual()
    for value in values:
        usual.add(value)
    latest = sorted(values[-REMEMBERED:])
    wanted = max(latest[int(len(latest) * 0.99)], 2 * latest[len(latest) // 2]) if len(latest) >= ENOUGH else None
    assert usual.limit() == wanted


def test_requests_that_never_end_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teller_core.collect.windows.slow.MOST_OPEN", 5)
    watched = Watched()
    for at in range(9):
        watched.take({"name": "request.received", "rid": f"r{at}", "t": at})
    assert list(watched.going) == [f"r{at}" for at in range(4, 9)]


def test_lines_are_read_once_and_only_when_whole(tmp_path: Path) -> None:
    new = Tail(tmp_path)
    path = tmp_path / "host-7-0001.jsonl"
    _write(path, [("received", "a", 1, None)])
    whole = path.read_text()
    path.write_text(whole + whole[:20])
    assert [row["rid"] for row in new.rows()] == ["a"]
    path.write_text(whole + whole.replace('"a"', '"b"'))
    assert [row["rid"] for row in new.rows()] == ["b"]
    assert list(new.rows()) == []


def test_files_that_go_and_lines_that_are_no_events_are_passed_over(tmp_path: Path) -> None:
    new = Tail(tmp_path)
    (tmp_path / "host-1.jsonl").write_text('{"request.\n["request."]\n{"name": "request.received"}\n\xff "request.\n')
    assert list(new.rows()) == []
    (tmp_path / "host-1.jsonl").unlink()
    _write(tmp_path / "host-2.jsonl", [("received", "a", 1, None)])
    assert [row["rid"] for row in new.rows()] == ["a"]


def test_of_a_file_that_grew_by_too_much_the_newest_part_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "MOST_BYTES", 400)
    _write(tmp_path / "host-1.jsonl", [("received", f"r{at:03}", at, None) for at in range(100)])
    read = [row["rid"] for row in Tail(tmp_path).rows()]
    assert read == [f"r{at:03}" for at in range(100 - len(read), 100)]
    assert 2 <= len(read) <= 5
