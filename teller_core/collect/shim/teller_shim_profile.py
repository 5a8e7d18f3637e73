"""Windows of the torch profiler, asked for by a file, in processes that have imported torch.

``PROFILE`` in the capture's folder holds the longest time of the window in seconds, then ``steps=N``, ``events=N``,
``at=NS``, ``reason=WORD``, ``shapes``, ``host``. Writing it opens a window, at once or at the Unix time ``at``; removing
it closes it. Each window has a thread of its own, which waits for the first bound that is met: a counter around the
engine's step wakes it, there only while a window is open.

How many events there are is known only afterwards, from the size of the trace. So a window is taken in pieces: each is
as long as the events that are left allow, at the rate seen before. Where the interpreter lock cannot be dropped while
the profiler stops, pieces are small as well: stopping costs five to ten microseconds an event.

CUPTI has room for one. Where our library records the GPU in this process, that is the window: the profiler runs beside it only
for operators on the host that were asked for (``host``), and leaves the GPU alone. Where the library refuses, as another
client has CUPTI or there is none that it knows, the profiler takes the window as a whole. When the program starts a profiler of
its own, both of ours end first.
"""

import functools
import os
import sys
import threading
import time

import teller_shim_kineto as kineto
import teller_shim_steps as library
from teller_shim_events import flush, instant
from teller_shim_guard import guarded

STEPS = (
    ("vllm.v1.worker.gpu_worker", "Worker", "execute_model"),
    ("transformers.generation.continuous_batching.continuous_api", "ContinuousBatchingManager", "_generation_step"),
)
"""What one step of an engine is. Tested on vLLM 0.32 and transformers 5.24; where it is missing, time alone bounds."""
FRONT_ENDS = ("vllm",)
"""Engines whose other processes compute nothing: there a window would hold nothing."""
EVENT_BYTES = 246
"""Of a trace without shapes, measured on vLLM."""
EVENTS_A_SECOND = 400_000
"""Assumed until a piece was seen. A server on a CPU makes 60,000 to 100,000, a thread that does nothing else 300,000."""
LOCKED_EVENTS = 30_000
NOTHING = 20
"""Events of a trace that says who wrote it and no more."""
SHORTEST_S = 0.02
STALE_S = 60.0
"""A process that starts, or has torch, this long after the end of a window that was asked for does not open it."""
ROOM_BYTES = 256 << 20
LONGEST_AHEAD_S = 60.0
JOIN_S = 10.0
LOOK_S = 0.05
SAMPLED_S = 0.1
"""What belongs to the last step and comes after it, as vLLM's sampling does: waited for until the next begins, or so long."""
_state = {"asked": None, "thread": None, "close": threading.Event(), "rate": EVENTS_A_SECOND, "hooked": False}


def obey(folder):
    """Open or close a window as the file ``PROFILE`` in ``folder`` asks."""
    path = os.path.join(folder, "PROFILE")
    asked = _asked(path)
    thread = _state["thread"]
    if thread is not None and thread.is_alive():
        if asked is None:
            _state["close"].set()
    elif asked is not None and asked != _state["asked"] and kineto.ready():
        _state["asked"] = asked
        _open(folder, path, asked)


def finish(folder):
    """Close the window that is open, if one is, and wait until its trace is written."""
    thread = _state["thread"]
    if thread is not None and thread.ident != threading.get_ident():  # to ask for the thread itself would make one
        _state["close"].set()
        thread.join(JOIN_S)


def after_fork():
    """A window of the parent is not this child's."""
    _state.update(thread=None, close=threading.Event())


def _asked(path):
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return None


def _open(folder, path, asked):
    with open(path) as file:
        how = _bounds(file.read().split())
    if time.time_ns() - asked > (how["seconds"] + STALE_S) * 1e9:
        return
    of_library = library.expected(folder)
    if of_library is None and _is_refused(folder):
        return
    if not _state["hooked"] and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lambda: guarded("profile", finish, folder))  # a child would profile for ever
        _state["hooked"] = True
    close = threading.Event()
    how.update(gpu=True, give_way=lambda: finish(folder))
    thread = threading.Thread(target=lambda: guarded("profile", _due, folder, how, close, of_library), daemon=True)
    _state.update(thread=thread, close=close)
    thread.start()


def _due(folder, how, close, of_library):
    """The window, once it is the time at which every process of the service opens it."""
    if how["at"] is not None:
        close.wait(min(LONGEST_AHEAD_S, max(0.0, how["at"] / 1e9 - time.time())))
        if close.is_set():
            instant("profile_refused", reason="closed before it opened")
            return
        if of_library is None and _is_refused(folder):
            return
    if of_library is None:
        _window(folder, how, close)
    else:
        _beside_library(folder, how, close, of_library)


def _bounds(words):
    how = {"seconds": float(words[0]) if words else 1.0, "steps": None, "events": None, "at": None, "reason": "call"}
    for word in words[1:]:
        name, _, value = word.partition("=")
        if name in ("steps", "events", "at"):
            how[name] = int(value)
        elif name == "reason":
            how[name] = value
    how["shapes"] = "shapes" in words
    how["host"] = how["shapes"] or "host" in words
    return how


def _is_refused(folder):
    """Whether no window is opened here; says why."""
    refused = _refused(folder)
    if refused:
        instant("profile_refused", reason=refused)
    return bool(refused)


def _refused(folder):
    """Why no window is opened here, or nothing."""
    if kineto.busy():
        return "another profiler runs"
    if not _step_functions() and any(engine in sys.modules for engine in FRONT_ENDS):
        return "no steps run here"
    room = os.statvfs(folder)
    return "disk full" if room.f_bavail * room.f_frsize < ROOM_BYTES else ""


def _beside_library(folder, how, close, asked):
    """A window in a process whose GPU the library may record."""

    def give_way():
        if threading.current_thread() is not _state["thread"]:
            library.give_way(asked)
            finish(folder)

    recorded = library.recorded(asked)
    how.update(gpu=not recorded, give_way=give_way)
    if (how["host"] or not recorded) and not _is_refused(folder):
        _window(folder, how, close)
    if recorded:
        restore = kineto.intercept(give_way)
        instant("profile_gpu", reason=how["reason"])
        while library.is_open(asked) and not close.wait(LOOK_S):
            pass
        restore()


def _window(folder, how, close):
    """One window, in as many pieces as its bounds ask for."""
    end = time.monotonic() + how["seconds"]
    counter = _Steps(how["steps"], close)
    left = how["events"]
    while not close.is_set() and time.monotonic() < end and (left is None or left > 0):
        left_here = _piece_events(left)
        seconds = end - time.monotonic()
        if left_here is not None:
            seconds = min(seconds, max(SHORTEST_S, left_here / _state["rate"]))
        seen = _piece(folder, how, counter, close, seconds)
        if seen is None:
            return
        if left is not None:
            left -= seen
        if counter.left == 0:
            return


def _piece_events(left):
    """How many events the next piece may have, or None for any number."""
    if left is None or kineto.can_stop_beside():
        return left
    return min(left, LOCKED_EVENTS)


def _piece(folder, how, counter, close, seconds):
    """Profile until a bound is met. Returns how many events there were, or None where the trace was lost."""
    start, before = time.time_ns(), counter.seen
    started = kineto.start(how["shapes"], how["gpu"], how["give_way"])
    opened = time.monotonic_ns()
    restore = counter.install()  # a step that began before is not whole, and not counted
    try:
        instant("profile_start", cost=time.time_ns() - start, reason=how["reason"])
        flush()  # whoever asked for the window may wait for it
        close.wait(seconds)
        if counter.left == 0:
            counter.next.wait(SAMPLED_S)
    finally:
        restore()
    took = time.monotonic_ns() - opened
    events = _stop(folder, started, how, counter.seen - before)
    if events:
        _state["rate"] = max(1.0, events * 1e9 / max(took, 1))
    return events


def _stop(folder, started, how, steps):
    start = time.time_ns()
    instant("profile_stopping")
    name = "torch-%d-%d.json" % (os.getpid(), start)
    hidden = os.path.join(folder, "." + name)
    beside = kineto.stop(started, hidden)
    whole = time.time_ns() - start
    if not _complete(hidden):
        instant("profile_lost", reason="no whole trace was written", begin=start, cost=whole - beside)
        return None
    events = os.path.getsize(hidden) // (EVENT_BYTES * (2 if how["shapes"] else 1))
    if not steps and events < NOTHING and _step_functions():  # a process that has the engine's code and runs no steps
        os.unlink(hidden)
        name = None
    else:
        os.replace(hidden, os.path.join(folder, name))
    instant("profile_stop", file=name, begin=start, cost=whole - beside, beside=beside, steps=steps, events=events)
    flush()
    return events


def _complete(path):
    """Whether the trace ends as JSON does; what does not is removed."""
    try:
        with open(path, "rb") as file:
            file.seek(-16, os.SEEK_END)
            whole = file.read().rstrip().endswith(b"}")
    except OSError:
        whole = False
    if not whole and os.path.exists(path):
        os.unlink(path)
    return whole


def _step_functions():
    """(class, name) of the steps of the engines that this process has loaded."""
    found = []
    for module, owner, name in STEPS:
        kind = getattr(sys.modules.get(module), owner, None)
        if kind is not None and name in vars(kind):
            found.append((kind, name))
    return found


def _waits(args):
    """Whether a step is called with a decision of vLLM's that serves nobody, as while all wait for a grammar: it makes such
    decisions again and again, and nothing is computed.
    """
    return any(getattr(each, "total_num_scheduled_tokens", None) == 0 for each in args)


class _Steps:
    """Counts the engine's steps that compute and sets ``close`` after the last that was asked for."""

    def __init__(self, most, close):
        self.left = most
        self.seen = 0
        self.next = threading.Event()
        self._close = close

    def install(self):
        """Count from now on. Returns the function that ends it."""
        places = [(kind, name, vars(kind)[name]) for kind, name in _step_functions()]
        ours = [self._counted(function) for _, _, function in places]
        for (kind, name, _), counted in zip(places, ours):  # noqa: B905  # Python 3.9 has no strict
            setattr(kind, name, counted)

        def restore():
            for (kind, name, function), counted in zip(places, ours):  # noqa: B905
                if vars(kind).get(name) is counted:
                    setattr(kind, name, function)

        return restore

    def _counted(self, function):
        @functools.wraps(function)
        def counted(*args, **kwargs):
            if self.left == 0:
                self.next.set()
            try:
                return function(*args, **kwargs)
            finally:
                if not _waits((*args[1:], *kwargs.values())):
                    self._count()

        return counted

    def _count(self):
        if self.left == 0:
            return
        self.seen += 1
        if self.left:
            self.left -= 1
            if self.left == 0:
                self._close.set()
