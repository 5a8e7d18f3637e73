"""A window of the torch profiler over all threads, asked for by a file, in processes that have imported torch.

``PROFILE`` in the capture's folder holds the longest time of the window in seconds, then words: ``shapes``. Writing it
opens a window, removing it closes it early. Stopping holds the interpreter lock for about ten microseconds an event, so
the stall is recorded, and the trace is left uncompressed: the recording process compresses it.
"""

import os
import sys
import time

from teller_shim_events import flush, instant

_window = {"profiler": None, "asked": None, "deadline": 0.0}


def obey(folder):
    """Open or close a window as the file ``PROFILE`` in ``folder`` asks."""
    asked = _asked(os.path.join(folder, "PROFILE"))
    if _window["profiler"] is not None:
        if asked is None or time.monotonic() > _window["deadline"]:
            _close(folder)
    elif asked is not None and asked != _window["asked"] and _ready():
        _window["asked"] = asked
        _open_window(os.path.join(folder, "PROFILE"))


def finish(folder):
    """Close the window that is open, if one is."""
    if _window["profiler"] is not None:
        _close(folder)


def after_fork():
    """A window of the parent is not this child's."""
    _window.update(profiler=None, asked=None)


def _ready():
    """Whether this process has imported torch, to its end: what is asked before waits until then."""
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def _asked(path):
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return None


def _open_window(path):
    torch = sys.modules["torch"]
    start = time.time_ns()
    with open(path) as asked:
        words = asked.read().split()
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    options = {"activities": activities, "record_shapes": "shapes" in words}
    try:
        config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True, trace_only=True)
        options["experimental_config"] = config
    except TypeError:  # an older torch: only threads that it knows are profiled
        instant("profile_threads_limited")
    profiler = torch.profiler.profile(**options)
    profiler.start()
    _window.update(profiler=profiler, deadline=time.monotonic() + (float(words[0]) if words else 1.0))
    instant("profile_start", cost=time.time_ns() - start)


def _close(folder):
    profiler = _window["profiler"]
    _window["profiler"] = None
    start = time.time_ns()
    instant("profile_stopping")
    profiler.stop()
    name = "torch-%d-%d.json" % (os.getpid(), start)
    hidden = os.path.join(folder, "." + name)
    profiler.export_chrome_trace(hidden)
    os.replace(hidden, os.path.join(folder, name))
    instant("profile_stop", file=name, begin=start, cost=time.time_ns() - start)
    flush()
