"""The files of a recording that are finished, and copying them, also while the recording goes on."""

import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

CONTROL = frozenset({"PROFILE", "CUPTI"})
"""What is asked of the processes that are recorded: nothing that they left."""


def regular_files(folder: Path, pattern: str) -> list[Path]:
    """The regular files in ``folder`` that ``pattern`` fits, in order: a pipe or a device would be read for ever."""
    found: list[Path] = []
    for path in sorted(folder.glob(pattern)):
        with suppress(OSError):  # it went away
            if stat.S_ISREG(path.lstat().st_mode):
                found.append(path)
    return found


def finished_files(folder: Path) -> Iterator[tuple[Path, int]]:
    """(path, bytes) of the regular files below ``folder``, in order. What is hidden, or lies in what is, is not finished."""
    for path in sorted(folder.rglob("*")):
        if path.name in CONTROL or any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        with suppress(OSError):  # it went away
            about = path.lstat()
            if stat.S_ISREG(about.st_mode):
                yield path, about.st_size


def copy_files(files: Iterable[tuple[Path, int]], source: Path, target: Path) -> tuple[int, int]:
    """Copy ``files`` of ``source`` to their places below ``target``, with their dates. Returns how many and their bytes.

    One that its ring has taken away meanwhile is left out. Raises OSError where there is no room.
    """
    count = size = 0
    for path, _ in files:
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            shutil.copy2(path, to, follow_symlinks=False)
            count, size = count + 1, size + to.lstat().st_size
    return count, size
