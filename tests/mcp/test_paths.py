"""Which files may be read."""

import os
from pathlib import Path

import pytest

from teller_core.errors import InputError, LimitError
from teller_mcp import paths
from teller_mcp.paths import allowed, default_roots


def test_a_path_is_relative_to_a_root_or_absolute_below_one(traces: Path) -> None:
    assert allowed(["a.json"], [traces]) == [traces / "a.json"]
    assert allowed([str(traces / "a.json"), "."], [traces]) == [traces / "a.json", traces]


def test_the_first_root_that_has_the_path_wins(traces: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert allowed(["a.json"], [other, traces]) == [traces / "a.json"]


@pytest.mark.parametrize("path", ["link", "folder/secret.txt", "sub/../../secret.txt", "..", "/", "~/x/../../.."])
def test_nothing_outside_a_root_is_read(traces: Path, tmp_path: Path, path: str) -> None:
    (traces / "link").symlink_to(tmp_path / "secret.txt")
    (traces / "folder").symlink_to(tmp_path)
    with pytest.raises(InputError, match="leads out"):
        allowed([path], [traces])


def test_a_folder_with_a_link_that_leads_out_is_refused(traces: Path, tmp_path: Path) -> None:
    deep = traces / "deep" / "er"
    deep.mkdir(parents=True)
    (deep / "inside").symlink_to(traces / "a.json")
    assert allowed(["deep"], [traces])
    (deep / "outside").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(InputError, match="holds a link that leads out"):
        allowed(["deep"], [traces])


def test_a_pattern_is_read_where_all_that_fits_it_is_inside(traces: Path, tmp_path: Path) -> None:
    for name in ("b.json", "deep/c.json"):
        (traces / name).parent.mkdir(exist_ok=True)
        (traces / name).touch()
    assert allowed(["*.json"], [tmp_path / "none", traces]) == [traces / "*.json"]
    assert allowed([str(traces / "**" / "*.json")], [traces]) == [traces / "**" / "*.json"]
    assert allowed(["[ab].json"], [traces]) == [traces / "[ab].json"]
    with pytest.raises(InputError, match="no file fits the pattern"):
        allowed(["*.log"], [traces])
    with pytest.raises(InputError, match="leads out"):
        allowed(["../*.txt"], [traces])
    (traces / "out.json").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(InputError, match="what fits the pattern leads out"):
        allowed(["*.json"], [traces])


def test_a_pipe_is_no_trace(traces: Path) -> None:
    os.mkfifo(traces / "pipe")
    with pytest.raises(InputError, match="neither a regular file nor a folder"):
        allowed(["pipe"], [traces])


def test_a_folder_with_too_many_entries_is_refused(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MAX_ENTRIES", 3)
    for at in range(3):
        (traces / f"{at}.json").touch()
    with pytest.raises(LimitError, match="over 3 entries"):
        allowed(["."], [traces])


@pytest.mark.parametrize("path", ["x" * 5000, "x/" * 5000, "x" * 2_000_000])
def test_a_path_that_no_file_system_takes_is_refused(traces: Path, path: str) -> None:
    with pytest.raises(InputError, match="path 1: it cannot be looked for"):
        allowed([path], [traces])


@pytest.mark.parametrize("path", ["", " "])
def test_an_empty_path_is_not_the_folder_itself(traces: Path, path: str) -> None:
    with pytest.raises(InputError, match="path 1: it is empty"):
        allowed([path], [traces])


def test_without_a_root_the_refusal_says_how_to_name_one() -> None:
    with pytest.raises(InputError, match="adds --root FOLDER"):
        allowed(["a.json"], [])


def test_the_current_folder_is_a_root_unless_it_holds_the_home_folder(tmp_path: Path) -> None:
    home = tmp_path / "home" / "me"
    project = home / "project"
    project.mkdir(parents=True)
    assert default_roots(project, home) == (project,)
    assert default_roots(home, home) == ()
    assert default_roots(home.parent, home) == ()
    assert default_roots(Path("/"), home) == ()
