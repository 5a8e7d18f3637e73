"""Lists of rank numbers as short text: ``0-3,5``."""

from collections.abc import Iterable

DIGITS = 6
"""Of a rank. What was stored may be damaged."""


def spelled(ranks: Iterable[int]) -> str:
    """``ranks`` in order, runs of them as ``first-last``."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in runs)


def ranks_of(text: str) -> frozenset[int]:
    """The ranks that :func:`spelled` wrote; parts that it did not write are left out."""
    ranks: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        high = high or low
        if low.isdecimal() and high.isdecimal() and len(high) <= DIGITS:
            ranks.update(range(int(low), int(high) + 1))
    return frozenset(ranks)
