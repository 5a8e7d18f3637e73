"""One folder a case: ``tests/data/FORMAT/CASE/input.*`` is recognized as FORMAT and read as ``expect.txt`` says.

``TELLER_UPDATE=1`` writes the expectations anew, to be read before they are committed.
"""

import os
from pathlib import Path

import pytest

from teller_core.ingest.found import Place
from teller_core.ingest.reading import FORMATS, format_of
from tests.core.ingest.shown import shown

DATA = Path(__file__).parents[2] / "data"
OURS = [name for name, _, _ in FORMATS if name != "kineto"]
CASES = sorted(case for name in OURS for case in (DATA / name).glob("*"))
NEAR = 1_795_961_987_000_000_000


def input_of(case: Path) -> Path:
    (path,) = (path for path in case.iterdir() if path.name != "expect.txt")
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_a_file_is_recognized_and_read_as_expected(case: Path) -> None:
    known = format_of(input_of(case))
    assert known is not None
    name, read = known
    text = shown(name, read(input_of(case), Place(near=NEAR, salt=b"test"), None))
    expect = case / "expect.txt"
    if os.environ.get("TELLER_UPDATE"):
        expect.write_text(text)
    assert text == expect.read_text()
    assert name == case.parent.name


@pytest.mark.parametrize("name", OURS)
def test_every_format_has_a_case(name: str) -> None:
    assert any(case.parent.name == name for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_no_other_format_but_the_general_log_takes_the_file(case: Path) -> None:
    head = input_of(case).read_bytes()[: 1 << 16]
    takers = {name for name, sniff, _ in FORMATS if sniff(head)}
    assert takers - {"engine_log"} == {case.parent.name} - {"engine_log"}


def test_a_log_in_which_a_caller_had_a_few_zero_bytes_written_is_a_log() -> None:
    lines = [f"INFO 11-29 12:00:{second:02} [a.py:1] asked for x" for second in range(40)]
    takes = next(sniff for name, sniff, _ in FORMATS if name == "engine_log")
    lines[1] += "\0\0\0"
    assert takes("\n".join(lines).encode())
    assert not takes("\0".join("\n".join(lines)).encode())
