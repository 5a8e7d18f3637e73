"""Which sheets are read together: alike in length, in an order that the seed and the number of the pass decide alone."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from teller_core.data.table import Int64

WINDOW = 32
"""Batches' worth of sheets, drawn by chance, within which those of like length come together."""


def ordered(length: Int64, tokens: int, seed: int, number: int) -> list[Int64]:
    """Batches of positions of sheets, of at most ``tokens`` positions each, padding counted: pass ``number`` over all of them."""
    random = np.random.default_rng([seed, number])
    order = random.permutation(len(length))
    many = max(1, int(WINDOW * tokens / max(float(length.mean()), 1.0))) if len(length) else 1
    found: list[Int64] = []
    for low in range(0, len(order), many):
        some = order[low : low + many]
        found += packed(some[np.argsort(length[some], kind="stable")], length, tokens)
    return [found[at] for at in random.permutation(len(found))]


def packed(order: Int64, length: Int64, tokens: int) -> list[Int64]:
    """``order``, which ascends in length, cut into batches of at most ``tokens`` positions; of one sheet where it has more."""
    found: list[Int64] = []
    low = 0
    for at, each in enumerate(length[order].tolist()):
        if at > low and (at + 1 - low) * each > tokens:
            found.append(order[low:at])
            low = at
    return [*found, order[low:]] if low < len(order) else found


def by_length(length: Int64, tokens: int) -> list[Int64]:
    """All sheets in batches, the shortest first."""
    return packed(np.argsort(length, kind="stable"), length, tokens)


def held_out(names: Sequence[str], kinds: Sequence[str], share: float, seed: int) -> list[bool]:
    """Which of the lives called so are kept from training: one of each kind in turn, but never the only one, and of a kind by
    hash, so that one more life moves few others. One without a kind is not what happened anywhere: it is kept where no other is.
    """
    real = [at for at, kind in enumerate(kinds) if kind] or list(range(len(names)))
    order = sorted(real, key=lambda at: sha256(f"{seed} {names[at]}".encode()).digest())
    turn: Counter[str] = Counter()
    places: list[tuple[int, int, int]] = []
    for place, at in enumerate(order):
        places.append((turn[kinds[at]], place, at))
        turn[kinds[at]] += 1
    may = [at for number, _, at in sorted(places) if number + 1 < turn[kinds[at]]]
    chosen = set((may or order)[: max(1, round(share * len(real)))])
    return [at in chosen for at in range(len(names))]
