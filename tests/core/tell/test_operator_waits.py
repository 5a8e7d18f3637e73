"""What a collective waited, and for whom."""

import numpy as np

from teller_core.data.calls import Calls, Edges
from teller_core.data.capture import Collectives
from teller_core.data.report_operators import LastRank, Waits
from teller_core.data.table import UNKNOWN
from teller_core.tell.operator_calls import RankCalls
from teller_core.tell.operator_waits import waits


def calls_on(rank: int, rows: list[int]) -> RankCalls:
    none = np.zeros(len(rows), dtype=np.int32)
    byte, nothing = none.astype(np.uint8), np.empty(0, dtype=np.int32)
    calls = Calls(none, np.array(rows, dtype=np.int32), none.astype(np.int64), none, byte, none, none, byte)
    return RankCalls(rank, ["c10d::allreduce_"], calls, Edges(nothing, nothing, nothing), (), lambda _: (0, 0))


def met(*calls: tuple[int, int, int, int]) -> Collectives:
    """Collectives of (rank, row, wait, late), each of 10 ms."""
    rank, row, wait, late = zip(*calls, strict=True)
    none = np.zeros(len(calls), dtype=np.int32)
    ns = np.full(len(calls), 10_000_000, dtype=np.int64)
    narrow = [np.array(column, dtype=np.int32) for column in (rank, row, late)]
    wide = np.array(wait, dtype=np.int64)
    return Collectives(none, none.astype(np.int64), none, narrow[0], narrow[1], ns, ns, wide, narrow[2])


def test_waits_are_those_of_the_operators_own_calls_and_say_who_came_last() -> None:
    ms = 1_000_000
    told = met(
        (0, 5, 6 * ms, 1), (0, 7, 2 * ms, 1), (1, 5, 0, 1), (1, 9, 4 * ms, 0), (0, 6, 9 * ms, 1), (0, 8, UNKNOWN, -1)
    )
    said = waits([calls_on(0, [5, 7, 8]), calls_on(1, [5, 9])], told)
    assert said == Waits(
        calls=5, known=4, took_ms=40.0, waited_ms=12.0, last=[LastRank(rank=1, calls=2), LastRank(rank=0, calls=1)]
    )


def test_what_no_clock_tells_is_null_and_an_operator_that_nobody_met_in_has_no_waits() -> None:
    told = met((0, 5, UNKNOWN, -1))
    assert waits([calls_on(0, [5])], told) == Waits(calls=1, known=0, took_ms=None, waited_ms=None, last=[])
    assert waits([calls_on(0, [4])], told) is None
    assert waits([], told) is None
