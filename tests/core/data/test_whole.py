"""Files that are there whole, or as they were."""

from pathlib import Path

import pytest

from teller_core.data.whole import whole


def test_a_file_is_what_was_written_once_that_is_done_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    with whole(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [*tmp_path.iterdir()] == [path]


def test_where_writing_fails_what_was_there_stays_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), whole(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]
