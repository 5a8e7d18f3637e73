"""What a tar archive holds, in one pass over its expanded bytes: ustar, GNU and POSIX (pax) headers.

The standard library reads the headers. It does not bound what long names and pax records may claim, so the walk is here.
"""

import tarfile
from collections.abc import Generator, Iterator

from teller_core.errors import FormatError, LimitError
from teller_core.ingest.files.members import BLOCK, Entry, Member
from teller_core.ingest.files.source import Source

RECORD = 512
"""Bytes of a header, and what everything is rounded up to."""
MAX_HEADER = 1 << 20
"""Bytes of a long name, or of the pax records of one member. Paths have a few hundred."""
AGAIN = "Copy or pack the archive again"


def is_tar(head: bytes) -> bool:
    """Whether expanded bytes that begin with ``head`` are those of a tar archive: its first header has a right checksum."""
    try:
        tarfile.TarInfo.frombuf(head[:RECORD], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def tar_members(source: Source) -> Generator[Member]:
    """The members of the archive, in order. The bytes of one are gone when the next is asked for.

    Errors: FormatError for an archive that is damaged or ends early; LimitError; those of :meth:`Source.fill`.
    """
    said: dict[str, str] = {}
    while (header := _header(source)) is not None:
        if header.type in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
            said |= _pax(_whole(source, header.size), source)
        elif header.type == tarfile.GNUTYPE_LONGNAME:
            said["path"] = _whole(source, header.size).rstrip(b"\0").decode("utf-8", "surrogateescape")
        elif header.type in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
            _whole(source, header.size)
        else:
            size = _size(header, said, source)
            body = _body(source, size)
            entry = Entry(said.get("path", header.name), size, _time(header, said), _why(header, said))
            yield Member(entry, body, source.on_disk)
            for _ in body:
                pass
            _skip(source, -size % RECORD)
            said = {}


def _header(source: Source) -> tarfile.TarInfo | None:
    """The next header; None at the end."""
    record = source.take(RECORD)
    if not record.strip(b"\0"):
        return None
    if len(record) < RECORD:
        raise _cut(source)
    try:
        header = tarfile.TarInfo.frombuf(record, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        raise FormatError(source.path.name, "the archive is damaged", AGAIN) from None
    more = header.type == tarfile.GNUTYPE_SPARSE and record[482]
    while more:  # old GNU archives list the parts of a sparse file in further records
        more = _exactly(source, RECORD)[504]
    return header


def _size(header: tarfile.TarInfo, said: dict[str, str], source: Source) -> int:
    """Bytes of data that follow a header."""
    if not header.isreg() and header.type in tarfile.SUPPORTED_TYPES:
        return 0
    told = said.get("size", "")
    size = int(told) if told.isascii() and told.isdecimal() and len(told) < 19 else header.size
    if size < 0:
        raise FormatError(source.path.name, "the archive is damaged", AGAIN)
    return size


def _time(header: tarfile.TarInfo, said: dict[str, str]) -> int:
    """Unix ns when the member was written last, in whole seconds."""
    told = said.get("mtime", "").partition(".")[0]
    seconds = int(told) if told.isascii() and told.isdecimal() and len(told) < 12 else int(header.mtime)
    return min(max(seconds, 0), 1 << 33) * 1_000_000_000


def _why(header: tarfile.TarInfo, said: dict[str, str]) -> str:
    if header.isdir():
        return "folder"
    if header.issym() or header.islnk():
        return "link_in_archive"
    if header.type == tarfile.GNUTYPE_SPARSE or any(key.startswith("GNU.sparse.") for key in said):
        return "sparse_file"
    return "" if header.isreg() else "no_regular_file"


def _pax(records: bytes, source: Source) -> dict[str, str]:
    """The pax records ``LENGTH KEY=VALUE\\n`` as a mapping."""
    found: dict[str, str] = {}
    at = 0
    while at < len(records) and records[at]:
        digits = records[at : at + 8].partition(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        key, equals, value = records[at + len(digits) + 1 : at + length].partition(b"=")
        if length <= len(digits) + 1 or not equals or not value.endswith(b"\n"):
            raise FormatError(source.path.name, "the archive is damaged", AGAIN)
        found[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
        at += length
    return found


def _whole(source: Source, size: int) -> bytes:
    if not 0 <= size <= MAX_HEADER:
        raise LimitError(source.path.name, "a header of the archive is over 1 MiB", AGAIN)
    data = _exactly(source, size)
    _skip(source, -size % RECORD)
    return data


def _body(source: Source, size: int) -> Iterator[bytes]:
    while size:
        block = _exactly(source, min(size, BLOCK))
        size -= len(block)
        yield block


def _skip(source: Source, size: int) -> None:
    for _ in _body(source, size):
        pass


def _exactly(source: Source, size: int) -> bytes:
    data = source.take(size)
    if len(data) < size:
        raise _cut(source)
    return data


def _cut(source: Source) -> FormatError:
    return FormatError(source.path.name, "the archive ends early", AGAIN)
