"""From paths to captures: which files belong together, and which are left out, by name."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from teller_core.errors import InputError, LimitError

MAX_FILES = 20_000
"""Files of one call. More is a disk, not a capture."""
CONTROL = frozenset({"PROFILE"})
"""Files by which a recorder is steered. They hold nothing of the service."""


class Group(NamedTuple):
    """The files of one capture. ``files`` are sorted; ``skipped`` says by name why others were left out."""

    name: str
    root: Path
    files: list[Path]
    skipped: Mapping[Path, str] = {}
    given: frozenset[Path] = frozenset()
    """Files that were named themselves: one that cannot be read refuses the call."""
    hashes: Mapping[Path, str] = {}
    """sha256 hex of the files of a known format, where they have been taken: see :func:`reading.hashed`."""


def plan(paths: Sequence[Path], together: bool = False) -> list[Group]:
    """The captures that ``paths`` hold.

    A folder that is a bundle (``bundle.json``, or any ``host-*.jsonl`` below it) is one capture; another folder is one
    capture for each folder in it that holds files. Files of one folder named in one call are one capture. With
    ``together`` everything is one capture. Hidden files, unfinished ones, and what is no regular file are left out of
    folders and named in ``skipped``.

    Errors: InputError for a path that is not there, cannot be read, is no file or folder, or holds no files.
    """
    if not paths:
        raise InputError("import", "no path was given", "Name files or a folder")
    groups: list[Group] = []
    loose: dict[Path, list[Path]] = {}
    for path in paths:
        if is_folder(path):
            groups += _folder(path)
        else:
            loose.setdefault(path.parent.absolute(), []).append(path)
    groups += [_files(folder, files) for folder, files in loose.items()]
    return [_joined(groups)] if together and len(groups) > 1 else groups


def apart(paths: Sequence[Path]) -> list[Group]:
    """As :func:`plan`, each file named a capture of its own."""
    groups: list[Group] = []
    for path in paths:
        groups += _folder(path) if is_folder(path) else [_files(path.parent.absolute(), [path])]
    return groups


def is_folder(path: Path) -> bool:
    """Whether ``path`` is a folder. Errors: InputError where it is neither a folder nor a regular file, or not there."""
    name = path.name or str(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(name, "there is no such file", "Check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not valid"
        raise InputError(name, f"it cannot be read ({reason})", "Check the path and its permissions") from None
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise InputError(name, "it is no regular file", "Name a file or a folder")
    return stat.S_ISDIR(mode)


def _folder(root: Path) -> list[Group]:
    files, skipped = _found(root)
    if not files:
        raise InputError(
            root.name or str(root), "the folder holds no files to read", "Name a folder with traces or logs"
        )
    if is_bundle(files):
        return [Group(shown_name(root.absolute().name), root, files, skipped)]
    folders: dict[Path, list[Path]] = {}
    for path in files:
        folders.setdefault(path.parent, []).append(path)
    return [
        Group(
            shown_name(str(folder.relative_to(root)) if folder != root else root.absolute().name),
            folder,
            members,
            {path: why for path, why in skipped.items() if path.parent == folder},
        )
        for folder, members in folders.items()
    ]


def is_bundle(files: Sequence[Path]) -> bool:
    """Whether our recorder wrote among ``files``."""
    return any(path.name == "bundle.json" or _of_process(path) for path in files)


def hosts_of(group: Group) -> dict[Path, str]:
    """The machine of each folder of a bundle, empty where all its processes were recorded on one.

    Processes recorded into several folders (``n0/cap``, ``n1/cap``) are of several machines, each named by the first part
    of the path in which the folders differ; the folders above and below the recorded one are of the same machine.
    """
    folders = sorted({path.parent for path in group.files if _of_process(path)})
    if len(folders) < 2:
        return {}
    common = Path(os.path.commonpath(folders))
    parts = {folder.relative_to(common).parts[0] for folder in folders if folder != common}
    machines = {common / part: shown_name(part) for part in parts}
    return {
        folder: name
        for folder in {path.parent for path in group.files}
        for machine, name in machines.items()
        if folder.is_relative_to(machine)
    }


def shown_name(name: str) -> str:
    """The name of a file or folder as text to keep: on one line, its odd characters (some have no encoding) shown as ``?``."""
    return name if name.isprintable() else "".join(c if c.isprintable() else "?" for c in name)


def _of_process(path: Path) -> bool:
    return path.name.startswith("host-") and path.name.endswith(".jsonl")


def _files(folder: Path, files: Sequence[Path]) -> Group:
    unique = sorted(set(files))
    name = unique[0].name if len(unique) == 1 else folder.name
    return Group(shown_name(name), folder, unique, given=frozenset(unique))


def _joined(groups: Sequence[Group]) -> Group:
    files = sorted({path for group in groups for path in group.files})
    root = Path(os.path.commonpath([path.parent.absolute() for path in files]))
    skipped = {path: why for group in groups for path, why in group.skipped.items()}
    return Group(
        shown_name(root.name) or "capture", root, files, skipped, frozenset().union(*(group.given for group in groups))
    )


def _found(root: Path) -> tuple[list[Path], dict[Path, str]]:
    """The files below ``root`` and why others were left out. Hidden folders are not looked into."""
    files: list[Path] = []
    skipped: dict[Path, str] = {}
    top = root.resolve()
    for path in _walk(root):
        reason = _left_out(path, top)
        if reason:
            skipped[path] = reason
        else:
            files.append(path)
        if len(files) + len(skipped) > MAX_FILES:
            raise LimitError(
                root.name or str(root), f"it holds over {MAX_FILES} files", "Name the folder of one capture"
            )
    return sorted(files), skipped


def _walk(root: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        name = Path(error.filename or root).name
        raise InputError(name, f"the folder cannot be read ({error.strerror})", "Check its permissions") from None

    for folder, below, names in os.walk(root, onerror=refuse):
        hidden = [name for name in below if name.startswith(".")]
        below[:] = sorted(set(below).difference(hidden))
        yield from (Path(folder, name) for name in sorted(hidden + names))


def _left_out(path: Path, top: Path) -> str:
    """Why a file met in a folder is not read, empty where it is."""
    if path.name in CONTROL:
        return "control_file"
    if path.name.startswith("."):
        unfinished = path.name.startswith((".part-", ".torch-"))
        return "unfinished_file" if unfinished else "hidden_folder" if path.is_dir() else "hidden_file"
    try:
        outside = path.is_symlink() and not path.resolve(strict=True).is_relative_to(top)
        about = path.stat()
    except (OSError, RuntimeError):
        return "broken_link"
    if outside:
        return "link_out_of_folder"
    if not stat.S_ISREG(about.st_mode):
        return "no_regular_file"
    return "" if about.st_size else "empty_file"
