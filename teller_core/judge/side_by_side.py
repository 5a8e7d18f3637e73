"""The ranks in the collectives of one request's steps: who waited, and for whom."""

import numpy as np

from teller_core.data.capture import no_absences
from teller_core.data.report import RankShare
from teller_core.data.shares import rank_shares, untold
from teller_core.data.table import UNKNOWN, take
from teller_core.judge.scene import Scene
from teller_core.judge.windows import keyed

MOST = 64
"""Ranks that an answer about one request lists: those that were waited for most."""


def side_by_side(view: Scene) -> tuple[list[RankShare] | None, str]:
    """(one row a rank, what they leave open), or (None, why nothing is told of the ranks). ``missing`` counts the collectives of
    the capture that began during the request, or before it and never ended.
    """
    capture = view.case.capture
    if not len(capture.collectives.rank) and not len(capture.absences.rank):
        return None, _why_none(view)
    rows = view.case.once("collectives", lambda case: keyed(case.capture.collectives.step.astype(np.int64)))
    table = take(capture.collectives, rows.of(np.unique(view.life.step).astype(np.int64)))
    absent = capture.absences
    if UNKNOWN not in (view.low, view.high):
        absent = take(absent, (absent.since == UNKNOWN) | (absent.since < view.high))
    elif len(absent.rank):
        absent = no_absences()
    if not len(table.rank) and not len(absent.rank):
        return None, _why_none(view)
    shares = rank_shares(capture.ranks, table, absent)
    if len(shares) < 2:
        return None, "one rank was recorded"
    note = untold(capture.ranks, table, capture.meetings)
    if len(shares) > MOST:
        note = "; ".join(filter(None, (note, f"{len(shares) - MOST} ranks that were waited for less are left out")))
    return shares[:MOST], note


def _why_none(view: Scene) -> str:
    ranks = [rank for rank in view.case.capture.ranks if rank.rank >= 0]
    if len({rank.rank for rank in ranks}) < 2:
        return "one rank was recorded" if ranks else "no rank was recorded"
    if not len(view.case.capture.collectives.rank):
        return "no collective was recorded with its times"
    return "no collective was recorded in its steps; the horizontal view shows those of other steps"
