"""Blind choices: two texts about the same answer side by side, without the names of what wrote them; choices stand in a file."""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teller_core.errors import InputError

CHOICES = {"1": 0, "2": 1, "=": None}
"""The first, the second, neither."""


@dataclass(frozen=True)
class Pair:
    """``key`` names what the two texts are about; ``texts``: by the method that wrote them."""

    key: str
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Tally:
    """``won``: how often each method was chosen; ``even``: how often neither; ``chance``: how likely so uneven a result is if
    nobody could tell them apart: the two-sided sign test.
    """

    won: Mapping[str, int]
    even: int
    chance: float


def pairs(one: tuple[str, Mapping[str, str]], other: tuple[str, Mapping[str, str]]) -> Iterator[Pair]:
    """A pair for every key of which both methods, given as a name and its texts by key, wrote something and not the same."""
    (left, first), (right, second) = one, other
    for key in sorted(first.keys() & second.keys()):
        if first[key] != second[key]:
            yield Pair(key, {left: first[key], right: second[key]})


def shown(pair: Pair, seed: int) -> tuple[str, str]:
    """The two methods in the order in which their texts are shown: no one can tell it from the key, and it is always the same."""
    one, other = sorted(pair.texts)
    turned = hashlib.sha256(f"{seed}\0{pair.key}".encode()).digest()[0] & 1
    return (other, one) if turned else (one, other)


def chosen(file: Path, pair: Pair, seed: int, choice: str) -> None:
    """Adds to ``file`` what somebody chose: ``1``, ``2`` or ``=``. Raises KeyError for another choice."""
    order, place = shown(pair, seed), CHOICES[choice]
    line = {"key": pair.key, "shown": order, "chosen": "" if place is None else order[place]}
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def left(every: Iterable[Pair], file: Path) -> list[Pair]:
    """The pairs of which nothing is chosen yet."""
    done = {line["key"] for line in _lines(file)}
    return [pair for pair in every if pair.key not in done]


def tally(file: Path) -> Tally:
    """What was chosen so far."""
    won: dict[str, int] = {}
    even = 0
    for line in _lines(file):
        for method in line["shown"]:
            won.setdefault(method, 0)
        if line["chosen"]:
            won[line["chosen"]] += 1
        else:
            even += 1
    return Tally(won, even, _chance(list(won.values())))


def _chance(counts: list[int]) -> float:
    tries, most = sum(counts), max(counts, default=0)
    tail = sum(math.comb(tries, many) for many in range(most, tries + 1)) / 2**tries
    return min(1.0, 2 * tail)


def _lines(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    try:
        return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
    except ValueError as why:
        raise InputError(
            "The file of choices", "a line of it is no JSON", "Remove what was cut off at its end"
        ) from why
