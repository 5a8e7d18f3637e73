"""Files as they are opened: regular ones alone, as long as they are then, and where somebody said where, only there.

A path that was looked at may lead elsewhere by the time it is opened: a link or a folder can be put in its place. So within
folders that were named nothing is decided by its path: its links are followed first, and what that gives is opened folder by
folder, in each of which no further link is followed.
"""

import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from teller_core.data.means import short_of
from teller_core.errors import InputError, TellerError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

_WITHIN: ContextVar[tuple[Path, ...]] = ContextVar("within", default=())
FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Not to wait for the writer of a pipe that took the place of a file: what was opened is looked at, and refused."""
LEADS_OUT = "it leads out of the folders that may be read"


@contextmanager
def within(folders: Sequence[Path]) -> Generator[None]:
    """Meanwhile, this thread opens files below ``folders`` (resolved) alone; none for all files."""
    before = _WITHIN.set(tuple(folders))
    try:
        yield
    finally:
        _WITHIN.reset(before)


@contextmanager
def also_within(folder: Path) -> Generator[None]:
    """Meanwhile, files of ``folder`` may be opened, too."""
    folders = _WITHIN.get()
    with within((*folders, folder.resolve()) if folders else ()):
        yield


def allowed_folders() -> tuple[Path, ...]:
    """What :func:`within` was given, for those who open files in another process or thread."""
    return _WITHIN.get()


class Opened(FileIO):
    """A regular file as long as it was when it was opened: whoever reads what is still written would never come to its end.

    Errors: InputError where it is missing, unreadable, no regular file or outside of the folders that may be read; OutOfRoom.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(_opened(path), "rb")
        self._size = os.fstat(self.fileno()).st_size

    def _left(self) -> int:
        return max(0, self._size - self.tell())

    def read(self, size: int | None = -1, /) -> bytes:
        left = self._left()
        return super().read(left if size is None or size < 0 else min(size, left)) or b""

    def readinto(self, buffer: "Buffer", /) -> int:
        return super().readinto(memoryview(buffer).cast("B")[: self._left()]) or 0


def unreadable(path: Path, error: OSError) -> TellerError:
    """What to say of a file that cannot be read."""
    why = f"it cannot be read ({error.strerror})"
    return short_of(path.name, error) or InputError(path.name, why, "Check its permissions, and the disk")


def _opened(path: Path) -> int:
    try:
        found = _below(path, _WITHIN.get()) if _WITHIN.get() else os.open(path, FLAGS)
    except FileNotFoundError:
        raise InputError(path.name, "there is no such file", "Check the path") from None
    except OSError as error:
        raise unreadable(path, error) from None
    mode = os.fstat(found).st_mode
    if not stat.S_ISREG(mode):
        os.close(found)
        what = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise InputError(path.name or str(path), f"it is {what}", "Name a file")
    return found


def _below(path: Path, folders: Sequence[Path]) -> int:
    """A descriptor of the file that ``path`` leads to, in one of ``folders``."""
    target = Path(os.path.realpath(path))
    root = next((folder for folder in folders if target.is_relative_to(folder) and target != folder), None)
    if root is None:
        raise InputError(path.name, LEADS_OUT, "Name a file in one of them")
    if os.open not in os.supports_dir_fd:
        return os.open(target, FLAGS)
    *above, name = target.relative_to(root).parts
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in above:
            inner = _step(path, folder, os.O_RDONLY | os.O_DIRECTORY, at)
            os.close(at)
            at = inner
        return _step(path, name, FLAGS, at)
    finally:
        os.close(at)


def _step(path: Path, name: str, flags: int, folder: int) -> int:
    """A descriptor of what is called ``name`` in the open ``folder``, which is no link."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise InputError(path.name, LEADS_OUT, "Import it again when nobody changes it") from None
        raise
