"""Logs of others, where they are at hand: every line accounted for, lines by the rule that knows them.

``TELLER_UPDATE=1`` writes the expectations anew, to be read before they are committed.
"""

import os
import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from teller_core.ingest.found import Found, Place
from teller_core.ingest.logs.reader import read as read_log

LOGS = Path(__file__).parents[5] / "shared" / "traces" / "logs"
EXPECT = Path(__file__).parents[3] / "data" / "logs_corpus_expect.toml"
NEAR = 1_795_961_987_000_000_000
NAMES = sorted(tomllib.loads(EXPECT.read_text("utf-8")))


def read(name: str) -> Found:
    path = LOGS / name
    if not path.exists():
        pytest.skip("the corpus of logs is not at hand")
    return read_log(path, Place(near=NEAR), None)


def counts(found: Found) -> dict[str, Any]:
    """What is expected of a log: names and numbers only."""
    rules = Counter(line.rule or "unknown" for line in found.lines)
    return {
        "clock": found.clock,
        "engine": found.engine,
        "lines": found.events,
        "kept": found.kept,
        "iterations": len(found.iterations),
        "request_facts": len(found.requests),
        "redactions": found.redactions,
        "other": dict(sorted(found.other.items())),
        "rules": dict(sorted(rules.items())),
    }


def written(name: str, said: dict[str, Any]) -> str:
    plain = {key: value for key, value in said.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in said.items() if isinstance(value, dict)}
    lines = [f'["{name}"]', *(f"{key} = {value!r}".replace("'", '"') for key, value in plain.items())]
    for table, rows in tables.items():
        lines += [f'["{name}".{table}]', *(f'"{key}" = {value}' for key, value in rows.items())]
    return "\n".join(lines) + "\n\n"


@pytest.mark.skipif(not os.environ.get("TELLER_UPDATE"), reason="expectations are written on demand")
def test_expectations_are_written_anew() -> None:
    names = sorted(str(path.relative_to(LOGS)) for path in LOGS.rglob("*.log"))
    EXPECT.write_text("".join(written(name, counts(read(name))) for name in names), "utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_log_of_another_service_is_read_line_by_line(name: str) -> None:
    found = read(name)
    assert found.events == found.kept + sum(found.other.values()) + sum(found.problems.values())
    assert not found.problems
    assert counts(found) == tomllib.loads(EXPECT.read_text("utf-8"))[name]


@pytest.mark.parametrize("name", NAMES)
def test_as_many_lines_as_the_file_has(name: str) -> None:
    found = read(name)
    assert found.events == len((LOGS / name).read_bytes().removesuffix(b"\n").split(b"\n"))


def test_every_log_at_hand_has_an_expectation() -> None:
    if not LOGS.exists():
        pytest.skip("the corpus of logs is not at hand")
    assert sorted(str(path.relative_to(LOGS)) for path in LOGS.rglob("*.log")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_times_of_a_log_do_not_run_back_by_more_than_a_second(name: str) -> None:
    """Processes write side by side, in whole seconds; an hour's step would be a wrong year, day or zone."""
    times = [line.time for line in read(name).lines if line.resolution > 0]
    assert all(after - before > -2_000_000_000 for before, after in pairwise(times))
