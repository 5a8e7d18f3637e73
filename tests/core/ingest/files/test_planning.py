"""Which files make a capture."""

import os
from pathlib import Path

import pytest

from teller_core.errors import FormatError, InputError
from teller_core.ingest.files.planning import Group, apart, hosts_of, plan
from teller_core.ingest.reading import read_group

ROW = '{"ph": "G", "t": 1795961954186647253, "tid": 7, "name": "gc", "dur": 5, "gen": 1}\n'


def write(path: Path, text: str = ROW) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(group: Group) -> list[str]:
    return [str(path.relative_to(group.root)) for path in group.files]


@pytest.mark.parametrize("marker", ["bundle.json", "cap/host-7.jsonl"])
def test_a_recorded_folder_is_one_capture_with_all_below_it(tmp_path: Path, marker: str) -> None:
    write(tmp_path / marker)
    write(tmp_path / "n0" / "deep" / "server.log")
    (group,) = plan([tmp_path])
    assert names(group) == sorted([marker, "n0/deep/server.log"])


def test_another_folder_is_one_capture_a_folder_with_files(tmp_path: Path) -> None:
    for name in ("a/1.json", "a/2.json", "b/c/3.json"):
        write(tmp_path / name)
    assert [(group.name, names(group)) for group in plan([tmp_path])] == [
        ("a", ["1.json", "2.json"]),
        ("b/c", ["3.json"]),
    ]


def test_files_of_one_folder_are_one_capture_unless_told_apart_or_together(tmp_path: Path) -> None:
    files = [write(tmp_path / name) for name in ("a/1.json", "a/2.json", "b/3.json")]
    assert [len(group.files) for group in plan(files)] == [2, 1]
    assert [len(group.files) for group in plan(files, together=True)] == [3]
    assert [len(group.files) for group in apart(files)] == [1, 1, 1]


def test_what_is_left_out_of_a_folder_is_named(tmp_path: Path) -> None:
    write(tmp_path / "cap/host-7.jsonl")
    write(tmp_path / "cap/.part-7.json")
    write(tmp_path / "cap/._host-7.jsonl")
    write(tmp_path / "cap/PROFILE", "3")
    write(tmp_path / "cap/empty.log", "")
    write(tmp_path / ".git/HEAD")
    os.mkfifo(tmp_path / "cap/pipe.log")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "away").symlink_to("/etc/hostname")
    (group,) = plan([tmp_path])
    assert names(group) == ["cap/host-7.jsonl"]
    assert {path.name: why for path, why in group.skipped.items()} == {
        ".git": "hidden_folder",
        ".part-7.json": "unfinished_file",
        "._host-7.jsonl": "hidden_file",
        "PROFILE": "control_file",
        "empty.log": "empty_file",
        "pipe.log": "no_regular_file",
        "loop": "broken_link",
        "away": "link_out_of_folder",
    }


def test_a_folder_that_links_to_itself_is_walked_once(tmp_path: Path) -> None:
    write(tmp_path / "cap/host-7.jsonl")
    (tmp_path / "cap/again").symlink_to(tmp_path)
    (group,) = plan([tmp_path])
    assert names(group) == ["cap/host-7.jsonl"]


@pytest.mark.parametrize("kind", ["missing", "fifo", "device", "loop", "empty folder", "nul"])
def test_a_path_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "empty folder":
        path.mkdir()
    target = {"device": Path("/dev/zero"), "nul": Path("a\0b")}.get(kind, path)
    with pytest.raises(InputError) as refused:
        plan([target])
    assert "\n" not in str(refused.value)


def test_a_process_recorded_above_the_others_is_of_no_named_machine(tmp_path: Path) -> None:
    above, below = write(tmp_path / "host-1.jsonl"), write(tmp_path / "n1" / "host-2.jsonl")
    assert hosts_of(plan([tmp_path])[0]) == {below.parent: "n1"}
    assert above.parent not in hosts_of(plan([tmp_path])[0])


@pytest.mark.parametrize("name", [b"\x1b[31m.jsonl", b"two\nlines.jsonl", b"\xff.jsonl", "\u202egnp.jsonl".encode()])
def test_odd_names_of_files_and_folders_become_text_that_can_be_kept_and_shown(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / os.fsdecode(name)
    write(folder / os.fsdecode(name))
    group = plan([folder])[0]
    for text in (group.name, *(file.name for file in read_group(group).files), str(FormatError(folder.name, "w", "N"))):
        assert text.isprintable()
        text.encode()


def test_no_path_is_refused() -> None:
    with pytest.raises(InputError):
        plan([])


def test_machines_are_told_apart_by_folder_only_where_several_recorded(tmp_path: Path) -> None:
    for name in ("n0/cap/host-7.jsonl", "n1/cap/host-7.jsonl", "n0/server.log", "client.jsonl"):
        write(tmp_path / name)
    (group,) = plan([tmp_path])
    hosts = hosts_of(group)
    assert {str(path.relative_to(tmp_path)): hosts.get(path.parent, "") for path in group.files} == {
        "client.jsonl": "",
        "n0/cap/host-7.jsonl": "n0",
        "n0/server.log": "n0",
        "n1/cap/host-7.jsonl": "n1",
    }
    assert hosts_of(Group("n0", tmp_path / "n0", [path for path in group.files if "n0" in path.parts])) == {}


def test_a_quoted_pattern_stands_for_what_fits_it(tmp_path: Path) -> None:
    for name in ("a/1.jsonl", "a/2.jsonl", "a/x.txt", "b/c/3.jsonl", "a/.hidden.jsonl"):
        write(tmp_path / name)
    (group,) = plan([tmp_path / "a" / "*.jsonl"])
    assert names(group) == ["1.jsonl", "2.jsonl"] and not group.given
    assert [names(group) for group in plan([tmp_path / "**" / "*.jsonl"])] == [["1.jsonl", "2.jsonl"], ["3.jsonl"]]
    assert [names(group) for group in plan([tmp_path / "**"])] == [["1.jsonl", "2.jsonl", "x.txt"], ["3.jsonl"]]
    assert [group.name for group in plan([tmp_path / "[ab]"])] == ["a", "c"]
    with pytest.raises(InputError, match="no file fits this pattern"):
        plan([tmp_path / "*.nothing"])


def test_of_a_long_path_the_end_is_kept(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a" * 200] * 3)
    folder.mkdir(parents=True)
    (folder / "server.log").write_text("INFO 11-29 12:00:00 [a.py:1] started\n")
    (tmp_path / "near.log").write_text("INFO 11-29 12:00:00 [a.py:1] started, too\n")
    far, near = plan([tmp_path])
    [bundle] = plan([tmp_path], together=True)
    assert (len(far.name), far.name[0], near.name) == (300, "…", tmp_path.name)
    assert sorted(len(file.name) for file in read_group(bundle).files) == [len("near.log"), 300]


def test_a_name_that_looks_like_a_pattern_and_is_there_is_a_name(tmp_path: Path) -> None:
    path = write(tmp_path / "[ab].jsonl")
    write(tmp_path / "a.jsonl")
    (group,) = plan([path])
    assert names(group) == ["[ab].jsonl"] and group.given


def test_what_fits_a_pattern_and_cannot_be_read_is_left_out_by_name(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl")
    write(tmp_path / "b.jsonl", "")
    os.mkfifo(tmp_path / "c.jsonl")
    (tmp_path / "d.jsonl").symlink_to(tmp_path / "gone")
    (group,) = plan([tmp_path / "*.jsonl"])
    assert names(group) == ["a.jsonl"]
    assert {path.name: why for path, why in group.skipped.items()} == {
        "b.jsonl": "empty_file",
        "c.jsonl": "no_regular_file",
        "d.jsonl": "broken_link",
    }


def test_files_that_hold_the_answer_are_never_read(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "run" / name) for name in ("a.jsonl", "fault_injection.log", "reference_missing_ranks.txt")
    ]
    for (group,) in (plan([tmp_path / "run"]), plan(paths), plan([tmp_path / "run" / "*"])):
        assert names(group) == ["a.jsonl"]
        assert set(group.skipped.values()) == {"answer_file"}
    with pytest.raises(InputError, match="left out"):
        plan(paths[1:2])


def test_what_is_left_out_beside_the_captures_of_a_tree_is_told_with_the_first(tmp_path: Path) -> None:
    write(tmp_path / "a" / "1.jsonl")
    write(tmp_path / "b" / "2.jsonl")
    write(tmp_path / ".git" / "HEAD")
    first, second = plan([tmp_path])
    assert (list(first.skipped.values()), list(second.skipped.values())) == (["hidden_folder"], [])
