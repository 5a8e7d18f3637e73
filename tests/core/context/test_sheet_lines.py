"""Log lines of a sheet: words without names and numbers, the most telling ones of a stretch."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.context.sheet_lines import REPEATED, said_between, words
from teller_core.data.sheet_parts import PARTS
from teller_core.data.steps import Lines
from teller_core.data.table import UNKNOWN

NONE = np.empty(0, np.int64)


def lines(texts: list[str], levels: dict[int, str] | None = None, requests: dict[int, int] | None = None) -> Lines:
    """One line a microsecond."""
    count, zeros = len(texts), np.zeros(len(texts), np.int64)
    named = np.array([(requests or {}).get(at, -1) for at in range(count)], np.int32)
    return Lines(
        time=1000 * np.arange(count, dtype=np.int64),
        before=zeros,
        after=zeros,
        level=[(levels or {}).get(at, "INFO") for at in range(count)],
        rule=["known" if text.startswith("known") else "" for text in texts],
        fields=['{"ms": 7, "word": "x", "ok": true}' if text.startswith("known") else "" for text in texts],
        untrusted_text=texts,
        process=["p"] * count,
        file=np.zeros(count, np.int32),
        number=np.arange(count, dtype=np.int32),
        step=np.full(count, -1, np.int32),
        request=named,
    )


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Engine 000: Iteration(17): 2 context requests", "Engine #: Iteration(#): # context requests"),
        ("Received request cmpl-9f3a2b1c-0: prompt 12", "Received request *: prompt #"),
        ("550e8400-e29b-41d4-a716-446655440000 is gone", "* is gone"),
        ("at 0x7f3a took 1.5e-3 s, 1_000_000 bytes", "at * took # s, # bytes"),
        ("a decade of added facades", "a decade of added facades"),
        ("two\nlines\x1b[2J", "two lines [#J"),
    ],
)
def test_words_have_neither_names_nor_numbers(text: str, plain: str) -> None:
    assert words(text) == plain


def test_what_is_said_twice_is_said_no_more_than_twice_and_what_is_loud_or_known_comes_first() -> None:
    texts = [f"all well {at}" for at in range(30)] + [f"word {chr(97 + at)}" for at in range(20)] + ["known 1", "bad"]
    said = said_between(lines(texts, {51: "ERROR"}), 0, 10**6, NONE)
    assert len(said.line) == PARTS["said"] and (np.diff(said.line) > 0).all()
    assert said.untrusted_text.count("all well #") <= REPEATED
    assert {"known #", "bad"} <= set(said.untrusted_text)
    known = said.untrusted_text.index("known #")
    np.testing.assert_allclose(said.numbers[known], [np.log1p(7), np.nan, np.nan, np.nan])
    said.check()


def test_lines_of_others_and_of_other_times_are_left_out_and_its_own_are_kept_wherever_they_are() -> None:
    table = lines(["before", "others", "during", "mine, late"], requests={1: 5, 3: 4})
    said = said_between(table, 1000, 2000, np.array([3], np.int64))
    assert said.untrusted_text == ["during", "mine, late"] and said.own.tolist() == [0, 1]
    assert said.begin.tolist() == [1.0, 1.0]
    assert len(said_between(table, 10**7, 10**8, NONE).line) == 0


@pytest.mark.parametrize("untimed", [1, 9, 40])
def test_lines_without_a_time_hide_none_that_have_one_and_are_said_of_whom_they_name(untimed: int) -> None:
    table = lines(["timed"] * 8 + ["untimed"] * (untimed - 1) + ["mine"], requests={7 + untimed: 4})
    time = np.where(np.arange(8 + untimed) < 8, table.time, UNKNOWN)
    said = said_between(replace(table, time=time), 6000, 7000, np.array([7 + untimed], np.int64))
    assert said.line.tolist() == [6, 7, 7 + untimed]
    assert said.begin.tolist() == [0.0, 1.0, 1.0]


def test_numbers_of_a_line_that_no_rule_knows_are_those_in_its_words() -> None:
    said = said_between(lines(["took -3 of 1e30 and cmpl-9f3a2b1c in 2"]), 0, 1, NONE)
    np.testing.assert_allclose(said.numbers[0], [-np.log1p(3), np.log1p(2), np.nan, np.nan], rtol=1e-6)
