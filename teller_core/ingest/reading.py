"""Files in, one :class:`Recording` a capture out: every file goes to the reader of its format."""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from teller_core.data.records import FileRead, Recording
from teller_core.errors import FormatError, InputError, LimitError, TellerError
from teller_core.ingest import engine_log, planning
from teller_core.ingest.formats import FORMATS, UNTRIED, reader_of, sniffed
from teller_core.ingest.found import Found, Place, Progress, Read
from teller_core.ingest.gather import Gathered
from teller_core.ingest.planning import Group, hosts_of, is_bundle, shown_name
from teller_core.ingest.source import read_head

__all__ = ["FORMATS", "UNTRIED", "Group", "apart", "content_id", "hashed", "plan", "read_group"]

HASH_BLOCK = 1 << 20
AT_HAND = "Name traces, logs or a recorded bundle"
GroupProgress = Callable[[str, int, int], None]


def plan(paths: Sequence[Path], together: bool = False) -> list[Group]:
    """As :func:`planning.plan`, without the folders that hold no file of a known format: these are named as left out.

    Errors: those of :func:`planning.plan`, and InputError where no folder holds anything known.
    """
    return _without_unknown(planning.plan(paths, together))


def apart(paths: Sequence[Path]) -> list[Group]:
    """As :func:`plan`, each file that was named a capture of its own."""
    return _without_unknown(planning.apart(paths))


def _without_unknown(groups: list[Group]) -> list[Group]:
    known = [group for group in groups if group.given or any(_is_known(path) for path in group.files)]
    if not known:
        names = ", ".join(group.root.name or str(group.root) for group in groups[:3])
        raise InputError(names, "no file in it is of a known format", AT_HAND)
    left = {path: "unknown_file" for group in groups if group not in known for path in group.files}
    first = known[0]
    return [first._replace(skipped={**first.skipped, **left}), *known[1:]]


def _is_known(path: Path) -> bool:
    try:
        return format_of(path) is not None
    except TellerError:
        return True


def read_group(group: Group, progress: GroupProgress | None = None, *, keep_prompts: bool = False) -> Recording:
    """Everything that the files of ``group`` say. ``progress`` is called with a file's name, its bytes read and its size.

    A file that was named itself and cannot be read raises its error. One that was met in a folder is kept as a
    FileRead with a problem (``unknown_file``, ``unreadable_file``, ``broken_file``, or why it was left out): the rest
    of the bundle still counts. Logs come last: stamps without a year take it from the other files.
    """
    gathered = Gathered(Recording(root=group.root))
    known = _recognized(group, gathered.recording)
    hosts, bundle = hosts_of(group), is_bundle(group.files)
    salt = secrets.token_bytes(16)
    for path, (name, read) in sorted(known.items(), key=lambda item: item[1][0] == engine_log.NAME):
        size, near = path.stat().st_size, gathered.middle() or path.stat().st_mtime_ns
        host = hosts.get(path.parent, "")
        written = path.stat().st_mtime_ns
        place = Place(host, bundle, len(gathered.recording.files), near, keep_prompts, salt, written)
        told = partial(_tell, progress, path.name, size) if progress else None
        found = _read(path, read, place, path in group.given, told)
        gathered.add(_file_read(group, path, name, size, found), found)
    return gathered.finish()


def _tell(progress: GroupProgress, name: str, size: int, done: int) -> None:
    progress(name, done, size)


def hashed(group: Group, progress: GroupProgress | None = None) -> Group:
    """``group`` with the hashes of its files of a known format: each is read once for it, and ``progress`` told how far.

    Nothing is parsed. Raises what :func:`read_group` raises for files that cannot be read or are of no known format.
    """
    hashes: dict[Path, str] = {}
    try:
        for path in _recognized(group, Recording()):
            told = partial(_tell, progress, path.name, path.stat().st_size) if progress else None
            hashes[path] = _hash(path, told)
    except OSError as error:
        why = f"one of its files cannot be read ({error.strerror})"
        raise InputError(group.name, why, "Check its permissions") from None
    return group._replace(hashes=hashes)


def content_id(group: Group) -> str:
    """sha256 hex over the hashes of the group's files of a known format: the same content has the same id under any names.

    Raises what :func:`hashed` raises, which is called where the hashes have not been taken.
    """
    hashes = sorted((group.hashes or hashed(group).hashes).values())
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def format_of(path: Path) -> tuple[str, Read] | None:
    """(name, reader) of the format of ``path``; None where it is of none. Errors: InputError, FormatError, LimitError."""
    name = sniffed(read_head(path))
    return (name, reader_of(name)) if name else None


def _recognized(group: Group, recording: Recording) -> dict[Path, tuple[str, Read]]:
    """The files of a known format. Others become FileReads with their problem, or are refused if they were named."""
    known: dict[Path, tuple[str, Read]] = {}
    for path in group.files:
        problem = "unknown_file"
        try:
            format_ = format_of(path)
        except TellerError as error:
            if path in group.given:
                raise
            format_, problem = None, "broken_file" if isinstance(error, FormatError | LimitError) else "unreadable_file"
        if format_ is not None:
            known[path] = format_
        elif path in group.given:
            raise FormatError(path.name, "its content is of no known format", AT_HAND)
        else:
            recording.files.append(_left_out(group, path, problem))
    recording.files.extend(_left_out(group, path, why) for path, why in group.skipped.items())
    if not known:
        raise InputError(group.name, "no file in it is of a known format", AT_HAND)
    return known


def _left_out(group: Group, path: Path, why: str) -> FileRead:
    size = path.lstat().st_size
    return FileRead(_name(group, path), "", size, problems={why: 1})


def _name(group: Group, path: Path) -> str:
    absolute = path.absolute()
    root = group.root.absolute()
    return shown_name(str(absolute.relative_to(root)) if absolute.is_relative_to(root) else path.name)


def _read(path: Path, read: Read, place: Place, given: bool, progress: Progress | None) -> Found:
    try:
        return read(path, place, progress)
    except TellerError:
        if given:
            raise
        found = Found()
        found.problems["broken_file"] += 1
        return found


def _file_read(group: Group, path: Path, name: str, size: int, found: Found) -> FileRead:
    return FileRead(
        _name(group, path),
        name,
        size,
        found.clock,
        found.events,
        found.kept,
        dict(found.other),
        dict(found.problems),
    )


def _hash(path: Path, progress: Progress | None = None) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(HASH_BLOCK):
            digest.update(block)
            if progress:
                progress(file.tell())
    return digest.hexdigest()
