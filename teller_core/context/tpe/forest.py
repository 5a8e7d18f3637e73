"""The live tokens of Trace Pair Encoding and the pairs they make: numbers of pairs in a hash table, counts in a heap, compiled.

:mod:`pieces` finds and merges the pairs. Every array is made by the caller. A *slot* is where a token looks for a pair: slot
``2 t`` below token ``t``, ``2 t + 1`` after it.
"""

from typing import NamedTuple

import numpy as np

from teller_core.data.compiled import compiled, inlined
from teller_core.data.table import Int32, Int64, UInt8

ABSORB, EXTEND, JOIN = 0, 1, 2
NONE = -1
MOST_LABELS = 1 << 30
"""Labels are smaller, so that a kind and two of them fit into 62 bits."""
LABEL, FIRST, BEFORE, AFTER, ABOVE, HIGH, HEAD, TAIL = range(8)
"""Columns of ``Forest.node``. ABOVE is kept for first children alone; HEAD and TAIL: its list of run lengths."""
FREE, USED, KNOWN, HEAPED, FULL, RUNS = range(6)
"""Entries of ``Forest.mark``: the first free place (its chain, or NONE), how many places were ever used, how many pairs are
known, how many of them are in the heap, whether there was a pair too many, and whether runs are made."""


class Forest(NamedTuple):
    """The live tokens, one a row of the tree, and the pairs they make. What is used together lies together.

    ``node`` int32 [rows, 8], HIGH being NONE for a row inside a token; ``opened`` uint8: rows that merge with nothing; ``weight``
    int32: how often the row's tree occurs; ``slot`` int32 [2 rows]: the number of the pair that a slot holds; ``told`` int64 and
    ``link`` int32 [rows]: lists of run lengths, and what comes next in them; ``place`` int32 [n, 2]: places of
    pairs (slot, next place), enough for every time that a slot changes; ``mark`` int64.
    Pairs have numbers. ``key`` int64 and ``at`` int32: an open hash table of their keys and numbers, a power of two long;
    ``side`` uint8 a label: bit k: a pair of kind k has it on the left; bit k + 3: on the right; by number: ``known`` int64
    the key, ``times`` int64 how often it occurs, ``first`` int32 the first place. ``heap`` int32 [2, n] (number; by number: its
    place in the heap) and ``shown`` int64 (``times`` there). Where something is learned, ``side`` is empty; where nothing is,
    ``heap``, ``shown``, ``times`` and ``weight`` are.
    """

    node: Int32
    opened: UInt8
    weight: Int32
    slot: Int32
    told: Int64
    link: Int32
    place: Int32
    mark: Int64
    key: Int64
    at: Int32
    side: UInt8
    known: Int64
    times: Int64
    first: Int32
    heap: Int32
    shown: Int64


@inlined
def key_of(kind: int, left: np.int32, right: np.int32) -> int:
    """One number for a pair of labels."""
    return (kind << 60) | (int(left) << 30) | int(right)


@inlined
def _place_in(keys: Int64, key: int) -> int:
    """Where ``key`` is in an open hash table of a power of two places, NONE where it has none, or where it would be."""
    mask = len(keys) - 1
    mixed = (key >> 30) * 0x7F4A7C15 + (key & (MOST_LABELS - 1)) * 0x1E3779B9  # never above 63 bits
    place = (mixed ^ (mixed >> 32)) & mask
    while keys[place] != NONE and keys[place] != key:
        place = (place + 1) & mask
    return place


@inlined
def number_of(forest: Forest, key: int) -> int:
    """The number of ``key``, NONE where it has none. Where nothing is learned; most labels stand in few pairs, or in none."""
    kind, left, right = key >> 60, (key >> 30) & (MOST_LABELS - 1), key & (MOST_LABELS - 1)
    if (forest.side[left] >> kind) & (forest.side[right] >> (kind + 3)) & 1 == 0:
        return NONE
    return int(forest.at[_place_in(forest.key, key)])


@compiled
def know(forest: Forest, key: int) -> int:
    """The number of ``key``, a new one where it has none; NONE where there is no room for another."""
    at = _place_in(forest.key, key)
    if forest.at[at] != NONE:
        return int(forest.at[at])
    number = int(forest.mark[KNOWN])
    if number == len(forest.known):
        forest.mark[FULL] = 1
        return NONE
    forest.key[at] = key
    forest.at[at] = number
    forest.known[number] = key
    forest.mark[KNOWN] += 1
    return number


@inlined
def _ahead(forest: Forest, one: int, other: int) -> bool:
    """Whether pair ``one`` is to be merged before ``other``: it is more frequent or, of two as frequent, has the smaller key."""
    if forest.shown[one] != forest.shown[other]:
        return forest.shown[one] > forest.shown[other]
    return forest.known[one] < forest.known[other]


@compiled
def _rise(forest: Forest, at: int) -> None:
    heap, place = forest.heap[0], forest.heap[1]
    number = heap[at]
    while at > 0 and _ahead(forest, number, heap[(at - 1) >> 1]):
        heap[at] = heap[(at - 1) >> 1]
        place[heap[at]] = at
        at = (at - 1) >> 1
    heap[at] = number
    place[number] = at


@compiled
def _sink(forest: Forest, at: int) -> None:
    heap, place, size = forest.heap[0], forest.heap[1], forest.mark[HEAPED]
    number = heap[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _ahead(forest, heap[child + 1], heap[child]):
            child += 1
        if not _ahead(forest, heap[child], number):
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = number
    place[number] = at


@compiled
def raise_times(forest: Forest, number: int) -> None:
    """Let the heap know that a pair has become more frequent. That one has become rarer it finds out when it is on top."""
    if number >= forest.mark[HEAPED]:
        forest.heap[0, number] = number  # pairs enter in the order of their numbers
        forest.mark[HEAPED] = number + 1
        forest.shown[number] = forest.times[number]
        _rise(forest, number)
    elif forest.times[number] > forest.shown[number]:
        forest.shown[number] = forest.times[number]
        _rise(forest, forest.heap[1, number])


@compiled
def most_frequent(forest: Forest) -> int:
    """The number of the most frequent pair, of several the one with the smallest key; NONE where no pair is known."""
    while forest.mark[HEAPED]:
        number = forest.heap[0, 0]
        if forest.shown[number] == forest.times[number]:
            return number
        forest.shown[number] = forest.times[number]
        _sink(forest, 0)
    return NONE


@compiled
def _number_all(known: Int64, keys: Int64, at: Int32, side: UInt8) -> None:
    """Put the keys ``known`` with their numbers, 0 and up, into an empty hash table. Of equal ones the first counts."""
    for number in range(len(known)):
        key = known[number]
        place = _place_in(keys, key)
        if keys[place] == NONE:
            keys[place] = key
            at[place] = number
            side[(key >> 30) & (MOST_LABELS - 1)] |= 1 << (key >> 60)
            side[key & (MOST_LABELS - 1)] |= 8 << (key >> 60)


class Pairs(NamedTuple):
    """Pairs by their numbers, and an open hash table of them: ``known``, ``key``, ``at`` and ``side`` of :class:`Forest`."""

    known: Int64
    key: Int64
    at: Int32
    side: UInt8


def pairs_of(known: Int64, symbols: int) -> Pairs:
    """The pairs with these keys, int64, numbered from 0 in this order; ``symbols``: how many there are."""
    made = no_pairs(len(known))._replace(known=known, side=np.zeros(2 * symbols, dtype=np.uint8))
    _number_all(*made)
    return made


def no_pairs(room: int) -> Pairs:
    """Tables with room for so many pairs."""
    table = 1 << max(4, (room + room // 2).bit_length())
    key, at = np.full(table, NONE, dtype=np.int64), np.full(table, NONE, dtype=np.int32)
    return Pairs(np.empty(room, dtype=np.int64), key, at, np.empty(0, dtype=np.uint8))
