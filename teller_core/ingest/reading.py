"""Files in, one :class:`Recording` a capture out: every file goes to the reader of its format."""

import secrets
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from teller_core.data.records import FileRead, Recording
from teller_core.data.scratch import scratch
from teller_core.data.table import UNKNOWN
from teller_core.data.tree import Tree
from teller_core.errors import InputError, TellerError
from teller_core.ingest.files.archives import unpacked
from teller_core.ingest.files.bar import Bar, Tell
from teller_core.ingest.files.opening import allowed_folders, also_within
from teller_core.ingest.files.planning import Group, hosts_of, is_bundle
from teller_core.ingest.files.recognizing import (
    apart,
    bytes_of,
    check_unchanged,
    content_id,
    format_of,
    hashed,
    name_in,
    plan,
    recognized,
    size_in,
)
from teller_core.ingest.files.source import is_compressed, read_head
from teller_core.ingest.files.workers import Nest, Read, Task, read_each, read_here
from teller_core.ingest.formats import FORMATS, UNTRIED
from teller_core.ingest.found import Found, Place
from teller_core.ingest.gather import Gathered
from teller_core.ingest.logs import reader as engine_log
from teller_core.ingest.rotation import age

__all__ = [
    "FORMATS", "UNTRIED", "Group", "How", "Reading", "apart", "bytes_of", "content_id", "format_of", "hashed", "plan",
    "read_group", "read_trees",
]  # fmt: skip

BY_OTHERS = frozenset({engine_log.NAME})
"""Formats whose stamps may lack a year, or a day, which the other files of the capture tell: they are read last."""

LOOKED_AT = 1000
"""Lines at the beginning of a log among which its first stamp is looked for."""


class How(NamedTuple):
    """How to read. ``beside``: the folder beside whose files temporary ones may lie, by default where the system has its own.
    ``jobs``: files read at once, by default as many as pay.
    """

    beside: Path | None = None
    jobs: int | None = None
    keep_prompts: bool = False


AS_USUAL = How()


class Reading(NamedTuple):
    """``trees[i]`` is the tree of ``recording.traces[i]``, and has its trace."""

    recording: Recording
    trees: Sequence[Tree]


@dataclass(frozen=True)
class _Files:
    """The files of a known format, in the order in which they are read, and what reading them needs to know."""

    group: Group
    formats: dict[Path, str]
    places: dict[Path, Path]
    """Where files lie that were in an archive."""
    hosts: dict[Path, str]
    bundle: bool
    salt: bytes
    keep_prompts: bool


def read_group(group: Group, progress: Tell | None = None, *, keep_prompts: bool = False) -> Recording:
    """Everything that the files of ``group`` say, its traces not nested. Reads one file after the other: see
    :func:`read_trees`.
    """
    return _read(group, None, progress, How(keep_prompts=keep_prompts)).recording


def read_trees(group: Group, nest: Nest, progress: Tell | None = None, how: How = AS_USUAL) -> Reading:
    """Everything that the files of ``group`` say, and the trees that ``nest`` makes of its traces.

    ``progress`` hears the name of a file, the bytes read of all files and their sizes together. Large files are read by
    processes of their own; what is found is the same, and in the same order.

    A file that was named itself and cannot be read raises its error. One that was met in a folder is kept as a
    FileRead with a problem (``unknown_file``, ``unreadable_file``, ``broken_file``, or why it was left out): the rest
    of the bundle still counts. Logs come last: stamps without a year take it from the other files.
    """
    return _read(group, nest, progress, how)


def _read(group: Group, nest: Nest | None, progress: Tell | None, how: How) -> Reading:
    gathered = Gathered(Recording(root=group.root))
    formats, others = recognized(group)
    gathered.recording.files.extend(others)
    trees: list[Tree] = []
    with scratch(how.beside) as folder, also_within(folder):
        wanted = {path: group.packed[path] for path in formats if path in group.packed}
        places = unpacked(wanted, folder, _unpacking(progress)) if wanted else {}
        ordered = _ordered(formats, places)
        salt = secrets.token_bytes(16)
        files = _Files(group, ordered, places, hosts_of(group), is_bundle(group.files), salt, how.keep_prompts)
        bar = Bar([path.name for path in ordered], [size_in(group, path) for path in ordered], progress)
        with closing(_in_order(files, gathered, nest, bar, folder=folder, jobs=how.jobs)) as reads:
            for at, (path, read) in enumerate(reads):
                found = _found(read, path in group.given)
                gathered.add(_file_read(files, path, found), found)
                bar.of(at)(bar.sizes[at])
                trees += read.trees
    check_unchanged(group)
    recording = gathered.finish()
    if nest is not None:
        for at in range(len(trees), len(recording.traces)):
            position, trace = recording.traces[at]
            trees.append(nest(trace))
            recording.traces[at] = position, trees[-1].trace
    return Reading(recording, trees)


def _ordered(formats: dict[Path, str], places: dict[Path, Path]) -> dict[Path, str]:
    """Logs last, by the time at which they begin: parts of one that was rotated lie in no order of their names."""
    logs = [path for path, name in formats.items() if name in BY_OTHERS]
    if len(logs) > 1:
        begins = {path: _begin(places.get(path, path)) for path in logs}
        logs.sort(key=lambda path: (begins[path] == UNKNOWN, begins[path], -age(path.name)))
    others = {path: name for path, name in formats.items() if name not in BY_OTHERS}
    return others | {path: formats[path] for path in logs}


def _begin(path: Path) -> int:
    """The first stamp of a log, on whichever clock it has; UNKNOWN where it has none, or cannot be read."""
    try:
        head, near = read_head(path), path.stat().st_mtime_ns
    except (TellerError, OSError):  # whoever reads all of it says why
        return UNKNOWN
    heads = (engine_log.beginning(line, near) for line in head.decode("utf-8", "replace").splitlines()[:LOOKED_AT])
    return next((one.time for one in heads if one is not None and one.time != UNKNOWN and not one.local), UNKNOWN)


def _unpacking(progress: Tell | None) -> Tell | None:
    return progress and (lambda name, done, total: progress(f"unpack {name}", done, total))


def _in_order(
    files: _Files, gathered: Gathered, nest: Nest | None, bar: Bar, *, folder: Path, jobs: int | None
) -> Generator[tuple[Path, Read]]:
    """Each file and what it held: those that tell their own time, then the others."""
    paths = list(files.formats)
    alone = sum(name not in BY_OTHERS for name in files.formats.values())
    first = len(gathered.recording.files)
    for low, high in ((0, alone), (alone, len(paths))):
        if low == alone and high - low > 1 and not gathered.times:
            _peek(files, paths[low:high], gathered, folder)
        tasks = [_task(files, paths[i], first + i, gathered.middle()) for i in range(low, high)]
        notes = [bar.of(i) for i in range(low, high)]
        with closing(read_each(tasks, nest, notes, folder=folder, jobs=jobs)) as reads:
            yield from zip(paths[low:high], reads, strict=True)


def _peek(files: _Files, paths: Sequence[Path], gathered: Gathered, folder: Path) -> None:
    """Take the time from the beginnings of files that may lack a year: one that has it tells it to the others."""
    for path in paths:
        task = _task(files, path, 0, 0)
        try:
            head = read_head(task.path)
        except TellerError:  # whoever reads all of it says why
            continue
        begin = folder / "begin.log"
        begin.write_bytes(head[: head.rfind(b"\n") + 1])
        gathered.note_time(read_here(task._replace(path=begin), None, None).found)
        begin.unlink()


def _task(files: _Files, path: Path, position: int, middle: int) -> Task:
    lies = files.places.get(path, path)
    try:
        about, compressed = lies.stat(), is_compressed(lies)
    except OSError as error:
        why = f"it went away while others were read ({error.strerror})"
        raise InputError(path.name, why, "Import it again when nobody changes it") from None
    host = files.hosts.get(path.parent, "")
    place = Place(
        host, files.bundle, position, middle or about.st_mtime_ns, files.keep_prompts, files.salt, about.st_mtime_ns
    )
    return Task(lies, files.formats[path], place, about.st_size, compressed, allowed_folders())


def _found(read: Read, given: bool) -> Found:
    """What a file held; a problem where it could not be read, which is raised where it was named itself."""
    if read.refusal is None:
        return read.found
    if given:
        raise read.refusal
    found = Found()
    found.problems["broken_file"] += 1
    return found


def _file_read(files: _Files, path: Path, found: Found) -> FileRead:
    return FileRead(
        name_in(files.group, path),
        files.formats[path],
        size_in(files.group, path),
        found.clock,
        found.events,
        found.kept,
        dict(found.other),
        dict(found.problems),
    )
