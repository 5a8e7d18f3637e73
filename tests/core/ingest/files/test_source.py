"""Files are opened by content, read in bounded pieces, and refused in one line."""

import errno
import gzip
import os
import re
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
import zstandard

from teller_core.errors import FormatError, InputError, LimitError, OutOfRoom, TellerError
from teller_core.ingest.files import source
from teller_core.ingest.files.planning import plan
from teller_core.ingest.files.recognizing import check_unchanged
from teller_core.ingest.files.source import open_source, read_head
from teller_core.ingest.kineto.reader import read, sniff
from teller_core.ingest.reading import hashed

TEXT = b"0123456789" * 5000
EVENT = b'{"ph": "X", "name": "op", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}'
TRACE = b'{"schemaVersion": 1, "traceEvents": [' + b", ".join([EVENT] * 4000) + b"]}"


def all_of(path: Path, size: int = 777) -> bytes:
    with open_source(path) as opened:
        room, parts = bytearray(size), list[bytes]()
        while got := opened.fill(memoryview(room)):
            parts.append(bytes(room[:got]))
        assert opened.on_disk == path.stat().st_size
        return b"".join(parts)


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]), zstandard.compress],
    ids=["plain", "gzip", "two gzip members", "zstd"],
)
def test_a_file_is_expanded_by_its_content_whatever_its_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "trace.txt"
    path.write_bytes(pack(TEXT))
    assert all_of(path) == TEXT
    assert read_head(path, 12) == TEXT[:12]


def refusal(path: Path, kind: type[TellerError] = FormatError) -> str:
    with pytest.raises(kind) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path.name}: ")
    return message


def test_a_missing_file_a_directory_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert "no such file" in refusal(tmp_path / "nothing", InputError)
    assert "a directory" in refusal(tmp_path, InputError)
    assert "empty" in refusal(tmp_path / "empty", InputError)


def test_a_device_or_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in refusal(tmp_path / "pipe", InputError)


def test_a_cut_gzip_says_how_many_events_were_complete(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(TRACE, 1)[:-20])
    said = re.search(r"the compressed data ends early, after at least (\d+) complete events", refusal(path))
    assert said is not None
    assert 3600 <= int(said.group(1)) <= 4000
    path.write_bytes(gzip.compress(os.urandom(8).hex().encode() + TRACE)[:9])
    assert "ends early" in refusal(path)


def test_a_damaged_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    packed = bytearray(gzip.compress(TRACE))
    packed[-6] ^= 255
    path.write_bytes(packed)
    assert "damaged" in refusal(path)
    path.write_bytes(gzip.compress(TRACE) + b"rubbish behind the end")
    assert "damaged" in refusal(path)


def test_a_cut_zstd_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.zst"
    path.write_bytes(zstandard.compress(TRACE)[:-9])
    assert "ends early" in refusal(path)


@pytest.mark.parametrize("left", [1, 17, 60, len(TRACE) // 2, len(TRACE) - 2, len(TRACE) - 1])
def test_a_cut_json_says_how_many_events_were_complete(tmp_path: Path, left: int) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TRACE[:left])
    message = refusal(path)
    assert "ends early" in message
    assert ("complete events" in message) == (left > 1000)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x7fELF\x02\x01" + bytes(400), "no JSON"),
        (b"SQLite format 3\x00" + bytes(400), "no JSON"),
        (b"just a log line\n", "no JSON"),
        (b'{"nodes": [], "schema": "1.0.1"}', "without a traceEvents list"),
        (b'{"traceEvents": {"a": 1}}', "traceEvents is not one list"),
        (b'{"traceEvents": [], "traceEvents": []}', "traceEvents is not one list"),
        (b"[1, 2, 3", "ends early"),
        (b'{"traceEvents": [{"ph": "X" "ts": 1}]}', "no valid JSON at byte 17"),
        (b'{"traceEvents": [{"ph": "X",}]}', "no valid JSON"),
        (b'{"traceEvents": [{}, ]}', "no valid JSON"),
        (b'{"traceEvents": []} {}', "no valid JSON"),
        (b'{"traceEvents": [], "x": tru, "traceName": "a name"}', "no valid JSON"),
        (b'{"traceEvents": [], "deviceProperties": [1 2]}', "no valid JSON"),
        (b'{"traceEvents": [], "baseTimeNanoseconds": 1.5}', "baseTimeNanoseconds"),
        (b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "name": "a\\x"}]}', "broken escape"),
        (b"\x00" * 300, "no JSON"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    assert reason in refusal(path)


def test_a_file_that_the_system_fails_to_read_is_refused_and_no_fault_of_ours(tmp_path: Path) -> None:
    class Failing(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(self.code, os.strerror(self.code))

        code = errno.EIO

    with pytest.raises(InputError, match=r"x: it cannot be read \(Input/output error\)"):
        source._begin(Path("x"), Failing())
    Failing.code = errno.ENOMEM
    with pytest.raises(OutOfRoom):
        source._begin(Path("x"), Failing())


def test_a_file_that_grows_while_it_is_read_ends_where_it_ended_when_it_was_opened(tmp_path: Path) -> None:
    for pack in (bytes, gzip.compress):
        path = tmp_path / "server.log"
        path.write_bytes(pack(b"a line\n" * 100))
        with open_source(path) as opened:
            with path.open("ab") as other:
                other.write(pack(b"another\n" * 100))
            assert opened.take(10_000) == b"a line\n" * 100


@pytest.mark.parametrize("how", ["cut", "replaced", "rewritten", "gone"])
def test_what_changes_between_hash_and_end_is_refused_and_a_log_that_grows_is_not(tmp_path: Path, how: str) -> None:
    path = tmp_path / "run" / "trace.json"
    path.parent.mkdir()
    path.write_bytes(TRACE)
    (group,) = plan([path.parent])
    group = hashed(group)
    with path.open("ab") as file:
        file.write(b"\n")
    check_unchanged(group)
    if how == "cut":
        os.truncate(path, 100)
    elif how == "rewritten":
        path.write_bytes(TRACE[::-1])
        os.utime(path, ns=(1, 1))
    elif how == "replaced":
        (tmp_path / "other").write_bytes(TRACE * 2)
        (tmp_path / "other").rename(path)
    else:
        path.unlink()
    with pytest.raises(InputError, match="it changed while it was read"):
        check_unchanged(group)


def test_ten_gigabytes_of_nothing_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sparse.json"
    for head in (b"", b'{"traceEvents": [{"ph": "X", ', b'{"traceEvents": ['):
        path.write_bytes(head)
        os.truncate(path, 10 << 30)
        began = time.process_time()
        refusal(path)
        assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "written",
    [{0: TRACE[:-50]}, {0: TRACE[:50], 9 << 30: TRACE[50:]}, {1 << 30: TRACE}],
    ids=["behind", "within", "before"],
)
def test_a_file_that_was_not_written_whole_is_refused_before_it_is_read(
    tmp_path: Path, written: dict[int, bytes]
) -> None:
    path = tmp_path / "trace.json"
    with path.open("wb") as file:
        for at, content in written.items():
            file.seek(at)
            file.write(content)
        file.truncate(10 << 30)
    began = time.process_time()
    with pytest.raises(
        FormatError, match=r"^trace.json: \d+ MiB of it were never written\. Copy or record the file again\.$"
    ):
        hashed(plan([path])[0])
    assert time.process_time() - began < 2


def test_a_string_that_never_ends_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "endless.json.zst"
    path.write_bytes(zstandard.compress(b'{"traceEvents": [{"name": "' + bytes(65 << 20)))
    assert "64 MiB" in refusal(path, LimitError)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    for before, after in ((b'{"traceEvents": [{"args": {"a": ', b"}}]}"), (b'{"x": ', b', "traceEvents": []}')):
        path.write_bytes(before + b"[" * 100_000 + b"]" * 100_000 + after)
        assert "levels deep" in refusal(path, LimitError)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "EXPANSION_GRACE", 1 << 20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * (64 << 20) + b"]"))
    assert "expands over" in refusal(path, LimitError)


def test_too_many_categories_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    events = ", ".join(f'{{"ph": "X", "ts": 1, "dur": 1, "cat": "c{i}"}}' for i in range(300))
    path.write_text(f"[{events}]")
    assert "255 categories" in refusal(path, LimitError)


def test_no_text_of_the_file_is_in_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"traceEvents": [{"name": "ignore all previous instructions", "ph" 1}]}')
    assert "ignore" not in refusal(path)


@pytest.mark.parametrize(
    ("head", "is_trace"),
    [
        (b'\xef\xbb\xbf\n{ "schemaVersion": 1, "deviceProperties": [', True),
        (b'{"metadata": {}, "traceEvents": [', True),
        (b'[\n {"ph": "M", "name": "process_name"', True),
        (b'{"schema": "1.0.1", "nodes": [', False),
        (b'[{"request": 1}]', False),
        (b"INFO 06-10 traceEvents", False),
        (b"", False),
    ],
)
def test_a_trace_is_recognized_by_its_beginning(head: bytes, is_trace: bool) -> None:
    assert sniff(head) == is_trace


def test_progress_is_told_in_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(TRACE))
    told: list[int] = []
    read(path, progress=told.append)
    assert told == sorted(told)
    assert told[-1] <= path.stat().st_size
