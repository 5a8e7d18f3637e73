"""How ranks met in replayed runs: who came last, and how long the others waited, as far as their clocks tell."""

from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture, Collectives, Meetings
from teller_core.data.table import UNKNOWN, Int64
from teller_core.judge.replay.arcs import SYNCHRONOUS
from teller_core.lab.perturb.runs import Laid, Run


class _Calls(NamedTuple):
    """A row a call of a run, by meeting: ``row`` of the graph, ``part``, ``meeting`` of the graph; ns on the capture's clock."""

    row: Int64
    part: Int64
    meeting: Int64
    start: Int64
    dur: Int64


def met_again(capture: Capture, given: Laid) -> tuple[Collectives, Meetings]:
    """The collectives and meetings of all runs: a meeting of one run is none of another."""
    rows: list[tuple[int, ...]] = []
    told: list[tuple[int, ...]] = []
    words: list[tuple[str, str, str]] = []
    for at, run in enumerate(given.runs):
        later, calls = int(given.offset[at]), _calls(run)
        for meeting in np.unique(calls.meeting).tolist():
            mine = np.flatnonzero(calls.meeting == meeting)
            wait, late, about = _waited(capture, run, calls, mine)
            source = int(run.piece.linked.calls.at[meeting])
            number = len(told)
            words.append((capture.meetings.group[source], capture.meetings.kind[source], capture.meetings.how[source]))
            arrived, by, waited, transfer = about
            came, size, root = len(mine), int(capture.meetings.size[source]), int(capture.meetings.root[source])
            told.append((came, size, arrived + later, late, by, waited, transfer, root))
            for k, ns in zip(mine.tolist(), wait.tolist(), strict=True):
                step = at * len(run.piece.steps) + int(run.piece.of_row[calls.row[k]])
                rows.append(
                    (
                        number,
                        step,
                        run.parts[int(calls.part[k])].rank,
                        _row(given, at, run, int(calls.row[k]), int(calls.part[k])),
                        int(calls.start[k]) + later,
                        int(calls.dur[k]),
                        ns,
                        late,
                    )
                )
    return _collectives(rows, words), _meetings(told, words)


def _calls(run: Run) -> _Calls:
    rows, called = run.piece.linked, run.piece.linked.calls
    row = called.row.astype(np.int64)
    part = rows.lane_part[rows.lane[row]].astype(np.int64)
    return _Calls(row, part, called.meeting.astype(np.int64), run.start[row], run.end[row] - run.start[row])


def _row(given: Laid, at: int, run: Run, row: int, part: int) -> int:
    """Where the row is in the tree of its rank, -1 for a call on a thread of its own."""
    first = run.piece.linked.first
    return row - int(first[part]) + int(given.rows[at, part]) if row < first[-1] else -1


_About = tuple[int, int, int, int]
"""When the last call came, how long after the one before it, what all waited, and the transfer: ns."""


def _waited(capture: Capture, run: Run, calls: _Calls, mine: Int64) -> tuple[Int64, int, _About]:
    """What each call of a meeting waited, who came late (-1), and about it; UNKNOWN where the clocks do not tell."""
    unknown = np.full(len(mine), UNKNOWN)
    start, dur = calls.start[mine], calls.dur[mine]
    nothing = (unknown, -1, (int(start.max()), UNKNOWN, UNKNOWN, UNKNOWN))
    meeting, rank = int(calls.meeting[mine[0]]), [run.parts[int(part)].rank for part in calls.part[mine]]
    error = np.array([capture.ranks[at].clock_error for at in rank], dtype=np.int64)
    together = run.piece.graph.meets.known[meeting] and run.piece.linked.calls.kind[meeting] in SYNCHRONOUS
    if not together or len(mine) < 2 or (error == UNKNOWN).any():
        return nothing
    order = np.argsort(start, kind="stable")
    last, before = int(order[-1]), int(order[-2])
    bound = error + error[last]
    ahead = start[last] - start
    surely = ahead > bound
    wait = np.where(surely, np.minimum(ahead, dur), UNKNOWN)
    named = bool(surely[np.arange(len(mine)) != last].all())
    if named:
        wait[last] = 0
    transfer = int((dur - np.where(wait == UNKNOWN, 0, wait)).min())
    known = wait[wait != UNKNOWN]
    by = int(start[last] - start[before]) if named else UNKNOWN
    total = int(known.sum()) if len(known) else UNKNOWN
    return wait, rank[last] if named else -1, (int(start[last]), by, total, transfer)


def _collectives(rows: list[tuple[int, ...]], words: list[tuple[str, str, str]]) -> Collectives:
    rows.sort(key=lambda row: (row[4], row[2]))
    groups: dict[str, int] = {}
    number, step, rank, row, start, dur, wait, late = np.array(rows, dtype=np.int64).reshape(-1, 8).T
    which: list[int] = number.tolist()
    group = np.array([groups.setdefault(words[k][0], len(groups)) for k in which], dtype=np.int32)
    small = [column.astype(np.int32) for column in (step, rank, row, late)]
    return Collectives(group, number, small[0], small[1], small[2], start, dur, wait, small[3])


def _meetings(told: list[tuple[int, ...]], words: list[tuple[str, str, str]]) -> Meetings:
    came, size, arrived, late, by, waited, transfer, root = np.array(told, dtype=np.int64).reshape(-1, 8).T
    small = [column.astype(np.int32) for column in (came, size, late, root)]
    kept = np.full(len(came), -1, dtype=np.int32)
    group, kind, how = ([one[at] for one in words] for at in range(3))
    return Meetings(group, kind, how, small[0], small[1], arrived, small[2], by, waited, transfer, kept, small[3])
