"""Files that are there whole, or as they were."""

import os
from pathlib import Path

import pytest

from teller_core.data.whole import keep_text, made_folder, whole
from teller_core.errors import InputError


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


def test_a_pipe_or_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR)
    try:
        with whole(path) as file:
            file.write(b"new")
        assert os.read(end, 10) == b"new" and path.is_fifo()
    finally:
        os.close(end)
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_stays_one_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    path, link = tmp_path / "kept", tmp_path / "latest"
    path.write_bytes(b"old")
    link.symlink_to(path)
    with whole(link) as file:
        file.write(b"new")
    assert link.is_symlink() and path.read_bytes() == b"new"


def test_of_two_processes_at_once_each_writes_a_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept"
    with whole(path) as file:
        file.write(b"long")
        monkeypatch.setattr(os, "getpid", lambda: 1)
        with whole(path) as other:
            other.write(b"new")
        assert path.read_bytes() == b"new"
    assert path.read_bytes() == b"long"
    assert [*tmp_path.iterdir()] == [path]


def test_what_is_written_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "new" / "kept.txt"
    keep_text(kept, "old")

    def killed(number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        keep_text(kept, "new")
    assert kept.read_text() == "old" and [*kept.parent.iterdir()] == [kept]


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file" / "kept.txt", tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match="it cannot be written"):
            keep_text(path, "text")


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="it cannot be written"):
        made_folder(tmp_path / name)


def test_a_folder_that_nothing_can_be_written_into_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_folder(tmp_path / "new" / "one").is_dir()
    monkeypatch.setattr(os, "access", lambda *given: False)
    with pytest.raises(InputError, match="permission denied"):
        made_folder(tmp_path)
