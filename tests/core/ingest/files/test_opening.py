"""What is opened is what was looked at: nothing outside of the folders that may be read, whatever is put in its place."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from teller_core.errors import InputError
from teller_core.ingest.files.opening import Opened, also_within, within


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """An allowed folder with a/b/trace.json, and a secret elsewhere under the same name."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder, text in ((inside, "ours"), (outside, "secret")):
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b" / "trace.json").write_text(text)
    return inside, outside


def read(path: Path) -> bytes:
    with Opened(path) as file:
        return file.read()


def test_files_below_the_folders_are_opened_through_links_inside_of_them(folders: tuple[Path, Path]):
    inside, outside = folders
    (inside / "link.json").symlink_to(inside / "a" / "b" / "trace.json")
    (inside / "folder").symlink_to("a")
    with within([outside, inside]):
        for name in ("a/b/trace.json", "link.json", "folder/b/trace.json", "a/../a/b/trace.json"):
            assert read(inside / name) == b"ours"
        assert read(outside / "a" / "b" / "trace.json") == b"secret"


def test_nothing_else_is_opened(folders: tuple[Path, Path], tmp_path: Path):
    inside, outside = folders
    (inside / "link.json").symlink_to(outside / "a" / "b" / "trace.json")
    (inside / "folder").symlink_to(outside)
    (tmp_path / "insideout").mkdir()
    (tmp_path / "insideout" / "x").write_text("beside")
    with within([inside]):
        for path in ("inside/link.json", "inside/folder/a/b/trace.json", "outside/a/b/trace.json", "insideout/x"):
            with pytest.raises(InputError, match="it leads out of the folders that may be read"):
                read(tmp_path / path)
    assert read(inside / "link.json") == b"secret"  # where nobody said where


def swap_file(inside: Path, outside: Path) -> None:
    (inside / "a" / "b" / "trace.json").unlink()
    (inside / "a" / "b" / "trace.json").symlink_to(outside / "a" / "b" / "trace.json")


def swap_folder(inside: Path, outside: Path) -> None:
    (inside / "a").rename(inside / "was")
    (inside / "a").symlink_to(outside / "a")


def swap_inner_folder(inside: Path, outside: Path) -> None:
    (inside / "a" / "b").rename(inside / "a" / "was")
    (inside / "a" / "b").symlink_to(outside / "a" / "b")


@pytest.mark.parametrize("swap", [swap_file, swap_folder, swap_inner_folder])
def test_a_link_that_takes_a_place_between_looking_and_opening_is_not_followed(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path, Path], None]
):
    inside, outside = folders
    real = os.path.realpath

    def looked(path: Path) -> str:
        found = real(path)
        swap(inside, outside)
        return found

    monkeypatch.setattr("teller_core.ingest.files.opening.os.path.realpath", looked)
    with within([inside]), pytest.raises(InputError, match="it leads out of the folders that may be read"):
        read(inside / "a" / "b" / "trace.json")


def test_a_pipe_that_takes_the_place_of_a_file_is_refused_without_waiting(folders: tuple[Path, Path]):
    path = folders[0] / "a" / "b" / "trace.json"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="it is no regular file"):
        read(path)
    with within([folders[0]]), pytest.raises(InputError, match="it is no regular file"):
        read(path)


def test_a_missing_file_is_missing_within_folders_too(folders: tuple[Path, Path]):
    with within([folders[0]]), pytest.raises(InputError, match="there is no such file"):
        read(folders[0] / "a" / "none.json")


def test_a_folder_is_added_only_where_folders_were_named(folders: tuple[Path, Path]):
    inside, outside = folders
    with also_within(inside):
        assert read(outside / "a" / "b" / "trace.json") == b"secret"
    with within([inside]), also_within(outside):
        assert read(outside / "a" / "b" / "trace.json") == b"secret"
    with within([inside]), pytest.raises(InputError, match="leads out"):
        read(outside / "a" / "b" / "trace.json")
