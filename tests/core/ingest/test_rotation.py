"""One log in several files: parts, overlaps and copies give what the whole log gives."""

import gzip
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.records import Recording
from teller_core.ingest.reading import plan, read_group
from teller_core.ingest.rotation import REPEATED, log_of
from teller_core.rebuild.capture import rebuild

ZERO = 1_795_961_987
COUNT = 40


def written(number: int) -> list[str]:
    """The lines about a step and the request that it begins; a line that says nothing new follows each."""
    stamp = f"INFO 11-29 {14 + (19 + number // 7) // 60:02}:{(19 + number // 7) % 60:02}:{number % 7 * 8:02} "
    counts = f"1 context requests, {number + 5} context tokens, 0 generation requests, 0 generation tokens"
    return [
        f"{stamp}[async_llm.py:1] Added request cmpl-{number % 9}.",
        f"{stamp}[loggers.py:199] Engine 000: Iteration({number}): {counts}, iteration elapsed time: {number + 1}.5 ms",
        f"{stamp}[loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s",
    ]


BANNER = ["INFO:     Started server process [4242]"]
WHOLE = BANNER + [line for number in range(COUNT) for line in written(number)]


def save(path: Path, lines: Sequence[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def read(folder: Path) -> Recording:
    return read_group(plan([folder])[0])


def told(recording: Recording) -> object:
    lines = recording.lines
    of_line = {i: lines.untrusted_text[i] for i in range(len(lines))}
    return (
        [(lines.time[i], lines.kind(i), lines.untrusted_text[i]) for i in range(len(lines))],
        [(fact._replace(line=None), of_line[fact.line or 0]) for fact in recording.iterations],
        [(fact._replace(line=None), of_line[fact.line or 0]) for fact in recording.requests],
    )


@pytest.fixture
def whole(tmp_path: Path) -> object:
    folder = tmp_path / "whole"
    folder.mkdir()
    save(folder / "server.log", WHOLE)
    return told(read(folder))


PARTS = [("server.log.1.gz", "server.log"), ("server.log-20261129", "server.log")]
OTHERS = [("a.log", "b.log"), ("b.log", "a.log")]
"""Nothing says that two logs of other names are one, but lines that both hold."""


@pytest.mark.parametrize(
    ("older", "newer", "overlap"),
    [(*names, overlap) for names in PARTS for overlap in (0, 3, 30)] + [(*names, 30) for names in OTHERS],
)
def test_two_parts_give_what_the_whole_log_gives_whatever_their_names(
    tmp_path: Path, whole: object, older: str, newer: str, overlap: int
) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    save(folder / older, WHOLE[:70])
    save(folder / newer, WHOLE[70 - overlap :])
    recording = read(folder)
    assert told(recording) == whole
    capture = rebuild(replace(recording, requests=[]), [], capture_id="c", name="")
    assert capture.steps.number.tolist() == list(range(COUNT))
    assert capture.problems.get("lost_iteration_lines", 0) == 0
    counted = {file.name: (file.events_kept, file.events_other.get(REPEATED, 0)) for file in recording.files}
    assert counted[newer] == (len(WHOLE) - 70, overlap)
    for file in recording.files:
        assert file.events_in_file == file.events_kept + sum(file.events_other.values()) + sum(file.problems.values())


@pytest.mark.parametrize("copy", ["server.log.1.gz", "backup.txt"])
def test_a_copy_tells_nothing_new(tmp_path: Path, whole: object, copy: str) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    save(folder / "server.log", WHOLE)
    save(folder / copy, WHOLE)
    assert told(read(folder)) == whole


def test_three_parts_of_which_the_middle_one_lies_twice(tmp_path: Path, whole: object) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    save(folder / "server.log.2.gz", WHOLE[:40])
    save(folder / "server.log.1", WHOLE[40:80])
    shutil.copy(folder / "server.log.1", folder / "kept.txt")
    save(folder / "server.log", WHOLE[80:])
    assert told(read(folder)) == whole


def test_an_id_that_comes_again_in_the_next_part_is_told_again(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    save(folder / "server.log.1", WHOLE[:60])
    save(folder / "server.log", WHOLE[60:])
    assert sum(fact.request == "cmpl-0" for fact in read(folder).requests) == len(range(0, COUNT, 9))


def test_logs_of_two_servers_that_say_some_of_the_same_at_the_same_time_stay_two(tmp_path: Path) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    save(folder / "a.log", [*written(1), "INFO 11-29 14:20:00 [x.py:1] one", *written(9)])
    save(folder / "b.log", [*written(1), "INFO 11-29 14:20:00 [x.py:1] two", *written(9)])
    recording = read(folder)
    assert len(recording.lines) == 14
    assert all(REPEATED not in file.events_other for file in recording.files)


@pytest.mark.parametrize(
    ("part", "log"),
    [
        ("logs/server.log.12.gz", "logs/server.log"),
        ("server.log-20261129.gz", "server.log"),
        ("server-20261129.log", "server.log"),
        ("server.2026-11-29_14-19-42_123456.log", "server.log"),
        ("app.log.2026-11-29", "app.log"),
        ("0.log.20261129-141942", "0.log"),
        ("worker-1.log", "worker-1.log"),
        ("rank0.log", "rank0.log"),
    ],
)
def test_the_name_of_a_part_tells_its_log(part: str, log: str) -> None:
    assert log_of(part) == log


@settings(max_examples=25, deadline=None)
@given(cut=st.integers(4, len(WHOLE) - 4), overlap=st.integers(0, 40))
def test_wherever_a_log_is_cut_nothing_is_lost_and_nothing_told_twice(
    tmp_path_factory: pytest.TempPathFactory, cut: int, overlap: int
) -> None:
    if 0 < overlap < 3:
        overlap = 0
    folder = tmp_path_factory.mktemp("cut")
    save(folder / "server.log.1", WHOLE[:cut])
    save(folder / "server.log", WHOLE[cut - overlap :] if cut > overlap else WHOLE)
    recording = read(folder)
    assert list(recording.lines.untrusted_text)[-len(WHOLE) + 1 :] == [line.partition("] ")[2] for line in WHOLE[1:]]
    assert len(recording.lines) == len(WHOLE)
    assert [fact.number for fact in recording.iterations] == list(range(COUNT))
