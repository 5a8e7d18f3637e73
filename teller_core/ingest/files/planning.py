"""From paths to captures: which files belong together, and which are left out, by name."""

import glob
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from teller_core.errors import InputError, LimitError
from teller_core.ingest.files.archives import Packed, is_archive, listed

MAX_FILES = 20_000
"""Files of one call. More is a disk, not a capture."""
LONGEST_NAME = 300
"""Characters of a name that is kept: a path below a folder may have thousands."""
CONTROL = frozenset({"PROFILE", "CUPTI", ".cupti-layout", "vllm-logging.json"})
"""Files by which a recorder is steered. They hold nothing of the service."""
ANSWERS = frozenset({"fault_injection.log", "reference_missing_ranks.txt"})
"""Files in which somebody wrote what is to be found out. An answer that rests on them would be no answer."""

Tell = Callable[[str, int, int], None]


class Group(NamedTuple):
    """The files of one capture. ``files`` are sorted; ``skipped`` says by name why others were left out."""

    name: str
    root: Path
    files: list[Path]
    skipped: Mapping[Path, str] = {}
    given: frozenset[Path] = frozenset()
    """Files that were named themselves: one that cannot be read refuses the call."""
    hashes: Mapping[Path, str] = {}
    """sha256 hex of the files of a known format, where they have been taken: see :func:`recognizing.hashed`."""
    seen: Mapping[Path, os.stat_result] = {}
    """How those files that are in no archive looked when their hashes were taken."""
    packed: Mapping[Path, Packed] = {}
    """Files that are in an archive: their paths are made of that of the archive and theirs in it."""


def plan(paths: Sequence[Path], together: bool = False, tell: Tell | None = None) -> list[Group]:
    """The captures that ``paths`` hold: files, folders, archives, and patterns (``*``, ``?``, ``[abc]``, ``**``).

    A folder that is a bundle (``bundle.json``, or any ``host-*.jsonl`` below it) is one capture; another folder is one
    capture for each folder in it that holds files; an archive is what the folder in it would be. Files of one folder named in
    one call are one capture. With ``together`` everything is one capture. Hidden files, unfinished ones, and what is no
    regular file are left out of folders and named in ``skipped``, and so are archives in folders and in archives.

    Errors: InputError for a path that is not there, cannot be read, is no file or folder, or holds no files; those of
    :func:`archives.listed`. ``tell`` hears how far the listing of archives is.
    """
    groups: list[Group] = []
    loose: dict[Path, list[tuple[Path, bool]]] = {}
    for path, named in _paths(paths):
        if found := _holder(path, named, tell):
            groups += found
        else:
            loose.setdefault(path.parent.absolute(), []).append((path, named))
    groups += [_files(folder, files) for folder, files in loose.items()]
    return [_joined(groups)] if together and len(groups) > 1 else groups


def apart(paths: Sequence[Path], tell: Tell | None = None) -> list[Group]:
    """As :func:`plan`, each file named a capture of its own."""
    groups: list[Group] = []
    for path, named in _paths(paths):
        groups += _holder(path, named, tell) or [_files(path.parent.absolute(), [(path, named)])]
    return groups


def _paths(paths: Sequence[Path]) -> list[tuple[Path, bool]]:
    """Each path, and whether it was named itself: a pattern stands for whatever fits it."""
    if not paths:
        raise InputError("import", "no path was given", "Name files or a folder")
    found: list[tuple[Path, bool]] = []
    for path in paths:
        pattern = glob.has_magic(str(path)) and not os.path.lexists(path)
        found += [(fit, False) for fit in fitting(path)] if pattern else [(path, True)]
    return found


def fitting(pattern: Path, root: Path | None = None) -> list[Path]:
    """What fits ``pattern``, sorted, hidden files aside; with ``**`` files alone. It is relative to ``root`` where that is given.

    Errors: InputError where nothing fits, LimitError for over MAX_FILES.
    """
    matches = islice(glob.iglob(str(pattern), root_dir=root, recursive=True), MAX_FILES + 1)
    fit = [Path(root or "", match) for match in matches]
    if len(fit) > MAX_FILES:
        raise LimitError(str(pattern), f"over {MAX_FILES} files fit it", "Name the folder of one capture")
    if "**" in pattern.parts:  # a folder fits it, and all in the folder once more
        fit = [path for path in fit if not path.is_dir()]
    if not fit:
        raise InputError(str(pattern), "no file fits this pattern", "Check it; hidden files never fit")
    return sorted(fit)


def _holder(path: Path, named: bool, tell: Tell | None) -> list[Group]:
    """The captures in a folder or an archive; none where ``path`` is another file, or fits a pattern and cannot be read."""
    if not named and not path.is_dir() and _left_out(path, Path("/")):
        return []
    if is_folder(path):
        return _folder(path)
    return _archive(path, tell) if is_archive(path) else []


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
    return _grouped(Group(shown_name(root.absolute().name), root, files, skipped))


def _archive(path: Path, tell: Tell | None) -> list[Group]:
    """As :func:`_folder`. A single folder that all files of the archive are in is that folder."""
    held = listed(path, tell)
    packed: dict[Path, Packed] = {}
    skipped = {path / name: why for name, why in held.skipped.items()}
    for name, member in held.files.items():
        if why := _left_out_by_name(name):
            skipped[path / name] = why
        else:
            packed[path / name] = member
    if not packed:
        raise InputError(path.name, "the archive holds no files to read", "Name an archive with traces or logs")
    root = Path(os.path.commonpath([inner.parent for inner in packed]))
    return _grouped(Group(shown_name(root.name), root, sorted(packed), skipped, packed=packed))


def _left_out_by_name(name: str) -> str:
    *folders, last = name.split("/")
    if any(folder.startswith(".") for folder in folders):
        return "hidden_folder"
    return _by_name(last)


def _grouped(whole: Group) -> list[Group]:
    """The captures of a folder with all below it. What is left out of folders without a capture is told with the first."""
    if is_bundle(whole.files):
        return [whole]
    folders: dict[Path, list[Path]] = {}
    for path in whole.files:
        folders.setdefault(path.parent, []).append(path)
    homeless = {path: why for path, why in whole.skipped.items() if path.parent not in folders}
    groups: list[Group] = []
    for folder, members in folders.items():
        name = whole.name if folder == whole.root else shown_name(str(folder.relative_to(whole.root)))
        own = {path: why for path, why in whole.skipped.items() if path.parent == folder}
        packed = {path: whole.packed[path] for path in members if path in whole.packed}
        groups.append(Group(name, folder, members, homeless | own if not groups else own, packed=packed))
    return groups


def is_bundle(files: Sequence[Path]) -> bool:
    """Whether our recorder wrote among ``files``."""
    return any(path.name == "bundle.json" or _of_process(path) for path in files)


def hosts_of(group: Group) -> dict[Path, str]:
    """The machine of each folder of a bundle, empty where all its processes were recorded on one.

    Processes recorded into several folders (``n0/cap``, ``n1/cap``) are of several machines, each named by the first part
    of the path in which the folders differ; the folders above and below the recorded one are of the same machine. So are
    several bundles in one capture, whatever was recorded into them.
    """
    bundles = _bundles(group)
    folders = bundles or sorted({path.parent for path in group.files if _of_process(path)})
    if len(folders) < 2:
        return {}
    machines = _machines(folders, apart=bool(bundles))
    return {
        folder: name
        for folder in {path.parent for path in group.files}
        for machine, name in machines.items()
        if folder.is_relative_to(machine)
    }


def _machines(folders: Sequence[Path], *, apart: bool) -> dict[Path, str]:
    """The folder of each machine and its name: the first part of its path in which it differs from the others. With ``apart``
    each is of a machine of its own, named by the next part where the first is taken.
    """
    common = Path(os.path.commonpath(folders))
    found: dict[Path, str] = {}
    for folder in folders:
        parts = folder.relative_to(common).parts
        taken = found.values() if apart else ()
        at = next((at for at, part in enumerate(parts) if shown_name(part) not in taken), None)
        if at is not None:
            found[common.joinpath(*parts[: at + 1])] = shown_name(parts[at])
        elif apart:
            found[folder] = f"{shown_name(parts[0])}-{len(found) + 1}"
    return found


def _bundles(group: Group) -> list[Path]:
    """The folders of several bundles; none where there is but one. One that others lie in is what they were merged into."""
    folders = sorted({path.parent for path in group.files if path.name == "bundle.json"})
    inner = [folder for folder in folders if not any(folder in other.parents for other in folders)]
    return inner if len(inner) > 1 else []


def shown_name(name: str) -> str:
    """The name of a file or folder as text to keep: on one line, its odd characters (some have no encoding) shown as ``?``,
    of a long path the end.
    """
    cut = name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "?" for c in cut)


def _of_process(path: Path) -> bool:
    return path.name.startswith("host-") and path.name.endswith(".jsonl")


def _files(folder: Path, files: Sequence[tuple[Path, bool]]) -> Group:
    """The capture of files that were named, or that fit a pattern: what a folder would leave out of these is left out."""
    reasons = {path: _left_out(path, Path("/")) if not named else _answer(path) for path, named in files}
    skipped = {path: why for path, why in reasons.items() if why}
    kept = sorted(reasons.keys() - skipped.keys())
    if not kept:
        last = files[0][0].name
        raise InputError(last, f"it is left out ({skipped[files[0][0]].replace('_', ' ')})", "Name traces or logs")
    name = kept[0].name if len(kept) == 1 else folder.name
    given = frozenset(path for path, named in files if named and path in kept)
    return Group(shown_name(name), folder, kept, skipped, given)


def _joined(groups: Sequence[Group]) -> Group:
    files = sorted({path for group in groups for path in group.files})
    root = Path(os.path.commonpath([path.parent.absolute() for path in files]))
    skipped = {path: why for group in groups for path, why in group.skipped.items()}
    packed = {path: member for group in groups for path, member in group.packed.items()}
    given = frozenset[Path]().union(*(group.given for group in groups))
    return Group(shown_name(root.name) or "capture", root, files, skipped, given, packed=packed)


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
    if why := _by_name(path.name):
        return "hidden_folder" if why == "hidden_file" and path.is_dir() else why
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


def _by_name(name: str) -> str:
    if name in CONTROL:
        return "control_file"
    if name.startswith("."):
        return "unfinished_file" if name.startswith((".part-", ".torch-")) else "hidden_file"
    return _answer(Path(name))


def _answer(path: Path) -> str:
    return "answer_file" if path.name in ANSWERS else ""
