"""A folder for what an import needs on disk for a while. It goes whatever ends the import, a kill included.

The process that made a folder holds a lock in it. One whose lock is free was left by a process that was killed, and whoever
makes the next folder beside it removes it.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from teller_core.data.means import within_means
from teller_core.errors import InputError

PREFIX = ".teller-"
LOCK = "lock"
GRACE_S = 3600
"""Seconds after which a folder without a lock is nobody's: making one takes a moment."""


@contextmanager
def scratch(beside: Path | None = None) -> Generator[Path]:
    """An empty folder of its owner's alone in the folder ``beside`` (by default that for temporary files), removed at the end.

    Errors: InputError where none can be made.
    """
    parent = beside or Path(tempfile.gettempdir())
    sweep(parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    except OSError as error:
        why = f"no folder for temporary files can be made in it ({error.strerror})"
        raise InputError(
            parent.name or str(parent), why, "Free some space, or name another database with --db"
        ) from error
    held = -1
    try:
        with within_means(parent.name or str(parent)):
            held = _locked(folder)
        yield folder
    finally:
        if held >= 0:
            os.close(held)  # first: removing a folder opens it, and there may be no further file to be had
        shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: Path) -> int:
    """Remove the folders in ``parent`` whose process is gone; returns how many."""
    removed = 0
    try:
        found = [entry for entry in parent.iterdir() if entry.name.startswith(PREFIX) and entry.is_dir()]
    except OSError:
        return 0
    for folder in found:
        if not folder.is_symlink() and _is_nobodys(folder):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed


def _locked(folder: Path) -> int:
    """The open, locked file of ``folder``. It gets its name when the lock is held: no sweeper finds it free before."""
    draft = folder / f"{LOCK}.new"
    held = os.open(draft, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    draft.rename(folder / LOCK)
    return held


def _is_nobodys(folder: Path) -> bool:
    try:
        seen = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return _age(folder) > GRACE_S
    except OSError:
        return False
    try:
        fcntl.flock(seen, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(seen)


def _age(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0.0
