"""Files that are there whole, or as they were: for who looks while one is written, and after a loss of power; and what of a file
that grows is whole.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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


def whole_lines(path: Path) -> str:
    """The lines of a file that grows by one line at a time, empty where it is not there. One that was never finished is none."""
    before, end, _ = path.read_text().rpartition("\n") if path.exists() else ("", "", "")
    return before + end
