"""Which files of a capture are of a known format, and the id that their content gives it."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from teller_core.data.records import FileRead
from teller_core.errors import FormatError, InputError, LimitError, OutOfRoom, TellerError
from teller_core.ingest.files import planning
from teller_core.ingest.files.archives import is_archive
from teller_core.ingest.files.bar import Bar
from teller_core.ingest.files.opening import Opened
from teller_core.ingest.files.planning import Group, shown_name
from teller_core.ingest.files.source import read_head
from teller_core.ingest.formats import reader_of, sniffed
from teller_core.ingest.found import Read

HASH_BLOCK = 1 << 20
AT_HAND = "Name traces, logs (access logs with durations, as $request_time) or a recorded bundle"
Tell = Callable[[str, int, int], None]


def plan(paths: Sequence[Path], together: bool = False, tell: Tell | None = None) -> list[Group]:
    """As :func:`planning.plan`, without the folders that hold no file of a known format: these are named as left out.

    Errors: those of :func:`planning.plan`, and InputError where no folder holds anything known.
    """
    return _without_unknown(planning.plan(paths, together, tell))


def apart(paths: Sequence[Path], tell: Tell | None = None) -> list[Group]:
    """As :func:`plan`, each file that was named a capture of its own."""
    return _without_unknown(planning.apart(paths, tell))


def _without_unknown(groups: list[Group]) -> list[Group]:
    known = [group for group in groups if group.given or any(_is_known(group, path) for path in group.files)]
    if not known:
        names = ", ".join(group.root.name or str(group.root) for group in groups[:3])
        archives = any(is_archive(path) for group in groups for path in group.files if path not in group.packed)
        wanted = "Name the archives themselves" if archives else AT_HAND
        raise InputError(names, "no file in it is of a known format", wanted)
    left = {path: "unknown_file" for group in groups if group not in known for path in group.files}
    first = known[0]
    return [first._replace(skipped={**first.skipped, **left}), *known[1:]]


def _is_known(group: Group, path: Path) -> bool:
    if path in group.packed:
        return bool(group.packed[path].format)
    try:
        return format_of(path) is not None
    except TellerError:
        return True


def format_of(path: Path) -> tuple[str, Read] | None:
    """(name, reader) of the format of ``path``; None where it is of none. Errors: InputError, FormatError, LimitError."""
    name = sniffed(read_head(path))
    return (name, reader_of(name)) if name else None


def recognized(group: Group) -> tuple[dict[Path, str], list[FileRead]]:
    """The format of each file of a known one, and how the others are told: with their problem.

    Errors: InputError or FormatError for a file that was named itself and is unreadable or of no known format, and where none
    is known.
    """
    known: dict[Path, str] = {}
    others: list[FileRead] = []
    for path in group.files:
        name, problem = _judged(group, path)
        if name:
            known[path] = name
        elif path in group.given:
            raise FormatError(path.name, "its content is of no known format", AT_HAND)
        else:
            others.append(_left_out(group, path, problem))
    others += [_left_out(group, path, why) for path, why in group.skipped.items()]
    if not known:
        raise InputError(group.name, "no file in it is of a known format", AT_HAND)
    return known, others


def _judged(group: Group, path: Path) -> tuple[str, str]:
    """(the format of a file, empty where it is of none; what is then its problem)."""
    if path in group.packed:
        return group.packed[path].format, "unknown_file"
    try:
        name = sniffed(read_head(path))
    except TellerError as error:
        if path in group.given or isinstance(error, OutOfRoom):
            raise
        return "", "broken_file" if isinstance(error, FormatError | LimitError) else "unreadable_file"
    return name, "" if name else "archive_in_folder" if is_archive(path) else "unknown_file"


def hashed(group: Group, tell: Tell | None = None) -> Group:
    """``group`` with the hashes of its files of a known format: each is read once for it, and ``tell`` told how far.

    Nothing is parsed. Raises what :func:`recognized` raises.
    """
    known, _ = recognized(group)
    plain = [path for path in known if path not in group.packed]
    hashes = {path: group.packed[path].hash for path in known if path in group.packed}
    try:
        seen = {path: path.stat() for path in plain}
        bar = Bar([path.name for path in plain], [about.st_size for about in seen.values()], tell)
        hashes |= {path: _hash(path, bar.of(at)) for at, path in enumerate(plain)}
    except OSError as error:
        why = f"one of its files cannot be read ({error.strerror})"
        raise InputError(group.name, why, "Check its permissions") from None
    return group._replace(hashes=hashes, seen=seen)


def check_unchanged(group: Group) -> None:
    """Refuse a group of which a file has changed since its hashes were taken: the id would stand for what was not read. Files
    that have grown are logs that are still written, and what was read of them stays true.

    Errors: InputError.
    """
    for path, before in group.seen.items():
        try:
            now = path.stat()
        except OSError:
            now = None
        same = now is not None and (now.st_dev, now.st_ino) == (before.st_dev, before.st_ino)
        if (
            now is None
            or not same
            or now.st_size < before.st_size
            or (now.st_size == before.st_size and now.st_mtime_ns != before.st_mtime_ns)
        ):
            raise InputError(path.name, "it changed while it was read", "Import it again when nobody changes it")


def content_id(group: Group) -> str:
    """sha256 hex over the hashes of the group's files of a known format: the same content has the same id under any names.

    Raises what :func:`hashed` raises, which is called where the hashes have not been taken.
    """
    hashes = sorted((group.hashes or hashed(group).hashes).values())
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def name_in(group: Group, path: Path) -> str:
    """What a file is called in the report of its capture."""
    absolute = path.absolute()
    root = group.root.absolute()
    return shown_name(str(absolute.relative_to(root)) if absolute.is_relative_to(root) else path.name)


def size_in(group: Group, path: Path) -> int:
    """Bytes of a file as stored; 0 for what is in an archive and is left out of it."""
    if path in group.packed:
        return group.packed[path].size
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def bytes_of(group: Group) -> int:
    """Bytes of the files of a capture, those of an unknown format included."""
    return sum(size_in(group, path) for path in group.files)


def _left_out(group: Group, path: Path, why: str) -> FileRead:
    return FileRead(name_in(group, path), "", size_in(group, path), problems={why: 1})


def _hash(path: Path, progress: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    with Opened(path) as file:
        while block := file.read(HASH_BLOCK):
            digest.update(block)
            progress(file.tell())
    return digest.hexdigest()
