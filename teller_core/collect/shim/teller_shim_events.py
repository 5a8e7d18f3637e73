"""Events of this process as JSON lines: what happened, when (Unix ns), on which native thread.

``ph`` is X for a span with ``dur``, I for an instant, G for a garbage collection, L for a late thread, P for a process
with its clock anchors, N and M for NVTX ranges and marks. Adding is one append: safe from any thread and from inside a
collection. Writing is one ``write`` of whole lines, so a killed process leaves a readable file.
"""

import os
import sys
import threading
import time
from collections import deque
from threading import get_native_id

import teller_shim_ring as ring
from teller_shim_guard import guarded, problems

MOST_PENDING = 200_000
"""A program that makes events faster than they can be written loses some, counted, rather than all its memory."""
AT_ONCE, AT_ONCE_BYTES = 256, 1 << 14
"""Lines, or bytes of them, that are made before other threads may run, and written together: a step of hundreds of requests
makes a line of tens of kilobytes, and the engine's thread must not wait for several."""
pending = deque()
"""What :func:`add` takes, in order. Whoever is called for every step appends by itself, as a call costs."""
_state = {"lost": 0, "told": {}, "hooks": {}}
_writing = threading.Lock()
_json = {}


def add(ph, start, name, fields, dur=None):
    """Keep one event that began at ``start`` (Unix ns) on the calling thread and, for a span, took ``dur``.

    ``fields`` is a dict of JSON values, None, or a function without arguments that makes it when the event is written.
    """
    if len(pending) < MOST_PENDING:
        pending.append((ph, start, get_native_id(), name, fields, dur))
    else:
        lose(1)


def instant(name, **fields):
    """Keep one event that happens now."""
    add("I", time.time_ns(), name, fields)


def tell_hooks(event, package, version, tested, aloud=True):
    """Note which hooks are on (``hooks``) or off (``hooks_disabled``); each segment says it again. Not ``aloud``: only there."""
    if _state["hooks"].get((event, package)) != version:
        _state["hooks"][event, package] = version
        if aloud:
            instant(event, package=package, version=version, tested=tested)


def anchor():
    """One moment on three clocks: [Unix ns, monotonic ns, perf_counter ns]."""
    return [time.time_ns(), time.monotonic_ns(), time.perf_counter_ns()]


def open_in(folder):
    """Begin the record of this process in ``folder``. Events of a parent that a fork left behind are dropped."""
    pending.clear()
    _state.update(lost=0, told={})
    ring.begin(folder)


def after_fork():
    """Make the lock new: the thread that held it may not exist in this child."""
    global _writing  # noqa: PLW0603  # a lock cannot be told to forget its owner
    _writing = threading.Lock()
    problems.clear()


def flush(even_if_empty=False):
    """Write what is pending; returns how much that was. Where the disk refuses, the events are lost and counted.

    Between two portions other threads get the interpreter lock: the program's must not wait for all of ours.
    """
    with _writing:
        _note_problems()
        if even_if_empty and not ring.opened():
            ring.write(b"", _heading)
        some = left = len(pending)  # not until it is empty: a busy program would never let that be
        while left > 0:
            lines, size = [], 0
            while left > 0 and len(lines) < AT_ONCE and size < AT_ONCE_BYTES:
                left -= 1
                line = guarded("line", _line, pending.popleft())
                if line is None:  # not to be said in JSON
                    lose(1)
                    continue
                lines.append(line)
                size += len(line)
            if not ring.write("".join(lines).encode("ascii"), _heading):
                lose(len(lines))
            if left > 0:
                time.sleep(0)
        ring.expire()
    return some


def silent():
    """Whether this process has said nothing and has nothing to say."""
    return not pending and not problems and not ring.opened()


def _line(event):
    ph, start, thread, name, fields, dur = event
    chunks, quote = _json.get("functions") or _functions()
    if callable(fields):
        fields = guarded(name, fields)
    head = '{"ph": "%s", "t": %d, "tid": %d, "name": %s' % (ph, start, thread, quote(name))
    if dur is not None:
        head += ', "dur": %d' % dur
    return head + ", " + "".join(chunks(fields, 0))[1:] + "\n" if fields else head + "}\n"


def _functions():
    """Python's encoder in C, made once: ``JSONEncoder.encode`` makes one for every line, a third of what a short line costs.

    Loaded with the first line: a process that says nothing does not pay for it.
    """
    from json import JSONEncoder, encoder

    chunks, quote = None, encoder.encode_basestring_ascii
    if encoder.c_make_encoder is not None:
        chunks = guarded("json", encoder.c_make_encoder, None, str, quote, None, ": ", ", ", False, False, True)
    _json["functions"] = chunks or JSONEncoder(default=str, check_circular=False).iterencode, quote
    return _json["functions"]


def _heading():
    return _line(("P", time.time_ns(), get_native_id(), "process", _process(), None)).encode("ascii")


def lose(count):
    """Count events that were lost."""
    _state["lost"] += count
    problems["events_lost", ""] = _state["lost"]


def _note_problems():
    told = _state["told"]
    for (part, error), count in list(problems.items()):
        if told.get((part, error)) != count:
            told[part, error] = count
            instant("hook_error", mod=part, err=error, count=count)


def _process():
    hooks = [{"event": event, "package": package, "version": v} for (event, package), v in _state["hooks"].items()]
    return {
        "argv": guarded("argv", _program, default=[]),
        "ppid": os.getppid(),
        "exe": guarded("exe", lambda: os.path.basename(sys.executable or ""), default=""),
        "py": sys.version.split()[0],
        "anchor": anchor(),
        "zone": time.localtime().tm_gmtoff,
        "hooks": hooks,
    }


def _program():
    """The program's name and its first words. Options are left out: they may hold keys."""
    words = []
    for word in getattr(sys, "argv", [])[:4]:
        if word.startswith("-") and words:
            break
        words.append(os.path.basename(word) if os.sep in word else word[:80])
    return words
