"""Every name that is counted has words, and the words reach the answers that the loss could change."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from teller_core.data import losses
from teller_core.ingest.found import Place
from teller_core.ingest.reading import format_of

ROOT = Path(__file__).parents[3]
DATA = Path(__file__).parents[2] / "data"
SOURCES = [path for room in ("ingest", "rebuild") for path in (ROOT / "teller_core" / room).rglob("*.py")]
NAME = re.compile(r"[a-z]+(?:_[a-z0-9]+)+")


def counted(path: Path) -> Iterator[str]:
    """The literal names under which a module counts problems: keys, and names in the tuples that hold them."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Subscript):
            owner = getattr(node.value, "attr", getattr(node.value, "id", ""))
            if owner == "problems":
                yield from literals(node.slice)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = node.targets if isinstance(node, ast.Assign) else [node.target]
            if {getattr(name, "id", "") for name in names} & {"PROBLEMS", "UNFINISHED"} and node.value is not None:
                yield from literals(node.value)


def literals(node: ast.expr) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and NAME.fullmatch(inner.value):
            yield inner.value


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_name_that_a_module_counts_has_words(path: Path) -> None:
    known = (losses.RECORDER, *losses.LOSSES.values())
    assert sorted({name for name in counted(path) if losses.loss(name) not in known}) == []


def test_some_names_are_found_at_all() -> None:
    found = {name for path in SOURCES for name in counted(path)}
    assert {"no_dur", "bad_json", "lost_iteration_lines", "executions_without_step"} <= found


def test_what_real_readers_count_in_every_case_has_words() -> None:
    found: set[str] = set()
    for path in sorted(DATA.glob("*/*/input.*")):
        known = format_of(path)
        assert known is not None
        found |= set(known[1](path, Place(near=1_795_961_987_000_000_000), None).problems)
    assert len(found) > 5
    assert {name for name in found if losses.loss(name) not in (losses.RECORDER, *losses.LOSSES.values())} == set()


@pytest.mark.parametrize(("name", "loss"), losses.LOSSES.items())
def test_words_stand_in_a_sentence_and_say_what_they_bear_on(name: str, loss: losses.Loss) -> None:
    assert NAME.fullmatch(name) and loss.words[0].islower() and not loss.words.endswith(".") and "_" not in loss.words
    assert loss.bears in (
        losses.SPANS, losses.REQUESTS, losses.STEPS, losses.CLOCKS, losses.COUNTERS, losses.FILES, losses.NOTHING,
    )  # fmt: skip


def test_an_answer_tells_what_bears_on_it_the_most_frequent_first() -> None:
    problems = {"no_dur": 3, "hidden_file": 9, "broken_file": 1, "bad_record": 1200, "crossing_ranges": 50}
    assert losses.bearing(problems, {losses.SPANS}) == {"no_dur": 3, "broken_file": 1, "crossing_ranges": 50}
    assert losses.note(problems, {losses.REQUESTS}, "said before") == (
        "said before; lost in reading: records of requests that cannot be read, dropped (1,200), "
        "files that are damaged or cut short (1)"
    )
    assert losses.note({"hidden_file": 9}, {losses.REQUESTS}, "said before") == "said before"
    assert losses.note({}, {losses.SPANS}) == ""
    many: dict[str, int] = dict.fromkeys(
        ("no_ts", "no_dur", "no_ph", "negative_dur", "damaged_row", "unmatched_pop"), 1
    )
    assert losses.told(many)[-1] == "2 more kinds of losses, which `captures` lists"
    assert losses.gone({"no_dur": 1}) and losses.gone({"broken_file": 1}) and not losses.gone({"crossing_ranges": 1})


def test_a_name_without_words_is_shown_as_it_is_and_bears_on_all() -> None:
    assert losses.loss("never_heard_of") == losses.Loss("never heard of", losses.FILES)
    assert losses.loss("recorder_overflow") == losses.RECORDER
