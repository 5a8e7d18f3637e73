"""What a capture keeps: the oldest goes first, the piece that is written stays, and what went is said."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from teller_core.collect.ring import BLOCK, RESERVE, Bounds, Ring

SECOND = 1_000_000_000


def _file(path: Path, size: int, age_s: float = 0.0) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * size)
    written = time.time_ns() - int(age_s * SECOND)
    os.utime(path, ns=(written, written))
    return path


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_over_the_bytes_the_oldest_pieces_of_all_files_go_and_those_being_written_stay(tmp_path: Path) -> None:
    for pid, ages in ((7, (50, 30, 1)), (8, (40, 20, 2))):
        for number, age in enumerate(ages):
            _file(tmp_path / "cap" / f"host-{pid}-{number:04}.jsonl", 1000, age)
    ring = Ring(tmp_path, Bounds(most_bytes=4500, most_seconds=3600), [])
    ring.sweep()
    assert _names(tmp_path) == ["host-7-0001.jsonl", "host-7-0002.jsonl", "host-8-0001.jsonl", "host-8-0002.jsonl"]
    dropped = ring.report()["dropped"]
    assert {name: (gone["pieces"], gone["bytes"]) for name, gone in dropped.items()} == {
        "cap/host-7.jsonl": (1, 1000),
        "cap/host-8.jsonl": (1, 1000),
    }
    ring = Ring(tmp_path, Bounds(most_bytes=1, most_seconds=3600), [])
    ring.sweep()
    assert _names(tmp_path) == ["host-7-0002.jsonl", "host-8-0002.jsonl"]


def test_what_is_older_than_the_bound_goes_with_its_time_said(tmp_path: Path) -> None:
    old = _file(tmp_path / "cap" / "nvtx-7-0000.tsv", 10, 100)
    written = old.stat().st_mtime_ns
    _file(tmp_path / "cap" / "nvtx-7-0001.tsv", 10, 90)
    _file(tmp_path / "cap" / "torch-7-1.json.gz", 10, 95)
    _file(tmp_path / "samples.jsonl", 10, 80)
    _file(tmp_path / "samples-0001.jsonl", 10, 5)
    ring = Ring(tmp_path, Bounds(most_seconds=60), [])
    ring.sweep()
    assert _names(tmp_path) == ["nvtx-7-0001.tsv", "samples-0001.jsonl"]
    assert ring.dropped["cap/nvtx-7.tsv"].until_ns == written
    assert {"cap/torch-7-1.json.gz", "samples.jsonl"} <= ring.dropped.keys()


def test_pieces_that_their_writers_dropped_are_counted_too(tmp_path: Path) -> None:
    gone = _file(tmp_path / "cap" / "stats-7-0003.jsonl", 123)
    _file(tmp_path / "cap" / "stats-7-0004.jsonl", 10)
    ring = Ring(tmp_path, Bounds(), [])
    ring.sweep()
    gone.unlink()
    ring.sweep()
    ring.sweep()
    assert (ring.dropped["cap/stats-7.jsonl"].pieces, ring.dropped["cap/stats-7.jsonl"].bytes) == (1, 123)


def test_the_last_piece_of_a_process_that_is_gone_goes_when_it_is_old(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    _file(tmp_path / "cap" / f"host-{dead.pid}.jsonl", 10, 4000)
    _file(tmp_path / "cap" / f"host-{os.getpid()}.jsonl", 10, 4000)
    Ring(tmp_path, Bounds(), []).sweep()
    assert _names(tmp_path) == [f"host-{os.getpid()}.jsonl"]


def can_punch(folder: Path) -> bool:
    """Whether the file system of ``folder`` can give back the beginning of a file."""
    if shutil.which("fallocate") is None:
        return False
    path = _file(folder / "try" / "x", 3 * BLOCK)
    done = subprocess.run(["fallocate", "-p", "-o", "0", "-l", str(BLOCK), str(path)], check=False, capture_output=True)
    shutil.rmtree(folder / "try")
    return done.returncode == 0


def test_the_beginning_of_the_output_is_given_back_while_it_is_written_and_cut_away_at_the_end(tmp_path: Path) -> None:
    if not can_punch(tmp_path):
        pytest.skip("this file system cannot give back the beginning of a file")
    log = tmp_path / "server.log"
    log.touch(0o600)
    ring = Ring(tmp_path, Bounds(most_bytes=8 * 16 * BLOCK), [log])
    with log.open("ab", buffering=0) as file:
        for number in range(3000):
            file.write(f"line {number} {'-' * 90}\n".encode())
            if number % 100 == 0:
                ring.sweep()
        ring.sweep()
        assert log.stat().st_blocks * 512 - RESERVE < 24 * BLOCK  # of 75
    assert log.read_bytes().startswith(b"\0")
    ring.close()
    assert log.stat().st_mode & 0o777 == 0o600
    lines = log.read_text().splitlines()
    first = int(lines[0].split()[1])
    assert [int(line.split()[1]) for line in lines] == list(range(first, 3000))
    assert 14 * BLOCK < log.stat().st_size < 24 * BLOCK
    assert ring.dropped["server.log"].bytes >= first * 90
    assert json.dumps(ring.report())


def test_room_is_kept_for_the_output_and_given_back(tmp_path: Path) -> None:
    log = _file(tmp_path / "server.log", 10)
    ring = Ring(tmp_path, Bounds(), [log])
    ring.sweep()
    if log.stat().st_blocks * 512 < RESERVE:
        pytest.skip("this file system cannot reserve room")
    ring.close()
    assert (log.stat().st_size, log.stat().st_blocks * 512 <= BLOCK) == (10, True)
