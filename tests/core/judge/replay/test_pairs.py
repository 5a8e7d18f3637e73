"""No two causes of the taxonomy look alike without something that tells them apart: a case of replay, or what is named in
``tests/data/look_alikes.toml``.
"""

import ast
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from teller_core.data.causes import cause, causes
from tests.core.incidents import cases as incidents
from tests.core.judge.replay.cases import Case, cases

ROOT = Path(__file__).parents[4]
TABLE = tomllib.loads((ROOT / "tests" / "data" / "look_alikes.toml").read_text("utf-8"))
REPORTS = {case.name: case for case in incidents.cases()}
Pair = frozenset[str]


def pair(words: str) -> Pair:
    return frozenset(words.split(", "))


PAIRS = {frozenset((key, other)) for key, each in causes().items() for other in each.look_alikes}
ELSEWHERE = [pair(words) for kind in TABLE.values() for words in kind]


def said(pairs: set[Pair]) -> list[str]:
    return sorted(", ".join(sorted(each)) for each in pairs)


def test_what_looks_alike_is_told_apart_by_a_case_of_replay_or_elsewhere_and_not_listed_in_vain() -> None:
    by_waits = set[Pair]().union(*(case.apart for case in cases()))
    elsewhere = set(ELSEWHERE)
    assert len(elsewhere) == len(ELSEWHERE), "a pair is listed twice"
    assert said(PAIRS - by_waits - elsewhere) == [], (
        "write a case in tests/data/replay, or say in the table what tells them apart"
    )
    assert said(elsewhere - PAIRS) == [], "these do not look alike by the taxonomy"
    assert said(elsewhere & by_waits) == [], "these have a case"


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_sides_of_a_case_are_causes_whose_waits_are_charged_differently(case: Case) -> None:
    for one in [one for side in case.sides for one in side]:
        assert one == "none.workload_expected" or cause(one).title
    for (one, here), (other, there) in combinations(case.sides.items(), 2):
        assert here.expected != there.expected, f"{one} and {other}"


@pytest.mark.parametrize("words", TABLE["reports"])
def test_a_report_that_tells_two_causes_apart_is_of_the_one_and_has_the_other_as_its_look_alike(words: str) -> None:
    report = REPORTS[TABLE["reports"][words]]
    assert {report.cause, report.alike if report.alike in causes() else "none.workload_expected"} == pair(words)


@pytest.mark.parametrize("words", TABLE["two_reports"])
def test_of_two_reports_one_is_of_each_cause(words: str) -> None:
    assert {REPORTS[name].cause for name in TABLE["two_reports"][words]} == pair(words)


@pytest.mark.parametrize("words", TABLE["tests"])
def test_what_tells_two_causes_apart_elsewhere_is_there(words: str) -> None:
    for told in TABLE["tests"][words]:
        path, _, name = told.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        assert name.startswith("test_")
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, told
