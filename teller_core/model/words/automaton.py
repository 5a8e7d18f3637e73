"""What may be said next: the grammar as an automaton over actions, of which each begun answer can be brought to its end.

An action is a word (its number in the vocabulary, END for the end) or the citation of a fact: the length of the vocabulary plus
the fact's position. Construction by K. Thompson, Regular expression search algorithm, CACM 11 (1968); the grammar has no rule
that leads back to itself, so the automaton has no circle and every answer ends.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from teller_core.data.table import Mask
from teller_core.model.words.grammar import END, OF_FACT, Cited, Flag, Grammar, InOrder, OneOf, Part, Word, grammar
from teller_core.model.words.matter import Matter


@dataclass(frozen=True)
class Automaton:
    """By node: ``words``, ``facts``: where a word, or a fact of a kind, leads; ``free``: where a flag, or nothing, leads."""

    size: int
    words: Sequence[Mapping[int, Sequence[int]]]
    facts: Sequence[Mapping[str, Sequence[int]]]
    free: Sequence[Sequence[tuple[str, bool, int]]]
    start: int
    end: int


@dataclass(frozen=True)
class Prefix:
    """An answer as far as it is said: where in the automaton it may be, and which facts it cited."""

    machine: Automaton
    matter: Matter
    nodes: frozenset[int]
    used: frozenset[int] = frozenset()
    known: dict[tuple[int, frozenset[int]], bool] = field(default_factory=dict[tuple[int, frozenset[int]], bool])


@cache
def automaton() -> Automaton:
    """Of the grammar of claims."""
    return compiled(grammar())


def compiled(rules: Grammar) -> Automaton:
    """The automaton of ``rules``."""
    maker = _Maker()
    start = maker.node()
    end = maker.build(rules.start, start)
    return Automaton(len(rules.words), maker.words, maker.facts, maker.free, start, end)


class _Maker:
    """Nodes as they are made."""

    def __init__(self) -> None:
        self.words: list[dict[int, list[int]]] = []
        self.facts: list[dict[str, list[int]]] = []
        self.free: list[list[tuple[str, bool, int]]] = []

    def node(self) -> int:
        self.words.append({})
        self.facts.append({})
        self.free.append([])
        return len(self.words) - 1

    def build(self, part: Part, here: int) -> int:
        """The node in which one is after ``part``, from ``here``."""
        match part:
            case Word(number, slots):
                return self._word(number, slots, here)
            case Cited(kind):
                there = self.node()
                self.facts[here].setdefault(kind, []).append(there)
            case Flag(name, wanted):
                there = self._free(here, name, wanted)
            case InOrder(parts):
                there = here
                for each in parts:
                    there = self.build(each, there)
            case OneOf(parts):
                there = self.node()
                for each in parts:
                    last = self.build(each, self._free(here))
                    self.free[last].append(("", True, there))
        return there

    def _word(self, number: int, slots: Sequence[str], here: int) -> int:
        for slot in slots:
            if slot not in OF_FACT:
                here = self._free(here, slot)
        there = self.node()
        self.words[here].setdefault(number, []).append(there)
        return there

    def _free(self, here: int, name: str = "", wanted: bool = True) -> int:
        there = self.node()
        self.free[here].append((name, wanted, there))
        return there


def begin(matter: Matter, machine: Automaton | None = None) -> Prefix:
    """Nothing is said yet of ``matter``. Raises ValueError where nothing can be said of it."""
    machine = machine or automaton()
    first = Prefix(machine, matter, frozenset())
    nodes = frozenset(each for each in _closure(first, [machine.start]) if _ends(first, each, first.used))
    if not nodes:
        raise ValueError("nothing can be said of this answer by the grammar of claims")
    return Prefix(machine, matter, nodes, first.used, first.known)


def allowed(prefix: Prefix) -> Mask:
    """bool [size of the vocabulary + facts]: the actions after which the answer can still be brought to its end."""
    machine = prefix.machine
    mask = np.zeros(machine.size + len(prefix.matter.facts), np.bool_)
    mask[END] = machine.end in prefix.nodes
    for action, used, target in _moves(prefix, prefix.nodes, prefix.used):
        if not mask[action] and _ends(prefix, target, used):
            mask[action] = True
    return mask


def after(prefix: Prefix, action: int) -> Prefix:
    """``prefix`` and ``action``; of END nothing more may be said. Raises ValueError for one that is not allowed."""
    if action == END and prefix.machine.end in prefix.nodes:
        return Prefix(prefix.machine, prefix.matter, frozenset(), prefix.used, prefix.known)
    led = [(used, target) for one, used, target in _moves(prefix, prefix.nodes, prefix.used) if one == action]
    nodes = {
        each for used, target in led for each in _closure(prefix, [target]) if _ends(prefix, each, used)
    }  # the same facts are cited on each way: an action cites one or none
    if not nodes:
        raise ValueError("the grammar of claims does not allow this here")
    return Prefix(prefix.machine, prefix.matter, frozenset(nodes), led[0][0], prefix.known)


def followed(matter: Matter, actions: Iterable[int], machine: Automaton | None = None) -> Prefix:
    """:func:`begin` and then :func:`after` each of ``actions``."""
    prefix = begin(matter, machine)
    for action in actions:
        prefix = after(prefix, int(action))
    return prefix


def _moves(prefix: Prefix, nodes: Iterable[int], used: frozenset[int]) -> Iterator[tuple[int, frozenset[int], int]]:
    """Each action from ``nodes``, the facts cited after it, and where it leads."""
    machine = prefix.machine
    for node in nodes:
        for word, targets in machine.words[node].items():
            for target in targets:
                yield word, used, target
        for kind, targets in machine.facts[node].items():
            for fact, kinds in enumerate(prefix.matter.kinds):
                if kind in kinds and fact not in used:
                    for target in targets:
                        yield machine.size + fact, used | {fact}, target


def _closure(prefix: Prefix, nodes: Iterable[int]) -> set[int]:
    """``nodes`` and where one gets from them by saying nothing."""
    flags = prefix.matter.flags
    found, waiting = set[int](), list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [to for name, wanted, to in prefix.machine.free[node] if not name or (name in flags) == wanted]
    return found


def _ends(prefix: Prefix, node: int, used: frozenset[int]) -> bool:
    """Whether from ``node`` an answer can be brought to its end without the facts in ``used``."""
    key = (node, used)
    if key not in prefix.known:
        reached = _closure(prefix, [node])
        prefix.known[key] = prefix.machine.end in reached or any(
            _ends(prefix, target, then) for _, then, target in _moves(prefix, reached, used)
        )
    return prefix.known[key]
