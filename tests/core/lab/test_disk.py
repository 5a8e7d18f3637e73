"""A disk that is memory is not taken for one; of two who write in one folder one waits."""

from pathlib import Path

import pytest

from teller_core.errors import InputError
from teller_core.lab import disk
from teller_core.lab.disk import alone, in_memory, on_disk


def test_a_folder_in_memory_is_left_for_one_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"a / ext4 rw 0 0\nb {tmp_path.resolve()} tmpfs rw 0 0\n")
    monkeypatch.setattr(disk, "MOUNTS", mounts)
    assert in_memory(tmp_path)
    assert not on_disk(tmp_path).is_relative_to(tmp_path)
    mounts.write_text("a / ext4 rw 0 0\n")
    assert not in_memory(tmp_path)
    assert on_disk(tmp_path) == tmp_path


def test_where_all_is_memory_or_nobody_says_the_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("a / tmpfs rw 0 0\n")
    monkeypatch.setattr(disk, "MOUNTS", mounts)
    assert on_disk(tmp_path) == tmp_path
    monkeypatch.setattr(disk, "MOUNTS", tmp_path / "none")
    assert not in_memory(tmp_path)


def test_two_are_not_in_one_folder_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    with alone(tmp_path), pytest.raises(InputError, match="somebody else is writing in it"), alone(tmp_path):
        pass
    with alone(tmp_path):
        pass
