"""Archives as folders: what is in one, and the files of it that are wanted, written out under names of our own.

Recognized by content: zip, and tar as it is or packed with gzip or zstd. Nothing of an archive is trusted: a member's path
decides how files belong together and never where anything is written, links and devices are left out, and what it claims or
expands to is bounded.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from teller_core.data.means import short_of
from teller_core.errors import FormatError, InputError, LimitError, OutOfRoom, TellerError
from teller_core.ingest.files.members import Entry, Member
from teller_core.ingest.files.opening import Opened
from teller_core.ingest.files.source import (
    EXPANSION_GRACE,
    MAX_EXPANDED_BYTES,
    MAX_EXPANSION,
    begin_of,
    expanded_head,
    open_source,
    read_head,
)
from teller_core.ingest.files.tar_members import is_tar, tar_members
from teller_core.ingest.files.zip_members import is_zip, zip_members
from teller_core.ingest.formats import sniffed

MAX_MEMBERS = 20_000
"""Members of one archive, folders included. More is a disk, not a capture."""
HEAD = 1 << 17
"""Stored bytes of a member that its format is told from."""
LONGEST_PATH, LONGEST_NAME = 4096, 255
"""Bytes that a file system takes."""
SPARE = 64 << 20
"""Bytes that unpacking leaves free on the disk."""

Tell = Callable[[str, int, int], None]


class Packed(NamedTuple):
    """A file in an archive: its place there, its size in bytes, Unix ns when it was written, its sha256 and its format, empty
    where that is unknown.
    """

    archive: Path
    number: int
    size: int
    time: int
    hash: str
    format: str


class Listing(NamedTuple):
    """What an archive holds: files by their path in it, and why others are left out, by their name."""

    files: Mapping[str, Packed]
    skipped: Mapping[str, str]


def is_archive(path: Path) -> bool:
    """Whether ``path`` is an archive. A file that cannot be read is none: whoever reads it says why."""
    try:
        return is_zip(begin_of(path)) or is_tar(read_head(path, 512))
    except OutOfRoom:
        raise
    except TellerError:
        return False


def listed(path: Path, tell: Tell | None = None) -> Listing:
    """What the archive at ``path`` holds. Every file is read once and hashed; nothing is written.

    Of two files with one path the later counts, as where archives are added to. Errors: FormatError for a damaged archive,
    LimitError for one that holds too much or expands too far.
    """
    files: dict[str, Packed] = {}
    skipped: dict[str, str] = {}
    total, on_disk = 0, path.stat().st_size
    with closing(_members(path)) as members:
        for number, member in enumerate(members):
            if number >= MAX_MEMBERS:
                raise LimitError(path.name, f"it holds over {MAX_MEMBERS} files", "Pack the files of one capture")
            if tell:
                tell(path.name, min(member.at, on_disk), on_disk)
            name, why = _judged(member.entry)
            if why:
                skipped |= {} if why == "folder" else {name: why}
                continue
            digest, head, size = _read(member, path, total, on_disk)
            total += size
            if why := _unwanted(name, head, size):
                skipped[name] = why
            else:
                files[name] = Packed(path, number, size, member.entry.time, digest, _format(name, head))
    clashing = [name for name in files if any(str(above) in files for above in PurePosixPath(name).parents)]
    return Listing(
        {name: files[name] for name in files if name not in clashing}, skipped | dict.fromkeys(clashing, "unsafe_path")
    )


def unpacked(packed: Mapping[Path, Packed], folder: Path, tell: Tell | None = None) -> dict[Path, Path]:
    """Where the files of ``packed`` lie after they have been written into ``folder``, which is for this alone.

    Errors: OutOfRoom where the disk has no room; FormatError for an archive that is damaged or has changed; InputError.
    """
    needed = sum(member.size for member in packed.values())
    if needed + SPARE > shutil.disk_usage(folder).free:
        why = f"unpacking its files takes {needed >> 20} MiB, and the disk of the database has less"
        raise OutOfRoom(next(iter(packed.values())).archive.name, why, "Free some space, or name another with --db")
    places: dict[Path, Path] = {}
    done = 0
    for at, archive in enumerate(sorted({member.archive for member in packed.values()})):
        wanted = {member.number: path for path, member in packed.items() if member.archive == archive}
        with closing(_members(archive)) as members:
            for number, (_, body, _) in enumerate(members):
                if number in wanted:
                    path = wanted[number]
                    target = folder / f"{at}-{number}" / path.name
                    _write(body, target, packed[path])
                    places[path] = target
                    done += packed[path].size
                    if tell:
                        tell(archive.name, done, needed)
    if missing := packed.keys() - places.keys():
        raise _changed(packed[next(iter(missing))])
    return places


def _members(path: Path) -> Generator[Member]:
    with Opened(path) as file:
        zipped = is_zip(file.read(4))
    if zipped:
        yield from zip_members(path)
    else:
        with open_source(path) as source:
            yield from tar_members(source)


def _judged(entry: Entry) -> tuple[str, str]:
    """The path of a member within its archive, and why it is left out, empty where it is not."""
    parts = [part for part in entry.name.replace("\\", "/").split("/") if part not in ("", ".")]
    name = "/".join(parts)
    if entry.why:
        return name, entry.why
    odd = not parts or ".." in parts or entry.name.startswith(("/", "\\")) or parts[0].endswith(":") or "\0" in name
    sizes = [len(os.fsencode(part)) for part in parts] if not odd else []
    if odd or max(sizes) > LONGEST_NAME or sum(sizes) > LONGEST_PATH:
        return entry.name.lstrip("/\\") or "?", "unsafe_path"
    return name, ""


def _read(member: Member, path: Path, before: int, on_disk: int) -> tuple[str, bytes, int]:
    """(sha256 hex, the first bytes, how many there are) of a member; ``before``: bytes of the members before it."""
    digest, head, size = hashlib.sha256(), b"", 0
    for block in member.body:
        digest.update(block)
        head += block[: HEAD - len(head)]
        size += len(block)
        if before + size > MAX_EXPANDED_BYTES:
            raise LimitError(path.name, f"over {MAX_EXPANDED_BYTES >> 30} GiB when expanded", "Pack less at once")
        if before + size > max(EXPANSION_GRACE, MAX_EXPANSION * on_disk):
            raise LimitError(path.name, f"expands over {MAX_EXPANSION} times", "Expand it yourself if you trust it")
    return digest.hexdigest(), head, size


def _unwanted(name: str, head: bytes, size: int) -> str:
    if not size:
        return "empty_file"
    try:
        inner = expanded_head(PurePosixPath(name).name, head, 512)
    except FormatError:
        return "broken_file"
    return "archive_in_archive" if is_zip(head) or is_tar(inner) else ""


def _format(name: str, head: bytes) -> str:
    try:
        return sniffed(expanded_head(PurePosixPath(name).name, head))
    except FormatError:
        return ""


def _write(body: Iterable[bytes], target: Path, packed: Packed) -> None:
    size = 0
    try:
        target.parent.mkdir(mode=0o700, exist_ok=True)
        with target.open("xb") as file:
            for block in body:
                size += file.write(block)
                if size > packed.size:
                    break
        os.utime(target, ns=(packed.time, packed.time))
    except OSError as error:
        if (refusal := short_of(packed.archive.name, error)) is not None:
            raise refusal from None
        why = f"a file of it cannot be written ({error.strerror})"
        raise InputError(packed.archive.name, why, "Unpack it yourself and name the folder") from None
    if size != packed.size:
        raise _changed(packed)


def _changed(packed: Packed) -> FormatError:
    return FormatError(packed.archive.name, "it changed while it was read", "Import it again when it is whole")
