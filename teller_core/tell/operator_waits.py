"""How long the calls of a collective waited for the last rank, and for which one: time that is not theirs."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from teller_core.data.capture import Collectives
from teller_core.data.report_operators import LastRank, Waits
from teller_core.data.table import UNKNOWN
from teller_core.tell.operator_calls import RankCalls

LAST = 3
"""Ranks named that came last, those that did it most often first."""


def waits(ranks: Sequence[RankCalls], met: Collectives) -> Waits | None:
    """The waits in the calls on ``ranks``; None for an operator that is no collective, or one that nobody met in."""
    mine = [np.flatnonzero((met.rank == rank.rank) & np.isin(met.row, rank.calls.row)) for rank in ranks]
    calls = np.concatenate([*mine, np.empty(0, dtype=np.int64)])
    if not len(calls):
        return None
    known = calls[met.wait[calls] != UNKNOWN]
    waiting = known[(met.wait[known] > 0) & (met.late[known] >= 0)]
    late: list[int] = met.late[waiting].tolist()
    return Waits(
        calls=len(calls),
        known=len(known),
        took_ms=round(int(met.dur[known].sum()) / 1e6, 6) if len(known) else None,
        waited_ms=round(int(met.wait[known].sum()) / 1e6, 6) if len(known) else None,
        last=[LastRank(rank=rank, calls=count) for rank, count in Counter(late).most_common(LAST)],
    )
