"""The cases, a folder each in ``tests/data/replay``: what ranks did (``case.txt``), and to whom each wait is charged
(``expect.txt``), worked out by hand.

A line ``side CAUSE, CAUSE`` begins what happened where it was that cause, or one of these: replay does not tell them apart.
Before it stands what all sides have in common, with ``...`` where each has lines of its own. A line ``rank`` begins a rank, and
what it does then is ``WHAT NAME US`` a line, and of a meeting with a root, called by its kind, the root's rank behind that.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path

from tests.core.judge.replay.machine import Do
from tests.core.judge.service import US

FOLDER = Path(__file__).parents[3] / "data" / "replay"
WORDS = ("gc", "profiler_stop", "stop_signal")
"""Kinds of pauses."""
HERE = "...\n"
"""Where lines of a side stand in what all have in common."""
Causes = tuple[str, ...]


@dataclass(frozen=True)
class Side:
    """What each rank does, and a line a wait: to whom it is charged."""

    programs: Sequence[Sequence[Do]]
    expected: Sequence[str]


@dataclass(frozen=True)
class Case:
    """A folder: its sides by their causes."""

    name: str
    sides: Mapping[Causes, Side]

    @property
    def apart(self) -> set[frozenset[str]]:
        """The pairs of causes that stand on sides of it in which waits are charged differently."""
        found: set[frozenset[str]] = set()
        for (one, here), (other, there) in combinations(self.sides.items(), 2):
            if here.expected != there.expected:
                found |= {frozenset((a, b)) for a in one for b in other}
        return found


@cache
def cases() -> list[Case]:
    """All of them, by name."""
    return [read(path) for path in sorted(FOLDER.iterdir())]


def read(folder: Path) -> Case:
    """Raises where the two files do not have the same sides, or something is done before the first one that is in none."""
    common, told = _sides((folder / "case.txt").read_text("utf-8"))
    _, expected = _sides((folder / "expect.txt").read_text("utf-8"))
    assert list(told) == list(expected), f"{folder.name}: sides differ"
    assert HERE in common or not _programs(common), f"{folder.name}: no side has what stands before the first one"
    whole = {causes: common.replace(HERE, own) if HERE in common else own for causes, own in told.items()}
    sides = {causes: Side(_programs(text), expected[causes].splitlines()) for causes, text in whole.items()}
    return Case(folder.name, sides)


def _sides(text: str) -> tuple[str, dict[Causes, str]]:
    """What stands before the first side, and the lines of each."""
    common, *parts = re.split(r"^side ", text, flags=re.MULTILINE)
    named = (part.partition("\n") for part in parts)
    return common, {tuple(causes.split(", ")): own for causes, _, own in named}


def _programs(text: str) -> list[list[Do]]:
    ranks: list[list[Do]] = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words == ["rank"]:
            ranks.append([])
        elif words:
            what, name, us, *root = words
            do = Do("pause" if what in WORDS else what, what if what in WORDS else name, int(us) * US)
            ranks[-1].append(replace(do, kind=name, root=int(root[0])) if root else do)
    return ranks
