"""What a capture itself tells without any request: ranks that did not come to a collective, and calls that do not fit."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.capture import Absences, Capture, Disagreements
from teller_core.data.causes import cause
from teller_core.data.report import EvidenceItem, Finding
from teller_core.data.table import UNKNOWN
from teller_core.judge.evidence import COUNTED, HINTED, RECORDED, SAMPLED, ms, rounded
from teller_core.judge.first_causes import Firsts, firsts

SURE = (COUNTED, SAMPLED, HINTED)
"""Confidence by how the first cause is known: collectives, point-to-point calls, a dump that is not there."""
WENT_ON_NS = 1_000_000_000
"""ns after the first rank called: where the service ran another step sooner than this, the missing rank came after all."""
MOST = 16
"""Findings of a kind: where more ranks are missing, the first of them says how many."""
NO_CLAIM = "what did not happen has no length that its end would save"


def findings(capture: Capture) -> list[Finding]:
    """First causes among the ranks that others wait for, circles of waiting, calls that do not fit, and ranks that stalled."""
    table, differing = capture.absences, capture.disagreements
    first = firsts(table)
    absent = [rank for rank, rows in first.rows.items() if went_on(capture, int(table.since[rows[0]])) == UNKNOWN]
    missing = [_missing(table, rank, first.rows[rank], first, differing) for rank in absent[:MOST]]
    circles = [_circle(table, circle) for circle in first.circles[:MOST]]
    odd = [_mismatch(differing, row) for row in _rows(differing, "other_call")[:MOST]]
    stalled = [row for row in _rows(differing, "not_ended") if int(differing.rank[row]) not in first.rows]
    if len(absent) > MOST:
        missing[0].evidence.append(_number("ranks that others wait for like this one", len(absent), unit="ranks"))
    without_end = [_stalled(differing, row) for row in stalled[:MOST]]
    return sorted([*odd, *missing, *circles, *without_end], key=lambda finding: -finding.confidence)


def went_on(capture: Capture, since: int) -> int:
    """int ns: when the first step after ``since`` ended, UNKNOWN where none did within WENT_ON_NS."""
    ended = capture.steps.finished
    after = ended[(ended != UNKNOWN) & (ended >= since)] if since != UNKNOWN else ended[:0]
    first = int(after.min()) if len(after) else UNKNOWN
    return first if first != UNKNOWN and first - since < WENT_ON_NS else UNKNOWN


def what(table: Absences | Disagreements, row: int) -> str:
    """The collective of a row in words, which are the producer's."""
    elements = int(table.elements[row])
    size = f" of {elements} {table.dtype[row]}".rstrip() if elements >= 0 else ""
    told = f" ({table.description[row]})" if table.description[row] else ""
    return f"{table.name[row]}{size} in group {table.group[row]}{told}"


def _missing(table: Absences, rank: int, rows: Sequence[int], first: Firsts, differing: Disagreements) -> Finding:
    row = rows[0]
    evidence = [
        _number("number of the collective of its group that it did not call", table.sequence[row], what(table, row)),
        _number(f"ranks that waited there: {table.waiters[row]}", table.waiting[row], unit="ranks"),
        _number("ranks known to be held up behind it", len(first.held(rank)), unit="ranks"),
        *_silence(table, row),
    ]
    groups = {table.group[other] for other in rows}
    if len(groups) > 1:
        evidence.append(_number("groups in which others wait for it", len(groups), unit="groups"))
    if not table.certain[row]:
        evidence.append(_item("it left no dump, or one that forgot the call"))
    evidence += [
        item
        for other in _rows(differing, "not_ended")
        if differing.rank[other] == rank
        for item in _unended(differing, other)
    ]
    return _finding("comm.rank_missing", SURE[first.level], evidence, rank=rank, operator=table.name[row])


def _silence(table: Absences, row: int) -> list[EvidenceItem]:
    """When the rank was last heard of."""
    last, since = int(table.last_seen[row]), int(table.since[row])
    if UNKNOWN in (last, since):
        return [_item("its dump holds no call: all it had made had ended")] if table.certain[row] else []
    when = "before" if last <= since else "after"
    return [_number(f"its last recorded call came {when} their first", ms(abs(since - last)), unit="ms")]


def _circle(table: Absences, circle: Sequence[tuple[int, int]]) -> Finding:
    evidence = [
        _number(f"rank {waiter} waits for rank {int(table.rank[row])}", table.sequence[row], what(table, row))
        for waiter, row in circle
    ]
    return _finding("comm.collective_hang", COUNTED, evidence, operator=table.name[circle[0][1]])


def _mismatch(table: Disagreements, row: int) -> Finding:
    same = int(np.sum((table.group == np.array(table.group[row])) & _is(table, "other_call")))
    alone = int(table.others[row]) > same
    other = f"{table.other_name[row]} of {int(table.other_elements[row])} {table.other_dtype[row]}"
    evidence = [
        _number("the collective of its group that it called instead", table.sequence[row], what(table, row)),
        _number("ranks that made another call under that number", table.others[row], other, unit="ranks"),
    ]
    if table.caller[row]:
        evidence.append(_item("the code that called it", table.caller[row]))
    rank = int(table.rank[row]) if alone else None
    sure = RECORDED if alone else COUNTED
    return _finding("comm.collective_mismatch", sure, evidence, rank=rank, operator=table.name[row])


def _stalled(table: Disagreements, row: int) -> Finding:
    rank, name = int(table.rank[row]), table.name[row]
    return _finding("comm.completion_stalled", HINTED, _unended(table, row), rank=rank, operator=name)


def _unended(table: Disagreements, row: int) -> list[EvidenceItem]:
    last = f"ranks that recorded ends up to {int(table.until[row])}"
    return [
        _number(
            "number of the first collective of which it recorded no end",
            table.sequence[row],
            what(table, row),
        ),
        _number(last, table.others[row], unit="ranks"),
    ]


def _rows(table: Disagreements, kind: str) -> list[int]:
    return np.flatnonzero(_is(table, kind)).tolist()


def _is(table: Disagreements, kind: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.array([each == kind for each in table.kind], dtype=np.bool_)


def _item(name: str, text: str | None = None) -> EvidenceItem:
    return EvidenceItem(kind="collective", scope="capture", name=name, untrusted_text=text)


def _number(name: str, value: float, text: str | None = None, *, unit: str | None = None) -> EvidenceItem:
    exact = float(value) if unit is None else rounded(float(value))
    return EvidenceItem(kind="collective", scope="capture", name=name, value=exact, unit=unit, untrusted_text=text)


def _finding(
    key: str, sure: float, evidence: list[EvidenceItem], *, rank: int | None = None, operator: str | None = None
) -> Finding:
    about = cause(key)
    return Finding(
        cause=key,
        title=about.title,
        step=None,
        rank=rank,
        view="horizontal",
        operator=operator,
        layer="communication",
        confidence=sure,
        saving_ms=None,
        saving_low_ms=None,
        saving_high_ms=None,
        saving_assumes=NO_CLAIM,
        evidence=evidence,
        fix=about.fix,
        against=[],
    )
