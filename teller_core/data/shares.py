"""What each rank had in the collectives of a capture, or of some of its steps: waiting, being waited for, staying away."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.capture import Absences, Collectives, Meetings, Rank
from teller_core.data.report import RankShare
from teller_core.data.table import UNKNOWN, Int64


def rank_shares(ranks: Sequence[Rank], table: Collectives, absences: Absences) -> list[RankShare]:
    """One row a process with collectives or with a number, those that others waited for most first.

    ``table`` may be some rows of the capture's. Ranks that are missing and otherwise unheard of stand without a position.
    """
    known = table.wait != UNKNOWN
    told = known | (table.late >= 0)
    named = known & (table.late >= 0) & (table.late != table.rank)
    size = max(len(ranks), int(max(table.rank.max(), table.late.max())) + 1 if len(table.rank) else 0)
    count = np.bincount(table.rank, minlength=size)
    tells = np.bincount(table.rank[told], minlength=size)
    waited = _sums(table.rank[known], table.wait[known], size)
    waited_for = _sums(table.late[named], table.wait[named], size)
    transfer = _sums(table.rank[known], table.dur[known] - table.wait[known], size)
    late = np.bincount(table.rank[table.late == table.rank], minlength=size)
    missing = dict(zip(*(column.tolist() for column in np.unique(absences.rank, return_counts=True)), strict=True))
    # One row a recording of a rank with collectives; one for a rank without any.
    first = {rank.rank: at for at, rank in reversed(list(enumerate(ranks)))}
    first |= {ranks[at].rank: at for at in np.flatnonzero(count[: len(ranks)]).tolist()}
    shares = [
        RankShare(
            rank=rank.rank,
            position=at if rank.file >= 0 else None,
            host=rank.host,
            collectives=int(count[at]),
            waited_ms=_ms(waited[at]) if tells[at] else None,
            waited_for_ms=_ms(waited_for[at]) if tells[at] else None,
            times_late=int(late[at]) if tells[at] else None,
            transfer_ms=_ms(transfer[at]) if tells[at] else None,
            missing=missing.get(rank.rank, 0),
            clock_error_us=None if rank.clock_error == UNKNOWN else rank.clock_error / 1e3,
        )
        for at, rank in enumerate(ranks)
        if count[at] or (rank.rank >= 0 and at == first[rank.rank])
    ]
    shares += [_absent(number, times) for number, times in missing.items() if number not in {s.rank for s in shares}]
    return sorted(shares, key=lambda s: (-(s.waited_for_ms or 0), -s.missing, -(s.times_late or 0), s.rank))


def untold(ranks: Sequence[Rank], table: Collectives, meetings: Meetings) -> str:
    """Why it is not told of each collective in ``table`` who came last to it; empty where it is."""
    if len(np.unique(table.rank)) < 2:
        return (
            "collectives of one rank alone were recorded"
            if len(table.rank)
            else "no collective was recorded with its times"
        )
    met = np.unique(table.sequence[table.sequence < len(meetings.kind)])
    open_ = met[meetings.late[met] < 0]
    if not len(open_):
        return "" if len(met) else "which calls of the ranks were one collective could not be told"
    came, size = meetings.came[open_], meetings.size[open_]
    seen: list[int] = np.unique(table.rank).tolist()
    unbounded = any(at < len(ranks) and ranks[at].clock_error == UNKNOWN for at in seen)
    below = f"in {len(open_)} of {len(met)} collectives nobody came later than the bound of the clocks allows to tell"
    reasons = (
        (bool((size == 0).all()), "how many ranks must meet is not known"),
        (bool((came < size).all()), f"not all ranks were recorded: at most {came.max()} of {size.max()}"),
        (unbounded, "nothing bounds how far the clocks of the ranks are apart"),
    )
    return next((why for holds, why in reasons if holds), below)


def _sums(at: "np.ndarray[tuple[int], np.dtype[np.int32]]", values: Int64, length: int) -> Int64:
    total = np.zeros(length, dtype=np.int64)
    np.add.at(total, at, values)
    return total


def _ms(ns: np.int64) -> float:
    return int(ns) / 1e6


def _absent(number: int, times: int) -> RankShare:
    return RankShare(
        rank=number,
        position=None,
        host="",
        collectives=0,
        waited_ms=None,
        waited_for_ms=None,
        times_late=None,
        transfer_ms=None,
        missing=times,
        clock_error_us=None,
    )
