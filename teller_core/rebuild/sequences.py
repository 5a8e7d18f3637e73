"""Two recordings of one thing, matched item by item by their order."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.table import Int32, Int64

MOST_EDITS = 1_000
"""Items more on one side than on the other beyond which two sequences are not taken for recordings of one thing."""
MOST_OFFSETS = 64
"""Places in a longer sequence at which a shorter one is tried."""


def aligned(one: Int32, other: Int32) -> Int64:
    """int64 an item of ``one``: the position in ``other`` of the item that it is, -1 for none; positions rise.

    As few items as possible stay alone (Myers 1986, "An O(ND) difference algorithm"). All are -1 where over MOST_EDITS
    would have to.
    """
    found = np.full(len(one), -1, dtype=np.int64)
    head = _shared(one, other)
    tail = _shared(one[head:][::-1], other[head:][::-1])
    found[:head] = np.arange(head)
    if tail:
        found[len(one) - tail :] = np.arange(len(other) - tail, len(other))
    inner = _edited(one[head : len(one) - tail].tolist(), other[head : len(other) - tail].tolist())
    if inner is None:
        return np.full(len(one), -1, dtype=np.int64)
    for low, high, length in inner:
        found[head + low : head + low + length] = np.arange(head + high, head + high + length)
    return found


def offsets(short: Int32, long: Int32) -> list[int]:
    """Positions in ``long`` at which all of ``short`` stands, at most MOST_OFFSETS."""
    text, sought = long.astype("<i4").tobytes(), short.astype("<i4").tobytes()
    places: list[int] = []
    at = text.find(sought) if sought else -1
    while at >= 0 and len(places) < MOST_OFFSETS:
        if at % 4 == 0:
            places.append(at // 4)
        at = text.find(sought, at + 1)
    return places


def _shared(one: Int32, other: Int32) -> int:
    """How many items are equal from the beginning on."""
    size = min(len(one), len(other))
    differ = np.flatnonzero(one[:size] != other[:size])
    return int(differ[0]) if len(differ) else size


def _edited(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Runs (position, position in ``other``, length) of the longest common subsequence; None over MOST_EDITS."""
    if not one or not other:
        return [] if max(len(one), len(other)) <= MOST_EDITS else None
    if abs(len(one) - len(other)) > MOST_EDITS:
        return None
    reached: dict[int, int] = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(MOST_EDITS + 1):
        history.append(dict(reached))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
            x = reached[k + 1] if down else reached[k - 1] + 1
            y = x - k
            while x < len(one) and y < len(other) and one[x] == other[y]:
                x, y = x + 1, y + 1
            reached[k] = x
            if x >= len(one) and y >= len(other):
                return _traced(history, len(one), len(other))
    return None


def _traced(history: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int, int]]:
    """The runs of equal items on the way that ``history`` leads back, in order."""
    runs: list[tuple[int, int, int]] = []
    for edits in range(len(history) - 1, -1, -1):
        reached, k = history[edits], x - y
        down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
        before = k + 1 if down else k - 1
        from_x = reached[before]
        from_y = from_x - before
        begin_x = from_x if down else from_x + 1
        if edits == 0:
            begin_x = 0
        length = x - begin_x
        if length > 0:
            runs.append((begin_x, begin_x - k, length))
        x, y = from_x, from_y
    return runs[::-1]
