"""The rule for requests that waited at one engine while others had room."""

import json
from typing import NamedTuple

import numpy as np

from teller_core.data.line_fields import whole_in
from teller_core.data.report import EvidenceItem
from teller_core.data.table import UNKNOWN, Int64
from teller_core.judge.evidence import COUNTED, HINTED, Clue, cost, count, line_item
from teller_core.judge.intervals import overlap, span
from teller_core.judge.prepare import EMPTY_ROWS, Case
from teller_core.judge.scene import Scene, over_work

REPORTS = {"vllm.stats": "waiting", "sglang.prefill": "queue", "sglang.decode": "queue"}
"""Log rules of lines in which an engine says how much it has to do, and the field of how many wait."""
NEAR_NS = 10_000_000_000
"""What an engine said of itself holds so long, unless it says something else: vLLM's own interval."""
MOMENT = 100_000_000
"""ns: who is taken as soon as the step that runs is over does not wait for room."""
HALF = 0.5
"""An engine has room where nothing waits for it and it runs at most this share of what the busiest one runs."""


class Load(NamedTuple):
    """What one engine has to do at a time."""

    engine: int
    running: int
    waiting: int
    line: int = -1
    """The row of the log line that says so, -1 where requests' own times do."""


def dp_imbalance(scene: Scene) -> Clue | None:
    """Requests waited for one engine, this one among them, while another engine had room."""
    life = scene.life
    if scene.metric in ("tpot", "itl_max") or len(scene.case.engines) == 1:
        return None
    known = int(scene.case.capture.requests.engine[life.request])
    if UNKNOWN not in (life.queued, life.chosen) and known >= 0:
        ns, sure = overlap(span(life.queued, life.chosen), scene.low, scene.high), COUNTED
        pair = _uneven(_by_requests(scene.case, life.queued)) or _by_lines(scene)
    else:
        ns, sure, pair = over_work(scene), HINTED, _by_lines(scene)
    if pair is None or ns <= 0 or (known >= 0 and pair[0].engine != known):
        return None
    busy, idle = pair
    return Clue("scheduler.dp_imbalance", ns, sure, [cost(_WAITED[sure], ns), *_told(scene, busy, idle)])


_WAITED = {
    COUNTED: "time in the queue of one engine",
    HINTED: "beyond what its work predicts, while requests waited for one engine",
}


def _told(scene: Scene, busy: Load, idle: Load) -> list[EvidenceItem]:
    evidence = [
        count(f"requests waiting for engine {busy.engine}", busy.waiting, unit="requests", scope="capture"),
        count(f"requests running on engine {busy.engine}", busy.running, unit="requests", scope="capture"),
        count(f"requests running on engine {idle.engine}, where none waited", idle.running, unit="requests", scope="capture"),
    ]  # fmt: skip
    return evidence + [line_item(scene, load.line, "the load of an engine") for load in (busy, idle) if load.line >= 0]


def _uneven(loads: list[Load]) -> tuple[Load, Load] | None:
    """The busiest engine, for which requests wait, and one that has room; None where there is no such pair."""
    if len(loads) < 2:
        return None
    busy = max(loads, key=lambda load: (load.waiting, load.running))
    idle = min(loads, key=lambda load: (load.waiting, load.running))
    apart = busy.waiting > 0 and idle.waiting == 0 and idle.running <= HALF * busy.running
    return (busy, idle) if apart else None


class _Times(NamedTuple):
    """int64 ns, ascending, of the requests of one engine: when they began to run and when these were over; when those came who
    waited for longer than a moment, and when these began to run or were over.
    """

    ran: Int64
    over: Int64
    came: Int64
    gone: Int64


def _by_requests(case: Case, time: int) -> list[Load]:
    """From the times of the requests whose engine is known. An engine that serves nobody at the time has steps at others."""
    loads: list[Load] = []
    for engine, times in case.once("times by engine", _times).items():
        ran, over, came, gone = (int(np.searchsorted(one, time, "right")) for one in times)
        loads.append(Load(engine, ran - over, came - gone))
    return loads


def _times(case: Case) -> dict[int, _Times]:
    table, ends = case.capture.requests, case.ends
    found: dict[int, _Times] = {}
    started, ended = table.scheduled != UNKNOWN, ends != UNKNOWN
    waited = (table.queued != UNKNOWN) & ~(started & (table.scheduled - table.queued < MOMENT)) & (started | ended)
    for engine in sorted(case.engines):
        mine = table.engine == engine
        ran, kept = mine & started & ended, mine & waited
        gone = np.where(started, table.scheduled, ends)
        found[engine] = _Times(
            np.sort(table.scheduled[ran]),
            np.sort(np.maximum(ends, table.scheduled)[ran]),
            np.sort(table.queued[kept]),
            np.sort(np.maximum(gone, table.queued)[kept]),
        )
    return found


class _Reports(NamedTuple):
    """When engines told that they were loaded unevenly: int64 ns ``time``, ascending, and of each the pair."""

    time: Int64
    pair: list[tuple[Load, Load]]


def _by_lines(scene: Scene) -> tuple[Load, Load] | None:
    """From what the engines say of themselves: the reports of one time at which most waited for one of them."""
    reports = scene.case.once("uneven reports", _reports)
    low, high = np.searchsorted(reports.time, [scene.low, scene.high])
    return max(reports.pair[int(low) : int(high)], key=lambda pair: pair[0].waiting, default=None)


def _reports(case: Case) -> _Reports:
    lines, told = case.capture.lines, list[tuple[int, Load]]()
    for rule, waiting in REPORTS.items():
        for row in map(int, case.lines.get(rule, EMPTY_ROWS)):
            fields, step = json.loads(lines.fields[row]), int(lines.step[row])
            named = whole_in(fields, "engine")
            engine = named if named is not None else int(case.capture.steps.engine[step]) if step >= 0 else -1
            runs, waits = whole_in(fields, "running"), whole_in(fields, waiting)
            if engine >= 0 and runs is not None and waits is not None:
                told.append((int(lines.time[row]), Load(engine, runs, waits, row)))
    latest: dict[int, tuple[int, Load]] = {}
    found: dict[int, tuple[Load, Load]] = {}
    for time, load in sorted(told):
        latest[load.engine] = time, load
        pair = _uneven([one for at, one in latest.values() if time - at <= NEAR_NS])
        if pair is not None:  # of lines of one second the last one counts: all engines have told by then
            found[time] = pair
        else:
            found.pop(time, None)
    return _Reports(np.array([*found], np.int64), [*found.values()])
