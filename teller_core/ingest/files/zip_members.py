"""What a zip archive holds, through the standard library, within bounds: stored and deflated members alone."""

import calendar
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from teller_core.errors import FormatError, LimitError
from teller_core.ingest.files.members import BLOCK, Entry, Member
from teller_core.ingest.files.opening import Opened

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
MAX_DIRECTORY = 16 << 20
"""Bytes of the list of members: the standard library holds it whole, in a hundred times the memory."""
END, END_64, TAIL = b"PK\x05\x06", b"PK\x06\x07", 65_557
"""The end record, what stands before it in a large archive, and the longest end: 22 bytes and a comment."""
AGAIN = "Copy or pack the archive again"
BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OverflowError, RuntimeError, ValueError, struct.error,
)  # fmt: skip
"""What the standard library raises for a damaged archive."""


def is_zip(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a zip archive."""
    return head.startswith(MAGIC)


def zip_members(path: Path) -> Generator[Member]:
    """The members of the archive, in the order of its list. The bytes of one are gone when the next is asked for.

    Errors: FormatError for an archive that is damaged; LimitError for a list of members over MAX_DIRECTORY.
    """
    with BufferedReader(Opened(path)) as file:
        _check_directory(path, file)
        yield from _members(path, file)


def _members(path: Path, file: BinaryIO) -> Generator[Member]:
    try:
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                entry = Entry(info.filename, info.file_size, _time(info), _why(info))
                yield Member(entry, iter(()) if entry.why else _body(path, archive, info), info.header_offset)
    except BROKEN:
        raise FormatError(path.name, "the archive is damaged", AGAIN) from None


def _body(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    try:
        with archive.open(info) as file:
            while block := file.read(BLOCK):
                yield block
    except BROKEN:
        raise FormatError(path.name, "the archive is damaged", AGAIN) from None


def _why(info: zipfile.ZipInfo) -> str:
    mode = info.external_attr >> 16
    if info.is_dir():
        return "folder"
    if stat.S_ISLNK(mode):
        return "link_in_archive"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "no_regular_file"
    if info.flag_bits & 1:
        return "encrypted_member"
    return "" if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) else "unknown_compression"


def _time(info: zipfile.ZipInfo) -> int:
    """Unix ns, of an unknown zone; 0 for a date that there is not."""
    year, month, day, *_ = info.date_time
    return calendar.timegm(info.date_time) * 1_000_000_000 if 1 <= month <= 12 and 1 <= day <= 31 and year else 0


def _check_directory(path: Path, file: BinaryIO) -> None:
    """Refuse an archive whose list of members is too long to be held. Looks where the standard library looks."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - TAIL - 20))
    tail = file.read()
    at = len(tail) - 22 if tail[-22:].startswith(END) and tail.endswith(b"\0\0") else tail.rfind(END)
    if at < 0 or len(tail) < at + 22:
        raise FormatError(path.name, "the archive ends early", AGAIN)
    (listed,) = struct.unpack_from("<I", tail, at + 12)
    if at >= 20 and tail[at - 20 : at].startswith(END_64):
        file.seek(min(struct.unpack_from("<Q", tail, at - 12)[0], size))
        large = file.read(56)
        listed = struct.unpack_from("<Q", large, 40)[0] if len(large) == 56 else listed
    if listed > MAX_DIRECTORY:
        raise LimitError(path.name, f"its list of members is over {MAX_DIRECTORY >> 20} MiB", "Pack fewer files")
