"""Causes that look alike, each with a report of its own: the one of a report is named in it, the other is not."""

import tomllib
from collections.abc import Callable
from functools import cache

import pytest

from tests.core.incidents.cases import FOLDER, cases, write
from tests.core.incidents.test_incidents import named, why

PAIRS = tomllib.loads((FOLDER.parent / "look_alikes.toml").read_text("utf-8"))["two_reports"]
CASES = {case.name: case for case in cases()}


@pytest.fixture(scope="module")
def causes_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """The causes that are named in a report, the first ones first."""

    @cache
    def of(name: str) -> list[str]:
        folder = tmp_path_factory.mktemp("report") / "it"
        write(CASES[name].capture, folder)
        return named(why(folder, CASES[name]))

    return of


@pytest.mark.parametrize("words", PAIRS)
def test_of_two_causes_that_look_alike_each_is_named_in_its_own_report_alone(
    words: str, causes_of: Callable[[str], list[str]]
) -> None:
    pair = set(words.split(", "))
    for name in PAIRS[words]:
        found, own = causes_of(name), CASES[name].cause
        assert own in found[: CASES[name].place], f"{name}: {found}"
        assert not (pair - {own}) & set(found), f"{name}: {found}"
