"""The grammar of claims: how it is read, and what a wrong one is refused for."""

import re

import pytest

from teller_core.model.words.grammar import (
    END,
    NOTHING,
    Cited,
    Flag,
    InOrder,
    OneOf,
    Word,
    grammar,
    parsed,
    words_hash,
)

MOST_WORDS = 400


def test_the_vocabulary_is_small_closed_and_has_no_text_of_its_own_but_words() -> None:
    words = grammar().words
    assert len(words) == len(set(words)) <= MOST_WORDS
    assert words[END] == ""
    for word in words:
        assert not re.search(r"[\d`]", re.sub(r"`?\{\w+\}`?", "", word)), word


def test_the_hash_is_that_of_the_words_in_their_order() -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", words_hash())
    assert words_hash() == words_hash()


def test_alternatives_groups_options_repetitions_and_flags_are_read_as_they_are_written() -> None:
    read = parsed('answer = "a" (@k | <!no> "b {x} c")? end*2\n\nend = "a"\n').start
    a, b = Word(1, ()), Word(2, ("x",))
    twice = OneOf((InOrder((a, OneOf((InOrder((a, NOTHING)), NOTHING)))), NOTHING))
    assert read == InOrder((a, OneOf((OneOf((Cited("k"), InOrder((Flag("no", False), b)))), NOTHING)), twice))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('answer = other\n\nother = "x" answer\n', "leads back"),
        ("answer = other\n", "no rule is called"),
        ('answer = ("a" | "b"\n', "not closed"),
        ('answer = "a" )\n', "too many"),
        ('answer = "a" %\n', "what is"),
        ('answer = "a"\nanswer = "b"\n', "twice"),
    ],
    ids=["a circle", "a name that is none", "an open group", "a sign too many", "a foreign sign", "a rule twice"],
)
def test_what_is_no_grammar_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parsed(text)
