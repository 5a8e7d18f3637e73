"""Where everything of a batch of sheets stands in its sequences: numbers, clues, the ragged parts, the verdict, words."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from teller_core.data.causes import causes
from teller_core.data.sheets import GROUPS, cause_ids
from teller_core.data.table import Int64
from teller_core.model.inputs import NAMES, Inputs, owners

GROUP_OF = np.repeat(np.arange(len(GROUPS)), [len(names) for names in GROUPS.values()])
"""int64: the group of each number."""
LAYER_NAMES = tuple(dict.fromkeys(one.layer for one in causes().values()))
LAYER_OF = np.array([LAYER_NAMES.index(causes()[key].layer) for key in cause_ids()], dtype=np.int64)
"""int64: the layer of each cause: what rules say of causes of one layer stands in one place."""
PLACES = len(GROUPS) + len(LAYER_NAMES)


@dataclass(frozen=True)
class Batch:
    """``inputs`` in sequences of ``length`` positions, one behind the other: position t of sheet i is ``i * length + t``.

    ``places`` int64: of the known groups and layers, ``place`` int64 which of ``n * PLACES`` each is. ``items``: by part, the
    position of each of its items. ``verdict`` int64 [n]. ``words`` int64: of each word but the last of what is to be said, and
    ``given`` int64: the word; ``said_at`` int64: positions after which ``said`` int64 is the right word.
    """

    inputs: Inputs
    length: int
    places: Int64
    place: Int64
    items: dict[str, Int64]
    verdict: Int64
    words: Int64
    given: Int64
    said_at: Int64
    said: Int64


def known_places(inputs: Inputs) -> npt.NDArray[np.bool_]:
    """bool [n, PLACES]: some number of the group, or some clue of the layer, is known."""
    numbers = np.add.reduceat(~np.isnan(inputs.numbers), np.searchsorted(GROUP_OF, range(len(GROUPS))), axis=1) > 0
    some: npt.NDArray[np.bool_] = np.logical_not(np.isnan(inputs.clues).all(axis=2))
    clues = np.stack([some[:, layer == LAYER_OF].any(axis=1) for layer in range(len(LAYER_NAMES))], axis=1)
    return np.concatenate([numbers, clues], axis=1)


def lengths(inputs: Inputs) -> Int64:
    """int64: positions of each sheet, words and verdict included."""
    total = known_places(inputs).sum(axis=1) + 1 + np.maximum(np.diff(inputs.wanted.offsets) - 1, 0)
    return total + sum(np.diff(part.offsets) for part in inputs.parts.values())


def laid(inputs: Inputs) -> Batch:
    """Positions of all that ``inputs`` holds."""
    known = known_places(inputs)
    count, length = len(inputs), int(lengths(inputs).max(initial=1))
    first = np.arange(count) * length
    sheet, place = np.nonzero(known)
    places = first[sheet] + (np.cumsum(known, axis=1) - 1)[sheet, place]
    begin = first + known.sum(axis=1)
    items: dict[str, Int64] = {}
    for name in NAMES:
        part = inputs.parts[name]
        own = owners(part)
        items[name] = begin[own] + np.arange(len(part)) - part.offsets[own]
        begin = begin + np.diff(part.offsets)
    words, given, said_at, said = _words(inputs, begin)
    return Batch(inputs, length, places, sheet * PLACES + place, items, begin, words, given, said_at, said)


def _words(inputs: Inputs, verdict: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """The verdict's position is followed by the first word: what stands there, or at a word, should tell the next one."""
    offsets = inputs.wanted.offsets
    owner = np.repeat(np.arange(len(verdict)), np.diff(offsets))
    number = np.arange(len(owner)) - offsets[owner]
    said = inputs.wanted.words.astype(np.int64)
    at = verdict[owner] + number
    again = number > 0
    return at[again], said[np.flatnonzero(again) - 1], at, said


def without_words(inputs: Inputs, keep: npt.NDArray[np.bool_]) -> Inputs:
    """``inputs`` where only the sheets that ``keep`` marks have something to say."""
    old = inputs.wanted
    count = np.where(keep, np.diff(old.offsets), 0)
    owner = np.repeat(keep, np.diff(old.offsets))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count)])
    return replace(inputs, wanted=replace(old, offsets=offsets, words=old.words[owner]))
