"""Sheets with their truth in a file."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data import sheets_file
from teller_core.data.sheets_file import TRUTH, Taught, read_taught, write_taught
from teller_core.errors import FormatError
from tests.core.data.sheets_made import made
from tests.core.data.test_sheets import same


def taught(count: int = 5, seed: int = 1) -> Taught:
    sheets = made(count, seed)
    whole = np.arange(count, dtype=np.int32)
    return Taught(
        life="0badcafe",
        about={"side": "train", "engine": "vllm"},
        sheets=sheets,
        abnormal=np.ones(count, np.int8),
        cause=["host.gc_pause", "", "?", "", ""][:count],
        hard=np.zeros(count, np.uint8),
        block=whole,
        strike=whole - 1,
        window=whole,
        fault=["gc"] * count,
        severity=["strong"] * count,
        d_prime=np.full(count, 3.5, np.float32),
        rank=whole - 1,
        operators=["aten::mm\naten::\ud800ä", "", "", "", ""][:count],
        guilty=np.zeros(len(sheets.pieces.symbol), np.uint8),
        guilty_suspect=np.zeros(len(sheets.suspects.row), np.uint8),
    )


def test_what_is_written_is_read_again_and_always_in_the_same_bytes(tmp_path: Path) -> None:
    given = taught()
    for name in ("one.npz", "other.npz"):
        write_taught(given, tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()
    found = read_taught(tmp_path / "one.npz")
    same(found.sheets, given.sheets)
    assert (found.life, found.about) == (given.life, given.about)
    for name in (*TRUTH, "guilty", "guilty_suspect"):
        np.testing.assert_array_equal(getattr(found, name), getattr(given, name), err_msg=name)
    assert not list(tmp_path.glob(".*"))


def test_a_file_of_another_layout_and_a_damaged_one_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "life.npz"
    with pytest.raises(FormatError, match="damaged"):
        read_taught(path)
    write_taught(taught(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match="damaged"):
        read_taught(path)
    path.write_bytes(whole)
    monkeypatch.setattr(sheets_file, "layout_hash", lambda: "another")
    with pytest.raises(FormatError, match="another layout"):
        read_taught(path)


def test_a_truth_too_few_is_found() -> None:
    with pytest.raises(ValueError, match="one truth a sheet"):
        replace(taught(), rank=np.zeros(1, np.int32)).check()
    with pytest.raises(ValueError, match="a piece"):
        replace(taught(), guilty=np.zeros(1, np.uint8)).check()
