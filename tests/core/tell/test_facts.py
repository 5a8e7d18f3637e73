"""Facts on one line: one thing is not said as several are."""

import re
from pathlib import Path

import pytest

import teller_core
from teller_core.tell.facts import amount
from teller_core.tell.layout import many, singular

ONE = {
    "adapters": "adapter",
    "calls": "call",
    "collectives": "collective",
    "errors": "error",
    "gaps": "gap",
    "groups": "group",
    "kernels": "kernel",
    "launches": "launch",
    "lines": "line",
    "ranks": "rank",
    "requests": "request",
    "spans": "span",
    "steps": "step",
    "times": "time",
    "tokens": "token",
}
UNCOUNTED = {"%", "% of them", "(Xid)", "C", "MB", "a ms", "a s", "ms", "us"}


def test_every_unit_that_is_written_down_has_its_word_for_one() -> None:
    sources = Path(teller_core.__path__[0]).rglob("*.py")
    units = {
        unit for path in sources for unit in re.findall(r"""unit(?:: str)? ?= ?"([^"]+)\"""", path.read_text("utf-8"))
    }
    assert units == {*ONE, *UNCOUNTED}
    assert {unit: singular(unit) for unit in units} == {**ONE, **{unit: unit for unit in UNCOUNTED}}


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (1, "launches", "1 launch"),
        (1, "requests", "1 request"),
        (1.00000001, "steps", "1 step"),
        (1.5, "steps", "1.5 steps"),
        (0, "launches", "0 launches"),
        (1, "a ms", "1 a ms"),
        (1, "ms", "1 ms"),
        (1234.5, None, "1,234.5"),
    ],
)
def test_an_amount_of_one_is_said_in_the_singular(value: float, unit: str | None, said: str) -> None:
    assert amount(value, unit) == said


@pytest.mark.parametrize(("things", "thing"), ONE.items())
def test_many_and_one_of_a_thing_are_each_other_backwards(things: str, thing: str) -> None:
    assert (many(1, thing), many(2, thing)) == (f"1 {thing}", f"2 {things}")


def test_some_words_hiss() -> None:
    assert [many(2, one) for one in ("process", "batch", "phase")] == ["2 processes", "2 batches", "2 phases"]
    assert [singular(one) for one in ("processes", "batches", "phases")] == ["process", "batch", "phase"]
