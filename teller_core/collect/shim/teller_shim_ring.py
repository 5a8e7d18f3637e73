"""Where this process' lines go: ``host-PID.jsonl``, or bounded by segments ``host-PID-NNNN.jsonl`` of which the oldest goes.

TELLER_CAPTURE_BYTES bounds what the process keeps on disk, TELLER_CAPTURE_SECONDS how old it may be: either one makes
segments, of an eighth of the bound each. Every segment begins with a line about the process and its clocks. The file is
made with the first line, so a process that has nothing to say leaves none.
"""

import os
import time
from collections import deque
from contextlib import suppress

SEGMENTS = 8
RETRY_S = 1.0
HIGH = 200
"""The first number for our descriptor: the low ones are what a program closes and opens again, and counts on."""
_state = {
    "folder": None,
    "fd": None,
    "file": None,
    "size": 0,
    "heading": 0,
    "begun": 0.0,
    "number": 0,
    "torn": False,
    "next_try": 0.0,
}
_bounds = {"bytes": 0, "seconds": 0.0}
_kept = deque()
"""Path and, once another one follows it, the end (monotonic s) of each segment on disk, the oldest first."""


def begin(folder):
    """Write into ``folder`` from now on, into a new file. Those of a parent are left to it."""
    _state.update(folder=folder, fd=None, file=None, size=0, begun=0.0, number=0, torn=False, next_try=0.0)
    _kept.clear()
    _bounds["bytes"] = _number("TELLER_CAPTURE_BYTES")
    _bounds["seconds"] = float(_number("TELLER_CAPTURE_SECONDS"))


def opened():
    """Whether a file has been made."""
    return _state["fd"] is not None


def write(text, heading):
    """Write ``text`` (bytes of whole lines), ``heading()`` before it in a new segment. False where any of it was lost."""
    if _state["folder"] is None or not _ready(heading, len(text)):
        return False
    if _state["torn"]:
        text = b"\n" + text
    try:
        done = os.write(_state["fd"], text)
    except OSError:
        return False
    _state["size"] += done
    _state["torn"] = done != len(text)
    return not _state["torn"]


def expire():
    """Remove segments that are too many or too old."""
    bound, now = _bounds["seconds"], time.monotonic()
    while len(_kept) > SEGMENTS or (len(_kept) > 1 and bound and now - _kept[0][1] > bound):
        path, _ = _kept.popleft()
        with suppress(OSError):  # somebody else removed it
            os.unlink(path)


def _ready(heading, coming):
    """Whether there is a file with room for ``coming`` bytes, made where there was none."""
    if _state["fd"] is not None and not _is_ours():
        _state["fd"] = None
    if _state["fd"] is not None and not _full(coming):
        return True
    now = time.monotonic()
    if now < _state["next_try"]:
        return _state["fd"] is not None
    try:
        fd = os.open(_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError:
        _state["next_try"] = now + RETRY_S
        return _state["fd"] is not None
    fd = _high(fd)
    _follow(fd, now)
    line = heading()
    try:
        _state["size"] = _state["heading"] = os.write(fd, line)
        _state["torn"] = _state["size"] != len(line)
    except OSError:
        _state["torn"] = False
    return True


def _follow(fd, now):
    if _state["fd"] is not None:
        os.close(_state["fd"])
    if _kept:
        _kept[-1] = (_kept[-1][0], now)
    _kept.append((_path(), now))
    _state.update(fd=fd, file=_identity(fd), size=0, heading=0, begun=now, number=_state["number"] + 1)
    expire()


def _is_ours():
    """Whether the descriptor still is our file: a program that becomes a daemon closes all it finds, and opens its own."""
    try:
        return _identity(_state["fd"]) == _state["file"]
    except OSError:
        return False


def _identity(fd):
    about = os.fstat(fd)
    return about.st_dev, about.st_ino


def _high(fd):
    """``fd`` under a number that programs do not use, where there is one."""
    try:
        from fcntl import F_DUPFD_CLOEXEC, fcntl  # a library to load: only where something is written

        high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH)
    except (ImportError, OSError):
        return fd
    os.close(fd)
    return high


def _full(coming):
    """A portion that is longer than a segment has one of its own."""
    size, seconds = _bounds["bytes"], _bounds["seconds"]
    if size and _state["size"] > _state["heading"] and _state["size"] + coming > size // SEGMENTS:
        return True
    return bool(seconds) and time.monotonic() - _state["begun"] >= seconds / SEGMENTS


def _path():
    bounded = _bounds["bytes"] or _bounds["seconds"]
    name = "host-%d-%04d.jsonl" % (os.getpid(), _state["number"]) if bounded else "host-%d.jsonl" % os.getpid()
    return os.path.join(_state["folder"], name)


def _number(name):
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() and len(text) < 19 else 0
