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
    """By node: ``words``, ``facts`` to where a word or a fact of a kind leads, ``free`` to where nothing leads that has the flag."""

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
    words: list[dict[int, list[int]]] = []
    facts: list[dict[str, list[int]]] = []
    free: list[list[tuple[str, bool, int]]] = []

    def node() -> int:
        words.append({})
        facts.append({})
        free.append([])
        return len(words) - 1

    def build(part: Part, here: int) -> int:
        match part:
            case Word(number, slots):
                for slot in slots:
                    if slot not in OF_FACT:
                        here = build(Flag(slot, True), here)
                words[here].setdefault(number, []).append(there := node())
            case Cited(kind):
                facts[here].setdefault(kind, []).append(there := node())
            case Flag(name, wanted):
                free[here].append((name, wanted, there := node()))
            case InOrder(parts):
                there = here
                for each in parts:
                    there = build(each, there)
            case OneOf(parts):
                there = node()
                for each in parts:
                    first = node()
                    free[here].append(("", True, first))
                    free[build(each, first)].append(("", True, there))
        return there

    start = node()
    end = build(rules.start, start)
    return Automaton(len(rules.words), words, facts, free, start, end)


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
