"""A thread in another network namespace: sockets that it makes are there, and stay there, whoever uses them."""

import ctypes
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

NAMESPACES = Path("/var/run/netns")
"""Where ``ip netns`` keeps them by name."""
CLONE_NEWNET = 0x40000000
"""linux/sched.h."""


def enter(space: str) -> None:
    """Let this thread, and none but this one, be in the namespace ``space`` from now on. Empty: it stays where it is."""
    if space:
        with _opened(NAMESPACES / space) as away:
            _set(away)


@contextmanager
def inside(space: str) -> Generator[None]:
    """Let this thread be in the namespace ``space`` until the block is left. Empty: it stays where it is."""
    if not space:
        yield
        return
    with _opened(Path(f"/proc/self/task/{threading.get_native_id()}/ns/net")) as home:
        enter(space)
        try:
            yield
        finally:
            _set(home)


@contextmanager
def _opened(namespace: Path) -> Generator[int]:
    file = os.open(namespace, os.O_RDONLY)
    try:
        yield file
    finally:
        os.close(file)


def _set(namespace: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
