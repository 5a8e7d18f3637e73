"""What is copied of a recording, and what a recording says of itself."""

import os
from pathlib import Path

import pytest

from teller_core.collect.about import MOST_BYTES, NAME, read_about, write_about
from teller_core.collect.finished import copy_files, finished_files
from teller_core.errors import FormatError, InputError


def test_what_is_finished_is_copied_with_its_date_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("cap/host-7.jsonl", "cap/.part", ".hidden/inside", "cap/PROFILE", "cap/CUPTI", "server.log"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "link").symlink_to(source / "server.log")
    os.mkfifo(source / "pipe")
    os.utime(source / "server.log", (7, 7))
    assert copy_files(finished_files(source), source, tmp_path / "copy") == (2, len("cap/host-7.jsonlserver.log"))
    copied = [path.relative_to(tmp_path / "copy").as_posix() for path, _ in finished_files(tmp_path / "copy")]
    assert copied == ["cap/host-7.jsonl", "server.log"]
    assert (tmp_path / "copy" / "server.log").stat().st_mtime == 7


def test_what_a_ring_takes_away_while_it_is_copied_is_left_out(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("host-7-0001.jsonl", "host-7-0002.jsonl"):
        (source / name).write_text("x")
    files = list(finished_files(source))
    (source / "host-7-0001.jsonl").unlink()
    assert copy_files(files, source, tmp_path / "copy") == (1, 1)


def test_a_recording_says_of_itself_what_was_written(tmp_path: Path) -> None:
    write_about(tmp_path, {"schema": 2, "engine": "vllm"})
    assert read_about(tmp_path) == {"schema": 2, "engine": "vllm"}
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        (None, InputError, "it is no recording"),
        ("{", FormatError, "is broken"),
        ("[" * 200_000, FormatError, "is broken"),
        ("[1]", FormatError, "is none of ours"),
        (" " * MOST_BYTES + "{}", FormatError, "is broken"),
        (b"\xff{}", FormatError, "is broken"),
    ],
    ids=["absent", "cut", "deep", "a list", "huge", "no text"],
)
def test_what_is_no_recording_is_refused(
    tmp_path: Path, text: str | bytes | None, kind: type[InputError], why: str
) -> None:
    if text is not None:
        (tmp_path / NAME).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=why) as told:
        read_about(tmp_path)
    assert type(told.value) is kind
