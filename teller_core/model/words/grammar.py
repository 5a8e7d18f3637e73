"""The grammar of claims as it is written in ``claims.txt``: its rules, and the words of the vocabulary in their order."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

TOKEN = re.compile(r'\s*(?:"([^"]*)"|<(!?)(\w+)>|@(\w+)|\*(\d+)|([|()?])|([a-z_]+)|(\S))')
SLOT = re.compile(r"\{(\w+)\}")
OF_FACT = frozenset({"normal"})
"""Slots that the fact said last fills."""
END = 0
"""The action that ends an answer: no word is said."""
START = "answer"


@dataclass(frozen=True)
class Word:
    """A word of the vocabulary, by its number."""

    number: int
    slots: tuple[str, ...]


@dataclass(frozen=True)
class Cited:
    """A fact of this kind."""

    kind: str


@dataclass(frozen=True)
class Flag:
    """Nothing is said; what follows holds only where the answer has, or has not, the flag."""

    name: str
    wanted: bool


@dataclass(frozen=True)
class InOrder:
    """One after the other; of nothing: nothing is said."""

    parts: "tuple[Part, ...]"


@dataclass(frozen=True)
class OneOf:
    """One of these."""

    parts: "tuple[Part, ...]"


Part = Word | Cited | Flag | InOrder | OneOf
NOTHING = InOrder(())


@dataclass(frozen=True)
class Grammar:
    """``start``: all that may be said. ``words``: the text of each, "" of END. ``places``: of each, the position in ``rules`` of
    the one in which it stands first.
    """

    start: Part
    words: tuple[str, ...]
    places: tuple[int, ...]
    rules: tuple[str, ...]


@cache
def grammar() -> Grammar:
    """The grammar of claims."""
    return parsed(files("teller_core.model.words").joinpath("claims.txt").read_text("utf-8"))


def words_hash() -> str:
    """Of the vocabulary, 16 hex digits: weights that were taught other words do not speak these."""
    return hashlib.sha256("\0".join(grammar().words).encode()).hexdigest()[:16]


def parsed(text: str, start: str = START) -> Grammar:
    """The grammar written in ``text``. Raises ValueError where it is none: a rule is missing, or leads back to itself."""
    rules = _rules(text)
    words = {"": END}
    places = [0]
    for place, body in enumerate(rules.values()):
        for said in (match[1] for match in TOKEN.finditer(body) if match[1] is not None):
            if said not in words:
                words[said] = len(words)
                places.append(place)
    return Grammar(_Reader(rules, words, (start,)).rule(start), tuple(words), tuple(places), tuple(rules))


def _rules(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    rules: dict[str, str] = {}
    for line in lines:
        if line[0] == " ":
            rules[list(rules)[-1]] += line
            continue
        name, found, body = line.partition(" = ")
        if not found or name in rules:
            raise ValueError(f"grammar: {name!r} is no rule, or it is there twice")
        rules[name] = body
    return rules


class _Reader:
    """Reads one rule from its tokens; a rule within it is read by another reader, which knows the way that led there."""

    def __init__(self, rules: Mapping[str, str], words: Mapping[str, int], way: tuple[str, ...]) -> None:
        self.rules, self.words, self.way = rules, words, way
        self.tokens: Sequence[re.Match[str]] = []
        self.at = 0

    def rule(self, name: str) -> Part:
        if name not in self.rules:
            raise ValueError(f"grammar: no rule is called {name!r}")
        self.tokens, self.at = list(TOKEN.finditer(self.rules[name].strip())), 0
        part = self._one_of()
        if self.at < len(self.tokens):
            raise ValueError(f"grammar: {name!r} has a sign too many: {self.tokens[self.at][0].strip()!r}")
        return part

    def _peek(self) -> str:
        return (self.tokens[self.at][6] or "") if self.at < len(self.tokens) else ")"

    def _one_of(self) -> Part:
        parts = [self._in_order()]
        while self.at < len(self.tokens) and self._peek() == "|":
            self.at += 1
            parts.append(self._in_order())
        return parts[0] if len(parts) == 1 else OneOf(tuple(parts))

    def _in_order(self) -> Part:
        parts: list[Part] = []
        while self.at < len(self.tokens) and self._peek() not in ("|", ")"):
            parts.append(self._times(self._single()))
        return parts[0] if len(parts) == 1 else InOrder(tuple(parts))

    def _times(self, part: Part) -> Part:
        if self.at == len(self.tokens):
            return part
        match = self.tokens[self.at]
        if self._peek() == "?":
            self.at += 1
            return OneOf((part, NOTHING))
        if match[5] is not None:
            self.at += 1
            repeated: Part = NOTHING
            for _ in range(int(match[5])):
                repeated = OneOf((InOrder((part, repeated)), NOTHING))
            return repeated
        return part

    def _single(self) -> Part:
        match = self.tokens[self.at]
        self.at += 1
        if match[1] is not None:
            return Word(self.words[match[1]], tuple(SLOT.findall(match[1])))
        if match[3] is not None:
            return Flag(match[3], not match[2])
        if match[4] is not None:
            return Cited(match[4])
        if match[7] is not None:
            if match[7] in self.way:
                raise ValueError(f"grammar: {match[7]!r} leads back to itself")
            return _Reader(self.rules, self.words, (*self.way, match[7])).rule(match[7])
        if match[6] != "(":
            raise ValueError(f"grammar: what is {match[0].strip()!r}?")
        part = self._one_of()
        if self.at == len(self.tokens) or self._peek() != ")":
            raise ValueError("grammar: a parenthesis is not closed")
        self.at += 1
        return part
