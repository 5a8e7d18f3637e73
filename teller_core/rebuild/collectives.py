"""The collectives of a capture: who met, who came last, how long the others waited for it, and what it did meanwhile.

A rank came last where it did so whatever the clocks may hide: its call began later than any other's by more than the bound
between the two clocks. A wait is told where some rank surely came later. Both need every rank that must meet to be there.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Collectives, Meetings, Rank
from teller_core.data.table import UNKNOWN, Int64
from teller_core.rebuild.clocks import Clocks
from teller_core.rebuild.collective_calls import Call, Key
from teller_core.rebuild.kept import Kept
from teller_core.rebuild.together import Together


class Waits(NamedTuple):
    """One row a meeting of a Together: ``wait`` int64 (meetings, ranks) ns, UNKNOWN where nothing tells; ``late`` int64 position
    in Capture.ranks, -1 where nobody may be named; ``by``, ``arrived``, ``transfer`` int64 ns, the second on the capture's clock.
    """

    wait: Int64
    late: Int64
    by: Int64
    since: Int64
    """When the last of the others arrived, on the late rank's own clock."""
    arrived: Int64
    transfer: Int64


def waits(group: Together, ranks: Sequence[Rank], clocks: Clocks) -> Waits:
    """Who waited for whom in the meetings of ``group``."""
    count, width = group.start.shape
    shift = np.array([ranks[i].shift for i in group.rank], dtype=np.int64)
    upper = np.array([[clocks.bound(a, b) for b in group.rank] for a in group.rank], dtype=np.int64)
    arrival = group.start + shift
    order = np.argsort(arrival, axis=1, kind="stable")
    row = np.arange(count, dtype=np.int64)
    last, before = order[:, -1], order[:, -2]
    arrived = arrival[row, last]
    whole = np.array([0 < key.size == width and key not in clocks.left_out for key in group.keys], dtype=np.bool_)
    whole &= group.synchronous & all(ranks[i].clock_error != UNKNOWN for i in group.rank)
    # start[j] - start[i] beyond what the shifts of the two may hide: j surely came later than i where it is positive.
    lead = np.full((count, width), np.iinfo(np.int64).min)
    for j in range(width):
        others = np.arange(width, dtype=np.int64) != j
        lead[:, others] = np.maximum(lead[:, others], group.start[:, [j]] - group.start[:, others] - upper[j, others])
    beyond = group.start[row, last][:, None] - group.start - upper[last]
    beyond[row, last] = 1
    named = whole & (beyond > 0).all(axis=1)
    waited = np.minimum(np.maximum(arrived[:, None] - arrival, 0), group.dur)
    wait = np.where(whole[:, None] & (lead > 0), waited, UNKNOWN)
    wait[row[named], last[named]] = 0
    by = np.where(named, arrived - arrival[row, before], UNKNOWN)
    transfer = np.where(whole, (group.dur - np.where(wait == UNKNOWN, 0, wait)).min(axis=1), UNKNOWN)
    late = np.where(named, np.array(group.rank, dtype=np.int64)[last], -1)
    return Waits(wait, late, by, arrival[row, before] - shift[last], arrived, transfer)


def collective_tables(
    calls: Sequence[Call], met: Sequence[Together], ranks: Sequence[Rank], clocks: Clocks
) -> tuple[Collectives, Meetings]:
    """Collectives by time, on the capture's clock, and the meetings among them: a collective's ``sequence`` is the position of
    its meeting. A call that met nobody known has a group of its own rank and a number of its own.
    """
    told = {key: (group, k) for group in met for k, key in enumerate(group.keys)}
    waited = {group.rank: waits(group, ranks, clocks) for group in met}
    keys = sorted(told)
    sequence = {key: n for n, key in enumerate(keys)}
    rows: list[tuple[int, ...]] = []
    groups: dict[str, int] = {}
    own: dict[tuple[Key, int], Call] = {}
    for k, call in enumerate(sorted(calls, key=lambda call: (call.start + ranks[call.rank].shift, call.rank))):
        wait, late, number, label = UNKNOWN, -1, len(keys) + k, f"{call.kind.name} of rank {call.rank} alone"
        if call.key is not None and call.key in told:
            group, at = told[call.key]
            about = waited[group.rank]
            wait, late = int(about.wait[at, group.rank.index(call.rank)]), int(about.late[at])
            number, label = sequence[call.key], call.key.group
            own[call.key, call.rank] = call
        start = call.start + ranks[call.rank].shift
        rows.append(
            (groups.setdefault(label, len(groups)), number, call.step, call.rank, call.row, start, call.dur, wait, late)
        )
    return _collectives(rows), _meetings(keys, told, waited, own, ranks)


def _collectives(rows: Sequence[tuple[int, ...]]) -> Collectives:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 9).T
    group, sequence, step, rank, row, start, dur, wait, late = columns
    small = [column.astype(np.int32) for column in (group, step, rank, row, late)]
    return Collectives(small[0], sequence, small[1], small[2], small[3], start, dur, wait, small[4])


def _meetings(
    keys: Sequence[Key],
    told: Mapping[Key, tuple[Together, int]],
    waited: Mapping[tuple[int, ...], Waits],
    own: Mapping[tuple[Key, int], Call],
    ranks: Sequence[Rank],
) -> Meetings:
    kept = Kept(ranks)
    rows: list[tuple[int, ...]] = []
    kinds: list[str] = []
    for key in keys:
        group, k = told[key]
        about = waited[group.rank]
        late, waits_known = int(about.late[k]), about.wait[k][about.wait[k] != UNKNOWN]
        call = own[key, late] if late >= 0 else own[key, group.rank[0]]
        row = kept.row(call, int(about.since[k])) if late >= 0 else -1
        root = _root([own[key, rank] for rank in group.rank], ranks)
        total = int(waits_known.sum()) if len(waits_known) else UNKNOWN
        rows.append(
            (
                len(group.rank),
                key.size,
                int(about.arrived[k]),
                late,
                int(about.by[k]),
                total,
                int(about.transfer[k]),
                row,
                root,
            )
        )
        kinds.append(call.kind.name)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 9).T
    came, size, arrived, late, by, waited_ns, transfer, row, root = columns
    small = [column.astype(np.int32) for column in (came, size, late, row, root)]
    return Meetings(
        [key.group for key in keys], kinds, [key.how for key in keys], small[0], small[1], arrived, small[2], by, waited_ns,
        transfer, small[3], small[4],
    )  # fmt: skip


def _root(calls: Sequence[Call], ranks: Sequence[Rank]) -> int:
    """The position of the rank from which all others of ``calls`` get, or to which all give; -1 where not all of them name one
    and the same, or it is not among them.
    """
    said = {(call.kind.name, call.said.ends) for call in calls}
    (_, ends), *others = said
    number = ends.source if ends.source >= 0 else ends.target
    found = [call.rank for call in calls if number >= 0 and ranks[call.rank].rank == number]
    return found[0] if len(found) == 1 and not others else -1
