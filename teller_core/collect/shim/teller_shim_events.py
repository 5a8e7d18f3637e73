"""Events of this process as JSON lines in ``host-PID.jsonl``: what happened, when (Unix ns), on which native thread.

``ph`` is X for a span with ``dur``, I for an instant, G for a garbage collection, L for a late thread, P for a process
with its clock anchors, N and M for NVTX ranges and marks. Adding is one append: safe from any thread and from inside a
collection. Writing is one ``write`` of whole lines, so a killed process leaves a readable file.
"""

import json
import os
import sys
import threading
import time
from collections import deque

from teller_shim_guard import problems

MOST_PENDING = 200_000
"""A program that makes events faster than they can be written loses some, counted, rather than all its memory."""
_pending = deque()
_state = {"folder": None, "fd": None, "torn": False, "lost": 0, "told": {}}
_writing = threading.Lock()


def add(ph, start, name, fields):
    """Keep one event that began at ``start`` (Unix ns) on the calling thread. ``fields`` is a dict of JSON values."""
    if len(_pending) < MOST_PENDING:
        _pending.append((ph, start, threading.get_native_id(), name, fields))
    else:
        _lose(1)


def instant(name, **fields):
    """Keep one event that happens now."""
    add("I", time.time_ns(), name, fields)


def anchor():
    """One moment on three clocks: [Unix ns, monotonic ns, perf_counter ns]."""
    return [time.time_ns(), time.monotonic_ns(), time.perf_counter_ns()]


def open_in(folder):
    """Start the file of this process in ``folder``. Events of a parent that a fork left behind are dropped."""
    _pending.clear()
    path = os.path.join(folder, "host-%d.jsonl" % os.getpid())
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
    _state.update(folder=folder, fd=os.open(path, flags, 0o644), torn=False, lost=0, told={})
    add("P", time.time_ns(), "process", _process())


def after_fork():
    """Make the lock new: the thread that held it may not exist in this child."""
    global _writing  # noqa: PLW0603  # a lock cannot be told to forget its owner
    _writing = threading.Lock()


def flush():
    """Write what is pending. Where the disk refuses, the events are lost and counted."""
    with _writing:
        _note_problems()
        lines = []
        for _ in range(len(_pending)):  # not until it is empty: a busy program would never let that be
            ph, start, thread, name, fields = _pending.popleft()
            row = {"ph": ph, "t": start, "tid": thread, "name": name}
            row.update(fields)
            lines.append(json.dumps(row, default=str))
        if lines and _state["fd"] is not None:
            _write(lines)


def _write(lines):
    text = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
    if _state["torn"]:
        text = b"\n" + text
    try:
        _state["torn"] = os.write(_state["fd"], text) != len(text)
        failed = _state["torn"]
    except OSError:
        failed = True
    if failed:
        _lose(len(lines))


def _lose(count):
    _state["lost"] += count
    problems["events_lost", ""] = _state["lost"]


def _note_problems():
    told = _state["told"]
    for (part, error), count in list(problems.items()):
        if told.get((part, error)) != count:
            told[part, error] = count
            instant("hook_error", mod=part, err=error, count=count)


def _process():
    return {
        "argv": _program(),
        "ppid": os.getppid(),
        "exe": os.path.basename(sys.executable or ""),
        "py": sys.version.split()[0],
        "anchor": anchor(),
    }


def _program():
    """The program's name and its first words. Options are left out: they may hold keys."""
    words = []
    for word in getattr(sys, "argv", [])[:4]:
        if word.startswith("-") and words:
            break
        words.append(os.path.basename(word) if os.sep in word else word[:80])
    return words
