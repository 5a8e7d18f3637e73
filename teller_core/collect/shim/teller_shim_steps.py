"""What the hooks say to the CUPTI half of the injection library: which step runs on this thread, so that its records carry the
step's number; and what they ask of it: whether it records the window that was asked for.

``ACTIVE`` is false where the CUDA driver was not told to load our library: then nothing is called. Outside windows a call costs a
fifth of a microsecond. The interpreter's lock is kept: the library never waits for anything.
"""

import ctypes
import os
import threading
import time

from teller_shim_guard import guarded

ACTIVE = bool(os.environ.get("CUDA_INJECTION64_PATH") and os.environ.get("TELLER_INJECT_LAYOUT"))
UNSEEN, DECIDING, OPEN, REFUSED, CLOSED = -1, 0, 1, 2, 3
"""What became of the window that was asked for last, by the library's numbers."""
TAKES_UP_S = 1.0
"""The library looks ten times a second whether one is asked for."""
CLOSES_S = 2.0
POLL_S = 0.005
_found = {}
_open = threading.local()


def begin_step(number):
    """What the calling thread launches from now on belongs to step ``number`` (None: nobody knows to which)."""
    library = _library()
    if library is None:
        return
    if getattr(_open, "step", False):  # the one before ended by an error
        library.teller_step_end()
    _open.step = number is not None
    if _open.step:
        library.teller_step(number)


def end_step():
    """The end of what ``begin_step`` began on this thread."""
    library = _library()
    if library is not None and getattr(_open, "step", False):
        _open.step = False
        library.teller_step_end()


def expected(folder):
    """When the library was asked for a window (Unix ns), or None where it has none to open: the driver has not loaded it here, or
    nobody asked.
    """
    library = _library()
    try:
        return os.stat(os.path.join(folder, "CUPTI")).st_mtime_ns if library and library.teller_has_cuda() else None
    except FileNotFoundError:
        return None


def recorded(asked):
    """Whether the library records the window that was ``asked`` for, or has; waits until it has seen that it was."""
    end = time.monotonic() + TAKES_UP_S
    state = _library().teller_window(asked)
    while state in (UNSEEN, DECIDING) and time.monotonic() < end:
        time.sleep(POLL_S)
        state = _library().teller_window(asked)
    return state in (OPEN, CLOSED)


def is_open(asked):
    """Whether the window that was ``asked`` for is open."""
    return _library().teller_window(asked) == OPEN


def give_way(asked):
    """End the window, as another client of CUPTI is about to come: two at once would each lose records to the other."""
    library = _library()
    if library.teller_window(asked) != OPEN:
        return
    library.teller_give_way()
    end = time.monotonic() + CLOSES_S
    while library.teller_window(asked) == OPEN and time.monotonic() < end:
        time.sleep(POLL_S)


def _library():
    """The injection library, where it is ours that the CUDA driver was told to load."""
    if "library" not in _found:
        _found["library"] = guarded("steps", _load) if ACTIVE else None
    return _found["library"]


def _load():
    library = ctypes.PyDLL(os.environ["CUDA_INJECTION64_PATH"])
    library.teller_step.argtypes = library.teller_window.argtypes = [ctypes.c_uint64]
    library.teller_step.restype = library.teller_step_end.restype = library.teller_give_way.restype = None
    return library
