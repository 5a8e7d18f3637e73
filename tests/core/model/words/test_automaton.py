"""The automaton against an independent reading of the same grammar: all that may be said, written out."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from teller_core.model.words.automaton import after, allowed, begin, compiled, followed
from teller_core.model.words.grammar import END, Cited, Flag, Grammar, InOrder, OneOf, Part, Word
from teller_core.model.words.matter import Fact, Matter
from tests.core.model.words.making import item

WORDS, FLAGS, KINDS = 4, ("p", "q"), ("k", "l")
leaves = some.one_of(
    some.integers(1, WORDS).map(lambda number: Word(number, ())),
    some.just(Word(1, ("p",))),
    some.sampled_from(KINDS).map(Cited),
    some.builds(Flag, some.sampled_from(FLAGS), some.booleans()),
)
parts: some.SearchStrategy[Part] = some.recursive(
    leaves,
    lambda inner: some.one_of(
        some.lists(inner, max_size=3).map(lambda several: InOrder(tuple(several))),
        some.lists(inner, min_size=1, max_size=3).map(lambda several: OneOf(tuple(several))),
    ),
    max_leaves=7,
)
matters = some.builds(
    lambda flags, kinds: Matter(flags, tuple(Fact("host.gc_pause", item()) for _ in kinds), tuple(kinds)),
    some.frozensets(some.sampled_from(FLAGS)),
    some.lists(some.frozensets(some.sampled_from(KINDS)), max_size=3),
)


def written_out(part: Part, matter: Matter, said: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every way to go on after ``said`` by ``part``."""
    match part:
        case InOrder(several):
            if not several:
                yield said
            else:
                for begun in written_out(several[0], matter, said):
                    yield from written_out(InOrder(several[1:]), matter, begun)
        case OneOf(several):
            for each in several:
                yield from written_out(each, matter, said)
        case _:
            yield from ((*said, *more) for more in one_by_one(part, matter, said))


def one_by_one(leaf: Part, matter: Matter, said: tuple[int, ...]) -> list[tuple[int, ...]]:
    match leaf:
        case Word(number, slots):
            return [(number,)] if set(slots) <= matter.flags else []
        case Flag(name, wanted):
            return [()] if (name in matter.flags) == wanted else []
        case Cited(kind):
            cited = [WORDS + 1 + fact for fact, kinds in enumerate(matter.kinds) if kind in kinds]
            return [(action,) for action in cited if action not in said]
        case _:
            raise AssertionError(leaf)


@given(parts, matters)
def test_what_may_follow_is_what_follows_in_the_list_of_all_that_may_be_said(part: Part, matter: Matter) -> None:
    machine = compiled(Grammar(part, tuple(map(str, range(WORDS + 1))), (0,) * (WORDS + 1), ("answer",)))
    every = set(written_out(part, matter, ()))
    if not every:
        with pytest.raises(ValueError, match="nothing can be said"):
            begin(matter, machine)
        return
    for begun in {said[:length] for said in every for length in range(len(said) + 1)}:
        follows = {said[len(begun)] for said in every if said[: len(begun)] == begun and len(said) > len(begun)}
        follows |= {END} if begun in every else set()
        assert set(np.flatnonzero(allowed(followed(matter, begun, machine))).tolist()) == follows


def test_what_is_not_allowed_is_refused_and_after_the_end_nothing_is_allowed() -> None:
    machine = compiled(Grammar(Word(1, ()), ("", "a", "b"), (0, 0, 0), ("answer",)))
    matter = Matter(frozenset(), (), ())
    with pytest.raises(ValueError, match="does not allow"):
        followed(matter, [2], machine)
    with pytest.raises(ValueError, match="does not allow"):
        followed(matter, [END], machine)
    ended = followed(matter, [1, END], machine)
    assert not allowed(ended).any()
    with pytest.raises(ValueError, match="does not allow"):
        after(ended, 1)


def test_an_answer_that_the_grammar_knows_no_words_for_is_refused_at_once() -> None:
    matter = Matter(frozenset({"cause"}), (), ())
    with pytest.raises(ValueError, match="nothing can be said"):
        begin(matter)
    assert begin(replace(matter, flags=frozenset({"normal", "request", "asked", "rests"})))
