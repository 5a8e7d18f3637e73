"""Which files a model may have read: regular files below the folders that the person who started the server allowed."""

import os
from collections.abc import Iterator, Sequence
from glob import has_magic, iglob
from itertools import islice
from pathlib import Path

from mcp.shared.path_security import PathEscapeError, safe_join

from teller_core.errors import InputError, LimitError

MAX_PATHS = 64
MAX_ENTRIES = 50_000
"""Entries below one folder that are looked at before it is refused: a home folder given by mistake has more."""


def default_roots(here: Path, home: Path) -> tuple[Path, ...]:
    """``here``, where it is a project's folder. Nothing, where it is the file system's root or holds the home folder:
    desktop programs start servers there, and nobody meant to open all of it.
    """
    here, home = here.resolve(), home.resolve()
    return () if home.is_relative_to(here) else (here,)


def allowed(paths: Sequence[str], roots: Sequence[Path]) -> list[Path]:
    """``paths``, resolved. Each is absolute or relative to a root, exists, and is a regular file or a folder whose links
    all stay inside; or it is a pattern, and all that fits it is such. Raises InputError for one that may not be read and
    LimitError for too many.
    """
    if not roots:
        raise InputError(
            "paths",
            "this server was started without a folder it may read",
            "Whoever runs it adds --root FOLDER to its arguments and restarts it",
        )
    if not paths:
        raise InputError("paths", "the list is empty", "Name at least one trace, log or folder")
    if len(paths) > MAX_PATHS:
        raise LimitError("paths", f"{len(paths)} paths are more than {MAX_PATHS}", "Name the folder that holds them")
    return [_allow(position, path, roots) for position, path in enumerate(paths, 1)]


def _allow(position: int, path: str, roots: Sequence[Path]) -> Path:
    which = f"path {position}"
    if not path.strip():  # it would be the folder itself, which is named "."
        raise InputError(which, "it is empty", "Give a path below an allowed folder")
    inside = [found for root in roots if (found := _join(root, path)) is not None]
    if not inside:
        raise InputError(which, f"it leads out of the {len(roots)} allowed folder(s)", "Give a path below one of them")
    found = next((candidate for candidate in inside if _exists(which, candidate)), None)
    if found is None and has_magic(path):
        return _pattern(which, inside, roots)
    if found is None:
        raise InputError(which, "there is no such file or folder", "Check its spelling; it is relative to a --root")
    _check(which, found, roots)
    return found


def _check(which: str, found: Path, roots: Sequence[Path]) -> None:
    if found.is_dir():
        _check_folder(which, found, roots)
    elif not found.is_file():
        raise InputError(which, "it is neither a regular file nor a folder", "Name a trace or log file")


def _pattern(which: str, inside: Sequence[Path], roots: Sequence[Path]) -> Path:
    """The first of some patterns that anything fits: the reader expands it. All that fits has to be inside."""
    for pattern in inside:
        fit = [Path(match) for match in islice(iglob(str(pattern), recursive=True), MAX_ENTRIES + 1)]
        if len(fit) > MAX_ENTRIES:
            raise LimitError(which, f"over {MAX_ENTRIES} files fit the pattern", "Name the folder of one capture")
        for match in fit:
            if not any(match.resolve().is_relative_to(root.resolve()) for root in roots):
                raise InputError(which, "what fits the pattern leads out of the allowed folders", "Name the files")
            _check(which, match, roots)
        if fit:
            return pattern
    raise InputError(which, "no file fits the pattern", "Check it; it is relative to a --root")


def _exists(which: str, path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # a name too long, a folder that may not be looked into
        raise InputError(which, f"it cannot be looked for ({error.strerror})", "Check the path") from None


def _join(root: Path, path: str) -> Path | None:
    """``path`` below ``root``, resolved; None where it leads out."""
    try:
        relative = os.path.relpath(path, root) if os.path.isabs(path) and "\0" not in path else path
        return safe_join(root, relative)
    except (PathEscapeError, OSError, ValueError):
        return None


def _check_folder(which: str, folder: Path, roots: Sequence[Path]) -> None:
    for count, entry in enumerate(_entries(folder)):
        if count >= MAX_ENTRIES:
            raise LimitError(which, f"the folder has over {MAX_ENTRIES} entries", "Name the folder of one capture")
        if entry.is_symlink() and not any(entry.resolve().is_relative_to(root) for root in roots):
            raise InputError(which, "the folder holds a link that leads out", "Remove the link or name the files")


def _entries(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            yield Path(parent) / name
