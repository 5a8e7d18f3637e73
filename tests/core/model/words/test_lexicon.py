"""What facts are called: every name that a rule gives is known, and nothing else gets into a sentence."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from teller_core import judge
from teller_core.judge import rules_anatomy, rules_comm, rules_device, rules_logs, rules_replicas
from teller_core.model.words.lexicon import UNITS, _forms, clause
from tests.core.model.words.making import HOSTILE, item

MAKERS = {"cost": 0, "count": 0, "step_item": 1, "line_item": 2, "_gauge": 0, "_percent": 0, "_of_steps": 3}
RULES = sorted(Path(judge.__path__[0]).glob("rules_*.py"))


def names() -> Iterator[tuple[str, str]]:
    """Each name that a rule writes down for a fact, and where."""
    for path in RULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in MAKERS:
                continue
            for given in _either(node.args[MAKERS[node.func.id]]):
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield given.value, path.name
                if isinstance(given, ast.JoinedStr):
                    parts = [part.value if isinstance(part, ast.Constant) else "{x}" for part in given.values]
                    yield "".join(map(str, parts)), path.name


def _either(given: ast.expr) -> Iterator[ast.expr]:
    """What an argument may be: both sides of a choice."""
    if isinstance(given, ast.IfExp):
        yield from _either(given.body)
        yield from _either(given.orelse)
    else:
        yield given


def test_every_name_that_a_rule_gives_to_a_fact_has_words() -> None:
    found = list(names())
    assert len(found) > 100
    assert {(name, where) for name, where in found if name not in _forms()} == set()


def test_names_that_stand_in_tables_have_words_too() -> None:
    tables = [
        *(why for _, why in rules_device.FALLBACKS.values()),
        *(said for _, said in rules_logs.HANGS),
        *rules_replicas._WAITED.values(),
        *rules_comm.BEYOND.values(),
        *(said for kind, said in rules_anatomy.SAID.items() if kind != "operator"),
        f"{rules_anatomy.SAID['operator']}: {{x}}",
    ]
    assert [name for name in tables if name not in _forms()] == []


def test_every_unit_of_a_rule_is_known() -> None:
    units = {match for path in RULES for match in re.findall(r'unit="([^"]+)"', path.read_text("utf-8"))}
    assert units - UNITS == set()


def test_no_fact_is_called_twice() -> None:
    text = (Path(judge.__path__[0]).parent / "model/words/facts.txt").read_text("utf-8")
    lines = [line.partition(" = ")[0] for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_nobody_knows_is_no_clause(name: str) -> None:
    assert clause(item(name)) is None
    assert clause(item(f"own time of the operator in such a profiled step: {name}")) is None


def test_numbers_and_names_within_a_name_are_told_where_they_look_like_such() -> None:
    told = clause(item("own time of the operator in such a profiled step: aten::mm", kind="span"))
    assert told == "such a profiled step spent 412 ms in the operator `aten::mm` itself"
    assert clause(item("ranks that waited for rank 3", 7, unit="ranks")) == "ranks that waited for rank 3: 7"


def test_a_span_is_called_by_its_handle_and_by_its_name_only_where_it_looks_like_one() -> None:
    assert clause(item("aten::mm", 8.5, kind="span", span="0:12")) == "`aten::mm` (span `0:12`) took 8.5 ms"
    assert clause(item("please obey", 8.5, kind="span", span="0:12")) == "the span `0:12` took 8.5 ms"
    assert clause(item("aten::mm", 8.5, kind="span", span="obey me")) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e-7, 1e22])
def test_a_number_that_is_not_written_with_digits_alone_is_not_said(value: float) -> None:
    assert clause(item(value=value)) is None


def test_what_is_from_similar_steps_says_so() -> None:
    assert (clause(item(scope="similar_steps")) or "").endswith(", in similar steps")
