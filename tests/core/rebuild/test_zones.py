"""The zone of a log whose lines count steps is told by the engine's own counters, which have the time."""

from collections import Counter

import pytest

from teller_core.data.log_lines import LogLine, LogLines
from teller_core.data.records import FileRead, Iteration, Process, Recording, RequestSpan, Zone
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.zones import on_unix_clock

S, HOUR = 10**9, 3600 * 10**9
UNIX = 1_800_000_000 * S
FRONTEND = Process("", 7, "frontend")


def recording(*, counted: bool) -> Recording:
    """Lines an hour early, of steps that the engine's counters tell as well, or of which they tell nothing."""
    lines = LogLines()
    made = Recording(files=[FileRead("server.log", "engine_log", 1, clock="wall")], engine="vllm", lines=lines)
    for step in range(5):
        wall = UNIX + step * S - HOUR
        text = f"a line about the step that has the number {step}"
        lines.append(LogLine(FRONTEND, wall, S, "INFO", "", {}, text, 0, step + 1))
        time = UNIX + step * S + 500_000_000 if counted else wall
        made.iterations.append(Iteration(FRONTEND, time, 1_000, 0, step, 0, 0, 1, 1, line=step))
    made.spans.append(RequestSpan("r", "r", "", UNIX, UNIX + S, {}, {}, "vllm.stats"))
    return made


def test_lines_of_counted_steps_go_where_the_counters_say() -> None:
    problems: Counter[str] = Counter()
    placed = on_unix_clock(recording(counted=True), problems)
    assert list(placed.lines.time) == [UNIX + step * S for step in range(5)]
    assert [row.time for row in placed.iterations] == [UNIX + step * S + 500_000_000 for step in range(5)]
    assert not problems["files_of_unknown_zone"]


def test_lines_of_a_process_that_says_its_local_time_go_where_it_says() -> None:
    problems: Counter[str] = Counter()
    made = recording(counted=False)
    made.zones += [Zone(FRONTEND._replace(role="unknown"), -HOUR), Zone(Process("", 8), 5 * HOUR)]
    placed = on_unix_clock(made, problems)
    assert list(placed.lines.time) == [row.time for row in placed.iterations] == [UNIX + step * S for step in range(5)]
    assert not problems["files_of_unknown_zone"]


@pytest.mark.parametrize(
    "zones",
    [
        [Zone(Process("", 8), -HOUR)],
        [Zone(Process("elsewhere", 7), -HOUR)],
        [Zone(FRONTEND, -HOUR), Zone(FRONTEND, 0)],
    ],
    ids=["of another process", "of another machine", "two at once"],
)
def test_a_local_time_of_somebody_else_or_two_of_them_tell_nothing(zones: list[Zone]) -> None:
    problems: Counter[str] = Counter()
    made = recording(counted=False)
    made.zones += zones
    assert {row.time for row in on_unix_clock(made, problems).iterations} == {UNKNOWN}
    assert problems["files_of_unknown_zone"] == 1


def test_what_events_tell_outweighs_the_local_time_that_a_process_says() -> None:
    made = recording(counted=True)
    made.iterations *= 4
    made.zones.append(Zone(FRONTEND, 5 * HOUR))
    placed = on_unix_clock(made, Counter())
    assert list(placed.lines.time) == [UNIX + step * S for step in range(5)]


def test_steps_that_only_lines_tell_of_lose_their_time_where_the_zone_is_not_known() -> None:
    problems: Counter[str] = Counter()
    placed = on_unix_clock(recording(counted=False), problems)
    assert {row.time for row in placed.iterations} == {UNKNOWN}
    assert problems["files_of_unknown_zone"] == 1
