"""The rule for requests that were held up because a rank did not come to a collective."""

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import UNKNOWN
from teller_core.judge.absences import SURE, went_on, what
from teller_core.judge.evidence import Clue, cost, count
from teller_core.judge.first_causes import Firsts, firsts
from teller_core.judge.prepare import Case
from teller_core.judge.scene import Scene


def rank_missing(scene: Scene) -> Clue | None:
    """It was under way when ranks waited for one that did not come, and no step ended thereafter for a second at least."""
    table, first = scene.case.capture.absences, scene.case.once("first absences", _first)
    rows = [mine[0] for mine in first.rows.values() if int(table.since[mine[0]]) != UNKNOWN]
    if not rows or scene.life.begin == UNKNOWN:
        return None
    row = min(rows, key=lambda row: int(table.since[row]))
    since = int(table.since[row])
    low, high = scene.case.once("hang", lambda case: _stretch(case.capture, since))
    begin = scene.low if scene.low != UNKNOWN else scene.life.begin
    end = scene.high if scene.high != UNKNOWN else high
    ns = min(end, high) - max(begin, low)
    if ns <= 0:
        return None
    evidence = [
        cost("between the first rank's call of the collective and the request's end", ns, kind="collective"),
        count(
            f"ranks that waited for rank {int(table.rank[row])}",
            int(table.waiting[row]),
            unit="ranks",
            kind="collective",
        ),
    ]
    evidence[-1] = evidence[-1].model_copy(update={"untrusted_text": what(table, row), "scope": "capture"})
    rank = _position(scene.case.capture, int(table.rank[row]))
    view, layer = "horizontal", "communication"
    return Clue("comm.rank_missing", ns, SURE[first.level], evidence, None, rank, view, table.name[row], layer)


def _first(case: Case) -> Firsts:
    return firsts(case.capture.absences)


def _stretch(capture: Capture, since: int) -> tuple[int, int]:
    """[from, to) int ns in which the ranks waited: to the end of the next step, or to the last time that anything tells of."""
    if went_on(capture, since) != UNKNOWN:
        return since, since
    ended = capture.steps.finished
    after = ended[(ended != UNKNOWN) & (ended >= since)]
    if len(after):
        return since, int(after.min())
    table = capture.requests
    times = (capture.lines.time, capture.samples.stop, table.finished, table.client_end, table.last_token)
    known = [int(column.max()) for column in times if len(column) and column.max() != UNKNOWN]
    return since, max(known, default=since)


def _position(capture: Capture, number: int) -> int | None:
    found = np.flatnonzero(np.array([rank.rank == number for rank in capture.ranks], dtype=np.bool_))
    return int(found[0]) if len(found) else None
