"""What is drawn of a request: its own times, the steps that served it and those that did not, and what stood still."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.capture import Capture, Collectives, Pauses, Rank
from teller_core.data.report_findings import EvidenceItem, Finding
from teller_core.data.steps import Lines, StepWork
from teller_core.data.table import UNKNOWN
from teller_core.tell.timeline.marks import Lane, rows_of
from teller_core.tell.timeline.request import LINES, MARKED, RANK_ROWS, extents, request_lanes
from teller_core.tell.timeline.still import ROWS
from tests.core.judge.serving import MS, ZERO, Ask, Trouble, serve
from tests.core.store.made import filled

CAPTURE, NUMBERS = serve([Ask(30.0 * i, output=8) for i in range(6)], [Trouble("gc", 60, 90, 20.0)])
TOOK = NUMBERS.steps.took


def drawn(at: int, *, capture=CAPTURE, findings: tuple[Finding, ...] = ()) -> tuple[dict[str, Lane], int, int]:
    lanes, begin, length, _ = request_lanes(capture, at, findings, NUMBERS.steps.took)
    return {one.label or one.group: one for one in lanes}, begin, length


def test_its_times_follow_one_another_from_its_beginning_to_its_end() -> None:
    rows, begin, length = drawn(2)
    times = rows["its times"]
    assert int(times.start[0]) == begin and int((times.start + times.dur)[-1]) == begin + length
    assert np.array_equal(times.start[1:], (times.start + times.dur)[:-1])
    assert "queue" in times.kind and "decode" in times.kind
    assert any(text.startswith("in the queue, ") for text in times.text)


def test_a_time_that_nobody_recorded_is_stepped_over() -> None:
    requests = replace(CAPTURE.requests, queued=np.full_like(CAPTURE.requests.queued, UNKNOWN))
    rows, _begin, length = drawn(2, capture=replace(CAPTURE, requests=requests))
    times = rows["its times"]
    assert int(times.dur.sum()) == length and "queue" not in times.kind
    assert any("from received to scheduled" in text for text in times.text)


def test_its_tokens_say_how_long_each_let_one_wait() -> None:
    tokens = drawn(1)[0]["its tokens"]
    gaps = np.diff(CAPTURE.tokens.of(1)) / 1e6
    assert len(tokens.text) == 8 and f"token 2, {gaps[0]:,.1f} ms after the one before" == tokens.text[1]


def test_steps_that_served_it_are_apart_from_those_that_did_not() -> None:
    rows = drawn(3)[0]
    mine = set(CAPTURE.participation.step[CAPTURE.participation.request == 3].tolist())
    shown = {int(text.split(",")[0].removeprefix("step ")) for text in rows["steps with it"].text}
    assert shown == mine
    others = {
        int(text.split(",")[0].removeprefix("step "))
        for text in rows.get("for others only", rows["its times"]).text
        if text.startswith("step")
    }
    assert not others & mine
    assert set(rows["steps with it"].kind) <= {"prefill_step", "decode_step", "mixed_step"}


def test_a_step_that_is_blamed_is_marked_and_named() -> None:
    step = int(CAPTURE.participation.step[CAPTURE.participation.request == 2][0])
    finding = found(step=step)
    rows = drawn(2, findings=(finding,))[0]
    assert list(rows["what was found"].text) == ["1. It stopped"] and rows["what was found"].finding.tolist() == [1]
    elsewhere = found(step=None).model_copy(update={"cause": "gpu.hw_fault"})
    assert "what was found" not in drawn(2, findings=(elsewhere,))[0]


def test_a_cause_without_a_step_marks_the_pauses_or_the_phase_that_it_is_about() -> None:
    begin = int(CAPTURE.requests.begin()[2])
    pauses = filled(Pauses, 2, start=[begin + MS, begin + 3 * MS], dur=[MS, MS], role=["engine"] * 2)
    paused = replace(CAPTURE, pauses=replace(pauses, kind=["gc", "profiler_stop"]))
    row = drawn(2, capture=paused, findings=(found(step=None),))[0]["what was found"]
    assert (row.start.tolist(), row.dur.tolist()) == ([begin + MS], [MS])
    queued = found(step=None).model_copy(update={"cause": "scheduler.queue_saturation"})
    rows = drawn(2, findings=(queued,))[0]
    at = rows["its times"].kind.index("queue")
    assert int(rows["what was found"].start[0]) == int(rows["its times"].start[at])
    assert rows["what was found"].finding.tolist() == [1]


def test_of_thousands_of_pauses_that_are_blamed_the_longest_are_marked() -> None:
    begin = int(CAPTURE.requests.begin()[2])
    pauses = filled(Pauses, 5000, start=[begin + at for at in range(5000)], dur=[at + 1 for at in range(5000)])
    row = drawn(2, capture=replace(CAPTURE, pauses=replace(pauses, kind=["gc"] * 5000)), findings=(found(step=None),))
    marked = row[0]["what was found"]
    assert len(marked.start) == MARKED and int(marked.dur.min()) == 5000 - MARKED + 1
    told = request_lanes(replace(CAPTURE, pauses=replace(pauses, kind=["gc"] * 5000)), 2, (found(step=None),), TOOK)
    assert told.left_out == f"not marked as blamed: {5000 - MARKED:,} pauses"


def test_rows_of_pauses_are_no_more_than_can_be_drawn() -> None:
    begin = int(CAPTURE.requests.begin()[2])
    pauses = filled(
        Pauses, 9, start=[begin] * 9, dur=[at + 1 for at in range(9)], role=[f"part {at}" for at in range(9)]
    )
    lanes, _, _, left_out = request_lanes(replace(CAPTURE, pauses=pauses), 2, (), TOOK)
    assert left_out == f"not drawn for want of room: {9 - ROWS} pauses"
    assert [one.label.partition(":")[0] for one in lanes if one.group == "stood still"] == [
        f"part {at}" for at in range(8, 8 - ROWS, -1)
    ]


def test_pauses_stand_in_rows_by_who_stood_still_cut_to_the_request() -> None:
    begin, end = int(CAPTURE.requests.begin()[2]), int(CAPTURE.requests.end()[2])
    pauses = filled(
        Pauses,
        4,
        start=[begin - 5 * MS, begin + MS, end + MS, begin + 2 * MS],
        dur=[10 * MS, MS, MS, MS],
        role=["engine", "engine", "engine", ""],
    )
    pauses = replace(pauses, kind=["gc", "gc", "gc", "loop_lag"])
    rows = drawn(2, capture=replace(CAPTURE, pauses=pauses))[0]
    assert rows["engine: gc"].start.tolist() == [begin, begin + MS]
    assert rows["engine: gc"].dur.tolist() == [5 * MS, MS]
    assert rows["engine: gc"].text[0] == "gc, 10.0 ms"
    assert rows["unknown: loop lag"].dur.tolist() == [MS]


def test_a_line_that_a_finding_names_is_marked_and_quiet_lines_of_others_are_left_out() -> None:
    begin = int(CAPTURE.requests.begin()[2])
    lines = filled(
        Lines,
        4,
        time=[begin + MS] * 4,
        level=["INFO", "INFO", "INFO", "ERROR"],
        untrusted_text=["mine", "named", "quiet", "loud"],
        number=[1, 2, 3, 4],
        step=[-1, -1, 0, int(CAPTURE.participation.step[CAPTURE.participation.request == 2][0])],
        request=[2, -1, -1, -1],
    )
    item = EvidenceItem(kind="log_line", scope="capture", log_line="server.log:2")
    log = drawn(2, capture=replace(CAPTURE, lines=lines), findings=(found(evidence=[item]),))[0]["log lines"]
    assert sorted(log.said) == ["loud", "mine", "named"]
    assert dict(zip(log.said, log.finding.tolist(), strict=True))["named"] == 1


@pytest.mark.parametrize(("pids", "shown"), [((7, 8), 2), ((0, 0), 2), ((7, 7), 0)])
def test_each_of_several_processes_has_a_row_with_its_waits_below_and_none_where_there_is_one(
    pids: tuple[int, int], shown: int
) -> None:
    mine = np.unique(CAPTURE.participation.step[CAPTURE.participation.request == 2])
    start = CAPTURE.steps.begin()[mine]
    both = np.repeat(np.arange(2), len(mine))
    work = filled(StepWork, 2 * len(mine), step=[*mine] * 2, rank=both, start=[*start] * 2, stop=[*(start + MS)] * 2)
    met = filled(Collectives, 1, step=mine[:1], rank=[1], start=start[:1], dur=[MS], wait=[MS // 2], late=[0])
    ranks = [Rank(at, "host", pid, "worker", None, -1) for at, pid in enumerate(pids)]
    rows = drawn(2, capture=replace(CAPTURE, ranks=ranks, work=work, collectives=met))[0]
    assert [label for label in rows if label.startswith("rank ")] == ["rank 0", "rank 1"][:shown]
    waits = list(rows["its waits"].text) if shown else []
    assert waits == ["waited 0.500 ms for rank 0"][:shown]


def crowded(ranks: int, waits: int) -> Capture:
    """The third request's steps on so many ranks, each of which waits so many times in the first of them."""
    mine = np.unique(CAPTURE.participation.step[CAPTURE.participation.request == 2])
    start = np.tile(CAPTURE.steps.begin()[mine], ranks)
    work = filled(
        StepWork,
        len(start),
        step=np.tile(mine, ranks),
        rank=np.repeat(np.arange(ranks), len(mine)),
        start=start,
        stop=start + MS,
    )
    each = np.repeat(np.arange(ranks), waits)
    met = filled(
        Collectives,
        len(each),
        step=np.full(len(each), mine[0]),
        rank=each,
        start=int(CAPTURE.steps.begin()[mine[0]]) + np.tile(np.arange(waits), ranks),
        dur=np.full(len(each), 5),
        wait=np.full(len(each), 5),
        late=np.zeros(len(each)),
    )
    who = [Rank(at, "host", 7 + at, "worker", None, -1) for at in range(ranks)]
    return replace(CAPTURE, ranks=who, work=work, collectives=met)


@pytest.mark.parametrize(("ranks", "left"), [(RANK_ROWS, ""), (RANK_ROWS + 1, "1 rank"), (RANK_ROWS + 4, "4 ranks")])
def test_ranks_that_have_no_row_are_counted(ranks: int, left: str) -> None:
    told = request_lanes(crowded(ranks, 1), 2, (), TOOK)
    assert len([one for one in told.lanes if one.label.startswith("rank ")]) == RANK_ROWS
    assert told.left_out == (f"not drawn for want of room: {left}" if left else "")


def test_lines_that_have_no_mark_are_counted_and_those_of_another_time_take_no_room() -> None:
    begin = int(CAPTURE.requests.begin()[2])
    time = [begin - 5] * 50 + [begin + at for at in range(LINES + 3)]
    lines = filled(Lines, len(time), time=time, request=[2] * len(time), step=[-1] * len(time))
    told = request_lanes(replace(CAPTURE, lines=lines), 2, (), TOOK)
    (log,) = (one for one in told.lanes if one.layer == "log")
    assert len(log.start) == LINES and told.left_out == "not drawn for want of room: 3 log lines"


def test_a_million_waits_take_the_room_of_their_times_and_no_words() -> None:
    many = 500_000
    capture = crowded(2, many)
    tracemalloc.start()
    try:
        told = request_lanes(capture, 2, (), TOOK)
        rows, merged = rows_of(told.lanes, told.begin, told.length, 700)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 150 * 2 * many  # bytes a wait: a tuple with its words takes 300
    waits = [row for row in rows if row.label == "its waits"]
    assert [sum(row.count) for row in waits] == [many, many] and merged >= 2 * many
    assert all(text.endswith("waited 0.000 ms for rank 0") for row in waits for text in row.text)


def test_a_request_that_nobody_timed_is_not_drawn() -> None:
    unknown = {
        name: np.full_like(getattr(CAPTURE.requests, name), UNKNOWN)
        for name in ("finished", "last_token", "first_token", "client_end")
    }
    lanes, _, length, _ = request_lanes(
        replace(CAPTURE, requests=replace(CAPTURE.requests, **unknown)), 2, (), NUMBERS.steps.took
    )
    assert lanes == [] and length == UNKNOWN


@pytest.mark.parametrize(("known", "placed"), [("finished", -5), ("scheduled", 5)])
def test_a_step_with_one_time_is_placed_by_how_long_it_took(known: str, placed: int) -> None:
    blank = {
        name: np.full_like(CAPTURE.steps.scheduled, UNKNOWN)
        for name in ("scheduled", "launched", "finished", "delivered")
    }
    steps = replace(CAPTURE.steps, **{**blank, known: np.full_like(CAPTURE.steps.scheduled, ZERO)})
    low, high = extents(steps, np.full(len(steps.number), 5, dtype=np.int64))
    assert int(low[0]) - ZERO == min(placed, 0) and int(high[0]) - ZERO == max(placed, 0)


def found(step: int | None = 0, evidence: list[EvidenceItem] | None = None) -> Finding:
    return Finding(
        cause="host.gc_pause",
        title="It stopped",
        step=step,
        rank=None,
        view="vertical",
        operator=None,
        layer="host",
        confidence=0.9,
        saving_ms=None,
        saving_low_ms=None,
        saving_high_ms=None,
        saving_assumes="",
        evidence=evidence or [],
        fix="",
        against=[],
    )
