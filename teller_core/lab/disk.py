"""What the lab asks of disks: which folders are on a real one, and that nobody else is in one."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from teller_core.errors import InputError

MOUNTS = Path("/proc/mounts")
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
PATIENCE_S, LOOK_S = 30.0, 0.02
"""How long one waits for another who writes, and how often one looks."""


def in_memory(folder: Path) -> bool:
    """Whether ``folder`` is memory; False where the system does not say."""
    if not MOUNTS.exists():
        return False
    mounts = [line.split()[1:3] for line in MOUNTS.read_text().splitlines()]
    holding = [(len(point), kind) for point, kind in mounts if folder.resolve().is_relative_to(point)]
    return bool(holding) and max(holding)[1] in IN_MEMORY


def on_disk(folder: Path) -> Path:
    """A folder on a real disk, the one given where it is on one, or where there is none."""
    if not in_memory(folder):
        return folder
    others = (Path.cwd(), Path.home(), Path("/var/tmp"))
    return next((other for other in others if other.is_dir() and not in_memory(other)), folder)


@contextmanager
def alone(folder: Path) -> Generator[None]:
    """While it lasts, nobody else who asks for ``folder`` is in it: what is read of it and written back is lost by nobody. Raises
    InputError where somebody else stays in it.
    """
    held = os.open(folder, os.O_RDONLY)
    try:
        until = time.monotonic() + PATIENCE_S
        while not _taken(held):
            if time.monotonic() > until:
                raise InputError(
                    f"The folder {folder.name}", "somebody else is writing in it", "Try again once they end"
                )
            time.sleep(LOOK_S)
        yield
    finally:
        os.close(held)


def _taken(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
