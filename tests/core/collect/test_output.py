"""What a command prints comes through whole, however it was cut on its way; lines of JSON become lines for people."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.collect.output import Shown, _next, _shown, follow, log_line

PIECES = st.lists(
    st.sampled_from([b"{", b'{"a"', b"}", b"\n", b"plain", b"\r", b"\xff", b"{}\n", b"\n\n"]), max_size=30
)


def _followed(folder: Path, pieces: list[bytes]) -> bytes:
    """What a reader gets of ``pieces``, written one after the other."""
    path = folder / "log"
    path.write_bytes(b"")
    stop = threading.Event()
    with (folder / "shown").open("wb") as shown:
        given = (path, shown.fileno(), stop, lambda line: b"<" + line + b">")
        thread = threading.Thread(target=follow, args=given)
        thread.start()
        with path.open("ab", buffering=0) as file:
            for piece in pieces:
                file.write(piece)
        stop.set()
        thread.join()
    return (folder / "shown").read_bytes()


@pytest.mark.parametrize("cut", range(1, 12))
def test_an_object_in_the_middle_of_a_line_that_was_shown_already_stays_as_it_is(cut: int) -> None:
    text = b'a{"b"}\n{"c"}\nd'
    first, held = _shown(text[:cut], False, lambda line: b"<" + line + b">")
    begun = not held and not (first or b"\n").endswith(b"\n")
    second, held = _shown(held + text[cut:], begun, lambda line: b"<" + line + b">")
    assert first + second + held == b'a{"b"}\n<{"c"}>\nd'


@given(PIECES)
def test_every_byte_comes_through_and_only_whole_lines_of_json_are_changed(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("output")
    *lines, last = b"".join(pieces).split(b"\n")
    expected = b"".join((b"<" + line + b">" if line.startswith(b"{") else line) + b"\n" for line in lines) + last
    assert _followed(folder, pieces) == expected


@pytest.mark.parametrize(
    "line",
    [
        b'{"created": 1e18, "message": "x"}',
        b'{"created": NaN, "message": "x"}',
        b'{"created": 1e400, "message": "x"}',
        b'{"created": "1", "message": ' + b"[" * 60_000,
        b'{"created": 1, "message": "x", "process": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"created": [], "message": "x"}',
        b'{"created": 1}',
        b"{",
    ],
)
def test_a_line_of_json_that_no_engine_writes_stays_as_it_is_or_becomes_one_line(line: bytes) -> None:
    assert log_line(line) == line or (b"\n" not in log_line(line) and log_line(line).endswith(b" x"))
    assert log_line(b'{"created": 1, "message": "shown"}').endswith(b"shown")


def test_a_line_that_does_not_end_is_shown_when_it_is_long(tmp_path: Path) -> None:
    text = b"{" + b"x" * 70_000
    assert _followed(tmp_path, [text]) == text


def test_a_file_that_is_found_empty_and_then_filled_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, so_far = tmp_path / "log", Shown()
    path.write_bytes(b"line1\n")
    with path.open("rb", buffering=0) as file:
        assert _next(file, so_far) == b"line1\n"
        path.write_bytes(b"")
        assert _next(file, so_far) == b""
        path.write_bytes(b"line2\n")
        assert _next(file, so_far) == b"line2\n"
