"""Files that are there whole, or as they were: for who looks while one is written, and after a loss of power; and what of a file
that grows is whole.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from teller_core.errors import InputError


@contextmanager
def whole(path: Path) -> Generator[BinaryIO]:
    """What becomes the file ``path`` once all of it is written. Where writing fails, what was there stays, and nothing else. Of
    several at once each writes a whole file, and the last to end stays. What is no file, a device or a pipe, is written to and
    never replaced, and where ``path`` is a link, what it leads to is. Raises OSError.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    hidden = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with hidden.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


def keep_text(path: Path, text: str) -> None:
    """Make ``text`` the file ``path``, as :func:`whole` does, in a folder that is made for it. Raises InputError where it cannot
    be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise _unwritable(f"The file {path.name}", error) from None


def made_folder(folder: Path) -> Path:
    """``folder``, made where it is not there. Raises InputError where that cannot be, or nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unwritable(f"The folder {folder.name}", error) from None
    return folder


def _unwritable(what: str, error: OSError) -> InputError:
    why = f"it cannot be written ({(error.strerror or 'no reason given').lower()})"
    return InputError(what, why, "Name a folder that can be written, on a disk with room")


def whole_lines(path: Path) -> str:
    """The lines of a file that grows by one line at a time, empty where it is not there. One that was never finished is none."""
    before, end, _ = path.read_text().rpartition("\n") if path.exists() else ("", "", "")
    return before + end
