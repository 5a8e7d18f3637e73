"""Texts and log lines in little memory are what was put in."""

import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.log_lines import LogLine, LogLines, as_json
from teller_core.data.process import Process
from teller_core.data.texts import BLOCK, KEPT, Texts

TEXT = st.text(st.characters(exclude_characters="\x1e"), max_size=40)
PROCESS = st.builds(Process, st.sampled_from(["", "a", "b"]), st.integers(0, 3))
TIME = st.integers(-(2**63), 2**63 - 1)
LINE = st.builds(
    LogLine,
    PROCESS,
    TIME,
    TIME,
    st.sampled_from(["", "INFO"]),
    st.sampled_from(["", "gc"]),
    st.dictionaries(st.sampled_from(["ms", "request"]), TEXT),
    TEXT,
    st.integers(0, 3),
    st.integers(1, 2**31 - 1),
)


@given(st.lists(TEXT, max_size=60), st.data())
def test_texts_are_what_was_put_in(texts: list[str], data: st.DataObject) -> None:
    many = [*texts, *(str(i) for i in range(BLOCK * (KEPT + 2))), *texts]
    kept = Texts(many)
    assert len(kept) == len(many)
    for _ in range(30):
        at = data.draw(st.integers(-len(many), len(many) - 1))
        assert kept[at] == many[at]
    assert list(kept) == many
    assert kept[3:9] == many[3:9]


@pytest.mark.parametrize("at", [BLOCK + 1, -BLOCK - 2])
def test_a_position_that_is_not_there_is_refused(at: int) -> None:
    with pytest.raises(IndexError):
        Texts("x" for _ in range(BLOCK + 1))[at]


def test_a_text_with_the_mark_between_texts_loses_it_and_no_other_does() -> None:
    kept = Texts(["a\x1eb", *("c" for _ in range(BLOCK))])
    assert kept[0] == "ab"
    assert set(kept[1:]) == {"c"}


def test_half_of_a_surrogate_pair_stays() -> None:
    assert Texts(["\ud800" for _ in range(BLOCK)])[7] == "\ud800"


def test_lines_that_are_alike_take_a_fraction_of_their_size() -> None:
    texts = Texts(f"Engine 000: Iteration({i}): 0 context requests, {i % 7} context tokens" for i in range(50 * BLOCK))
    assert len(pickle.dumps(texts)) < 50 * BLOCK * 8


@settings(max_examples=50)
@given(st.lists(LINE, max_size=30), st.lists(LINE, max_size=30))
def test_lines_are_what_was_put_in(first: list[LogLine], second: list[LogLine]) -> None:
    lines = LogLines(first)
    lines.extend(LogLines(second))
    assert list(lines) == first + second
    assert list(pickle.loads(pickle.dumps(lines))) == first + second
    assert lines.processes() == {line.process for line in first + second}


@given(st.lists(LINE, min_size=1, max_size=30))
def test_processes_are_put_right_for_all_lines_at_once(given_: list[LogLine]) -> None:
    lines = LogLines(given_)
    lines.rewrite(lambda process: process._replace(host="x"))
    assert list(lines) == [line._replace(process=line.process._replace(host="x")) for line in given_]


@given(st.lists(LINE, min_size=1, max_size=30))
def test_other_times_leave_the_lines_they_came_from(given_: list[LogLine]) -> None:
    lines = LogLines(given_)
    moved = lines.at(range(len(given_)))
    assert [line.time for line in moved] == list(range(len(given_)))
    assert list(lines) == given_
    assert all(before < after for before, after in pairwise(moved.time))


def test_fields_become_the_json_that_says_the_same() -> None:
    assert as_json({"a": 'b"\\\n', "c": "é"}) == '{"a":"b\\"\\\\\\n","c":"\\u00e9"}'
    assert as_json({}) == "{}"
