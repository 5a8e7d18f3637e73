"""Cutting a capture to intervals, against doing it row by row."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.capture import Absences, Capture, Collectives, Disagreements, Meetings, Pauses, Rank, Samples
from teller_core.data.readings import Buckets, Readings
from teller_core.data.steps import Lines, Participation, Requests, Steps, StepWork, TokenTimes, Transfers
from teller_core.data.table import UNKNOWN, columns, rows
from teller_core.data.trace import NO_LINK, Lane, Origin, Trace
from teller_core.data.tree import ROOT, Tree
from teller_core.lab.benchmark.cut import COUNTED_NS, cut
from tests.core.store.made import capture_of, filled

SPAN = 60
times = st.just(UNKNOWN) | st.integers(0, SPAN)
intervals_of = st.lists(st.tuples(st.integers(-5, SPAN), st.integers(0, 30)), max_size=4).map(
    lambda pairs: [(low, low + length) for low, length in pairs]
)
OF_REQUEST = (
    *("client_start", "received", "queued", "scheduled", "first_token", "last_token", "finished"),
    *("client_first", "client_end"),
)
OF_STEP = ("scheduled", "launched", "finished", "delivered")
Row = dict[str, Any]


def within(intervals: Sequence[tuple[int, int]], start: int, stop: int) -> bool:
    """In one of ``intervals``, those that overlap or touch taken as one: every point of it is in one, by halves."""
    if UNKNOWN in (start, stop) or stop < start:
        return False
    points = [start + half / 2 for half in range(2 * (stop - start) + 1)]
    return all(any(low <= point <= high for low, high in intervals) for point in points)


def column(draw: st.DrawFn, cell: st.SearchStrategy[int], count: int) -> list[int]:
    return draw(st.lists(cell, min_size=count, max_size=count))


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Two host threads of nested spans; under some, a kernel that may outlive its launch."""
    spans: list[tuple[int, int, int, int]] = []  # start, dur, lane, parent

    def grow(lane: int, low: int, high: int, parent: int, depth: int) -> None:
        while low < high and len(spans) < 24 and draw(st.booleans()):
            start = draw(st.integers(low, high - 1))
            stop = draw(st.integers(start, high))
            spans.append((start, stop - start, lane, parent))
            own = len(spans) - 1
            if depth < 3:
                grow(lane, start, stop, own, depth + 1)
            if draw(st.integers(0, 3)) == 0:
                begin = draw(st.integers(start, SPAN))
                spans.append((begin, draw(st.integers(0, SPAN - begin)), 2, own))
            low = stop

    for lane in (0, 1):
        grow(lane, 0, SPAN, ROOT, 0)
    parent = [span[3] for span in spans]
    stop = [
        next((row for row in range(own + 1, len(spans)) if own not in chain(parent, row)), len(spans))
        for own in range(len(spans))
    ]
    count = len(spans)
    names = [f"name {code}" for code in range(5)]
    trace = Trace(
        start=np.array([span[0] for span in spans], dtype=np.int64),
        dur=np.array([span[1] for span in spans], dtype=np.int64),
        name=np.array(column(draw, st.integers(0, 4), count), dtype=np.int32),
        lane=np.array([span[2] for span in spans], dtype=np.int32),
        category=np.zeros(count, dtype=np.uint8),
        layer=np.full(count, 3, dtype=np.uint8),
        link=np.full(count, NO_LINK, dtype=np.int64),
        arg=np.array(column(draw, st.integers(-1, 1), count), dtype=np.int32),
        names=names,
        lanes=[Lane("1", "1", False), Lane("1", "2", False), Lane("1", "stream 7", True)],
        categories=["cpu_op"],
        args=["{}", '{"shape": [1]}'],
        origin=Origin("kineto", "unix"),
    )
    return Tree(trace, np.array(parent, dtype=np.int32), np.array(stop, dtype=np.int32))


def chain(parent: Sequence[int], row: int) -> list[int]:
    """``row`` and its ancestors."""
    above = [row]
    while parent[above[-1]] != ROOT:
        above.append(parent[above[-1]])
    return above


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    """Small captures whose positions point where they may; all times lie in one minute of nanoseconds."""
    steps, requests, met = draw(st.integers(0, 5)), draw(st.integers(0, 4)), draw(st.integers(0, 3))
    ranks = [
        Rank(number, "host-1", number, "worker", draw(st.none() | trees()), -1, shift=draw(st.integers(-9, 9)))
        for number in range(draw(st.integers(1, 2)))
    ]

    def table(kind: Any, length: int, /, **known: Any) -> Any:
        cells = {
            name: column(draw, cell, length) if isinstance(cell, st.SearchStrategy) else cell
            for name, cell in known.items()
        }
        return filled(kind, length, **cells)

    def many() -> int:
        return draw(st.integers(0, 5))

    step, request = st.integers(-1, steps - 1), st.integers(-1, requests - 1)
    work = [(draw(step), draw(st.integers(0, len(ranks) - 1))) for _ in range(many() if steps else 0)]
    work = [(which, rank) for which, rank in work if which >= 0]
    row = [_range(draw, ranks[rank].tree) for _, rank in work]
    called = [draw(st.integers(0, len(ranks) - 1)) for _ in range(many())]
    taking = sorted((draw(step), draw(request)) for _ in range(many()))
    taking = [(which, who) for which, who in taking if which >= 0 and who >= 0]
    count = draw(st.lists(st.integers(0, 3), min_size=requests, max_size=requests))
    late = [draw(st.integers(-1, len(ranks) - 1)) for _ in range(met)]
    unknown_times = dict.fromkeys(OF_REQUEST, times)
    alone = [met + number for number in range(len(called))]
    lines, pauses, counters, readings, buckets, absent, differing = (many() for _ in range(7))
    return Capture(
        id="0123456789abcdef",
        name="life",
        engine="vllm",
        files=[],
        ranks=ranks,
        steps=filled(Steps, steps, number=range(steps), **_step_times(draw, steps)),
        work=filled(
            StepWork,
            len(work),
            step=[which for which, _ in work],
            rank=[rank for _, rank in work],
            row=[low for low, _ in row],
            row_stop=[high for _, high in row],
        ),
        requests=table(
            Requests,
            requests,
            number=range(1, requests + 1),
            client_id=[f"r{at}" for at in range(requests)],
            **unknown_times,
        ),
        participation=filled(
            Participation, len(taking), step=[which for which, _ in taking], request=[who for _, who in taking]
        ),
        tokens=TokenTimes(np.array([0, *np.cumsum(count)], dtype=np.int64), np.arange(sum(count), dtype=np.int64)),
        lines=table(
            Lines,
            lines,
            time=times,
            after=st.integers(-1, 3),
            rule=st.sampled_from(["", "vllm.kv_size"]),
            step=step,
            request=request,
            untrusted_text=[f"line {at}" for at in range(lines)],
        ),
        pauses=table(Pauses, pauses, start=st.integers(0, SPAN), dur=st.integers(0, 9), thread=range(pauses)),
        samples=_samples(draw, counters),
        collectives=filled(
            Collectives,
            len(called),
            rank=called,
            sequence=[draw(st.sampled_from([*range(met), own])) for own in alone],
            step=[draw(step) for _ in called],
            row=[_row(draw, ranks[rank].tree) for rank in called],
            start=[draw(st.integers(0, SPAN)) for _ in called],
            dur=[draw(st.integers(0, 9)) for _ in called],
        ),
        meetings=filled(
            Meetings,
            met,
            group=[f"meeting {at}" for at in range(met)],
            late=late,
            kept=[-1 if rank < 0 else _row(draw, ranks[rank].tree) for rank in late],
        ),
        absences=table(Absences, absent, since=times, sequence=range(absent)),
        disagreements=table(Disagreements, differing, time=times, sequence=range(differing)),
        transfers=table(
            Transfers, many() if requests else 0, request=st.integers(0, max(requests - 1, 0)), stop=st.integers(0, 9)
        ),
        readings=table(Readings, readings, start=times, stop=times, value=range(readings)),
        buckets=table(Buckets, buckets, start=times, stop=times, count=range(1, buckets + 1), high=[1.0] * buckets),
        metrics={"vllm:requests": 5.0},
        tier=4,
    )


def _step_times(draw: st.DrawFn, count: int) -> dict[str, list[int]]:
    """In order as far as they are known."""
    found = [sorted(draw(st.integers(0, SPAN)) for _ in OF_STEP) for _ in range(count)]
    known = [[time if draw(st.booleans()) else UNKNOWN for time in row] for row in found]
    return {name: [row[at] for row in known] for at, name in enumerate(OF_STEP)}


def _samples(draw: st.DrawFn, count: int) -> Samples:
    """Intervals of counters, some longer than two turns of the sampler."""
    long = st.integers(0, 3).map(lambda turns: turns * COUNTED_NS // 2)
    start, dur = column(draw, st.integers(0, SPAN), count), column(draw, long, count)
    return filled(
        Samples, count, start=start, stop=[a + b for a, b in zip(start, dur, strict=True)], delta=range(count)
    )


def _range(draw: st.DrawFn, tree: Tree | None) -> tuple[int, int]:
    if tree is None or not len(tree) or draw(st.booleans()):
        return -1, -1
    low = draw(st.integers(0, len(tree) - 1))
    return low, draw(st.integers(low + 1, len(tree)))


def _row(draw: st.DrawFn, tree: Tree | None) -> int:
    return -1 if tree is None or not len(tree) else draw(st.integers(-1, len(tree) - 1))


def listed(table: Any) -> list[Row]:
    """The rows of a table, one dict each."""
    named = {name: column if isinstance(column, list) else column.tolist() for name, column in columns(table).items()}
    return [{name: column[at] for name, column in named.items()} for at in range(rows(table))]


def first_of(row: Row, *names: str) -> int:
    return next((row[name] for name in names if row[name] != UNKNOWN), UNKNOWN)


def step_span(row: Row) -> tuple[int, int]:
    known = [row[name] for name in OF_STEP if row[name] != UNKNOWN]
    return (min(known), max(known)) if known else (UNKNOWN, UNKNOWN)


def request_span(row: Row) -> tuple[int, int]:
    begin = first_of(row, "client_start", "received", "queued", "scheduled", "first_token")
    return begin, first_of(row, "client_end", "finished", "last_token", "first_token")


def kept_steps(whole: Capture, intervals: Sequence[tuple[int, int]]) -> list[int]:
    """By their times; those without any by the time of the first line that tells of them."""
    lines = [(row["step"], row["time"]) for row in listed(whole.lines)]
    spans = [step_span(row) for row in listed(whole.steps)]
    told = [next((time for step, time in lines if step == at), UNKNOWN) for at in range(len(spans))]
    return [
        at
        for at, (span, time) in enumerate(zip(spans, told, strict=True))
        if within(intervals, *((time, time) if span == (UNKNOWN, UNKNOWN) else span))
    ]


def of_start(line: Row, whole: Capture) -> bool:
    begins = [begin for begin, _ in map(request_span, listed(whole.requests)) if begin != UNKNOWN]
    early = bool(begins) and line["time"] != UNKNOWN and line["time"] + max(line["after"], 0) < min(begins)
    return early and bool(line["rule"]) and line["step"] == line["request"] == -1


def kept(table: Any, spans: Any, intervals: Sequence[tuple[int, int]]) -> list[int]:
    return [at for at, row in enumerate(listed(table)) if within(intervals, *spans(row))]


def moved(position: int, places: Sequence[int]) -> int:
    return places.index(position) if position in places else -1


@given(captures(), intervals_of)
def test_a_cut_is_what_lies_inside_row_by_row(whole: Capture, intervals: list[tuple[int, int]]) -> None:
    part = cut(whole, intervals)
    part.check()
    steps = kept_steps(whole, intervals)
    requests = kept(whole.requests, request_span, intervals)
    assert listed(part.steps) == [listed(whole.steps)[at] for at in steps]
    assert listed(part.requests) == [
        {**listed(whole.requests)[at], "number": number} for number, at in enumerate(requests, 1)
    ]
    expected = [
        {**row, "step": moved(row["step"], steps), "request": moved(row["request"], requests)}
        for row in listed(whole.participation)
        if row["step"] in steps and row["request"] in requests
    ]
    assert listed(part.participation) == expected
    assert [part.tokens.of(at).tolist() for at in range(len(requests))] == [
        whole.tokens.of(at).tolist() for at in requests
    ]
    expected = [
        {**row, "step": moved(row["step"], steps), "request": moved(row["request"], requests)}
        for row in listed(whole.lines)
        if within(intervals, row["time"], row["time"]) or of_start(row, whole)
    ]
    assert listed(part.lines) == expected
    expected = [
        {**row, "request": moved(row["request"], requests)}
        for row in listed(whole.transfers)
        if row["request"] in requests
    ]
    assert listed(part.transfers) == expected
    for name, spans in (
        ("pauses", lambda row: (row["start"], row["start"] + row["dur"])),
        ("readings", lambda row: (row["start"], row["stop"])),
        ("buckets", lambda row: (row["start"], row["stop"])),
        ("absences", lambda row: (row["since"], row["since"])),
        ("disagreements", lambda row: (row["time"], row["time"])),
    ):
        table = getattr(whole, name)
        assert listed(getattr(part, name)) == [listed(table)[at] for at in kept(table, spans, intervals)]
    assert part.metrics == {}
    assert part.tier == (4 if (part.work.row >= 0).any() else 3)  # all of their spans are operators


@given(captures(), intervals_of)
def test_spans_that_stay_keep_their_order_their_times_and_their_nearest_ancestor(
    whole: Capture, intervals: list[tuple[int, int]]
) -> None:
    part = cut(whole, intervals)
    for before, after in zip(whole.ranks, part.ranks, strict=True):
        if before.tree is None:
            assert after.tree is None
            continue
        assert after.tree is not None
        expected = [spelled(before.tree, row) for row in staying(before, intervals)]
        assert [spelled(after.tree, row) for row in range(len(after.tree))] == expected
        assert set(after.tree.trace.names) == {name for _, _, name, _, _ in expected}
        places = staying(before, intervals)
        for place, row in enumerate(places):
            above = [moved(each, places) for each in chain(before.tree.parent.tolist(), row)[1:] if each in places]
            assert int(after.tree.parent[place]) == (above[0] if above else ROOT)
            inside = [moved(each, places) for each in range(row, int(before.tree.stop[row])) if each in places]
            assert list(range(place, int(after.tree.stop[place]))) == inside


def staying(rank: Rank, intervals: Sequence[tuple[int, int]]) -> list[int]:
    assert rank.tree is not None
    trace = rank.tree.trace
    start, stop = (trace.start + rank.shift).tolist(), (trace.end + rank.shift).tolist()
    return [row for row in range(len(rank.tree)) if within(intervals, start[row], stop[row])]


def spelled(tree: Tree, row: int) -> tuple[int, int, str, int, str]:
    trace = tree.trace
    arg = int(trace.arg[row])
    name = trace.names[int(trace.name[row])]
    return int(trace.start[row]), int(trace.dur[row]), name, int(trace.lane[row]), trace.args[arg] if arg >= 0 else ""


@given(captures(), intervals_of)
def test_what_points_into_a_tree_points_at_the_same_spans(whole: Capture, intervals: list[tuple[int, int]]) -> None:
    part = cut(whole, intervals)
    steps = kept_steps(whole, intervals)
    expected: list[Row] = []
    for row in listed(whole.work):
        if row["step"] in steps:
            low, high = row["row"], row["row_stop"]
            tree = whole.ranks[row["rank"]].tree
            places = [] if tree is None else staying(whole.ranks[row["rank"]], intervals)
            own = [places.index(each) for each in range(low, high) if each in places] if low >= 0 else []
            first, stop = (own[0], own[-1] + 1) if own else (-1, -1)
            expected.append({**row, "step": steps.index(row["step"]), "row": first, "row_stop": stop})
    assert listed(part.work) == expected

    def at(row: int, rank: int) -> int:
        return moved(row, staying(whole.ranks[rank], intervals)) if row >= 0 else -1

    calls = [row for row in listed(whole.collectives) if within(intervals, row["start"], row["start"] + row["dur"])]
    met = sorted({row["sequence"] for row in calls if row["sequence"] < len(whole.meetings.came)})
    assert listed(part.meetings) == [
        {**row, "kept": at(row["kept"], row["late"])} for k, row in enumerate(listed(whole.meetings)) if k in met
    ]
    found = listed(part.collectives)
    assert [{**row, "sequence": 0} for row in found] == [
        {**row, "step": moved(row["step"], steps), "row": at(row["row"], row["rank"]), "sequence": 0} for row in calls
    ]
    for before, after in zip(calls, found, strict=True):
        alone = before["sequence"] >= len(whole.meetings.came)
        assert after["sequence"] >= len(met) if alone else after["sequence"] == met.index(before["sequence"])
    assert len({row["sequence"] for row in found}) == len({row["sequence"] for row in calls})


@given(captures(), intervals_of)
def test_what_a_counter_grew_by_inside_is_kept_from_where_the_interval_begins(
    whole: Capture, intervals: list[tuple[int, int]]
) -> None:
    stretched = [(low * COUNTED_NS // 20, high * COUNTED_NS // 20) for low, high in intervals]
    expected: list[Row] = []
    for row in listed(whole.samples):
        begin = beginning(stretched, row["stop"])
        if begin is None:
            continue
        if row["start"] >= begin:
            expected.append(row)
        elif row["stop"] - begin >= COUNTED_NS:
            expected.append({**row, "start": begin})
    assert listed(cut(whole, stretched).samples) == expected


def beginning(intervals: Sequence[tuple[int, int]], time: int) -> int | None:
    """Where the interval around ``time`` begins, those that overlap taken as one; None where none is around it."""
    holding = [low for low, high in intervals if low <= time <= high]
    if not holding:
        return None
    low = min(holding)
    while (further := min([other for other, high in intervals if other < low <= high], default=low)) < low:
        low = further
    return low


@given(captures())
def test_all_that_has_its_times_lies_in_one_long_interval(whole: Capture) -> None:
    part = cut(whole, [(-SPAN, 10 * COUNTED_NS)])
    for name in ("pauses", "samples", "collectives"):
        assert rows(getattr(part, name)) == rows(getattr(whole, name))
    for before, after in zip(whole.ranks, part.ranks, strict=True):
        assert (after.tree is None and before.tree is None) or len(after.tree or ()) == len(before.tree or ())


def test_each_cut_has_an_id_of_its_own() -> None:
    whole = capture_of("0a1b2c3d")
    assert cut(whole, [(0, 5)]).id == cut(whole, [(2, 5), (0, 3)]).id
    ids = {cut(whole, [(0, 5)]).id, cut(whole, [(0, 6)]).id, cut(replace(whole, id="0" * 8), [(0, 5)]).id, whole.id}
    assert len(ids) == 4
