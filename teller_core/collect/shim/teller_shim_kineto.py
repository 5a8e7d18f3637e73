"""The torch profiler: started over all threads, stopped and written out without the interpreter lock.

``torch.profiler`` holds the interpreter lock while it stops and exports, so every thread of a busy server stands still.
What it calls are two C++ functions that need no Python where no Python stacks are recorded. ``ctypes`` calls them by
their names in torch's own library, and drops the lock for as long as they run. Names hold the types of the arguments, not
of what is returned, so this is done on tested versions only; elsewhere the profiler's own way is taken.

Two profilers in one process end in a segmentation fault. Where the program starts or stops one of its own, ``give_way``
is run first; where one runs already, ours does not start.
"""

import ctypes
import functools
import json
import os
import platform
import sys
import time

from teller_shim_events import instant
from teller_shim_guard import guarded

TESTED = ("2.13",)
MACHINES = ("x86_64",)
ENTRIES = ("_prepare_profiler", "_enable_profiler", "_disable_profiler")
DISABLE = "_ZN5torch8autograd8profiler15disableProfilerEv"
SAVE = "_ZN5torch8autograd8profiler14ProfilerResult4saveERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
FREE = "_ZN5torch8autograd8profiler14ProfilerResultD1Ev"


class _Returned(ctypes.Structure):
    """A ``unique_ptr``. It is declared too large for registers: C++ returns it through memory as well."""

    _fields_ = (("pointer", ctypes.c_void_p), ("unused", ctypes.c_void_p * 3))


class _String(ctypes.Structure):
    """A ``std::string`` of libstdc++ whose text lies elsewhere."""

    _fields_ = (("text", ctypes.c_char_p), ("length", ctypes.c_size_t), ("room", ctypes.c_size_t * 2))


def ready():
    """Whether this process has imported torch, to its end."""
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def busy():
    """Whether a profiler runs in this process."""
    return bool(getattr(sys.modules["torch"].autograd.profiler, "_is_profiler_enabled", False))


def start(shapes, gpu, give_way):
    """Start profiling. Returns what ``stop`` wants. ``give_way`` is called before another profiler starts or stops.

    Without ``gpu`` CUPTI is not touched: Kineto turns to it only where a trace is to hold more than what the CPU does.

    Not through ``torch.profiler``: that imports ``torch._inductor``, three seconds of a busy server that had no need of it.
    """
    torch = sys.modules["torch"]
    module = torch.autograd.profiler
    device = "cuda" if gpu and torch.cuda.is_available() else None
    options = {"use_kineto": True, "record_shapes": shapes, "use_device": device}
    try:
        config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True, trace_only=True)
        options["experimental_config"] = config
    except TypeError:  # an older torch: only threads that it knows are profiled
        instant("profile_threads_limited")
    profiler = module.profile(**options)
    restore = _intercept(module, give_way)
    try:
        profiler.__enter__()
    except BaseException:
        restore()
        raise
    guarded("profile", _tell_ranks, torch)
    return profiler, restore


def intercept(give_way):
    """Call ``give_way`` before the program starts or stops a profiler. Returns the function that ends it."""
    return _intercept(sys.modules["torch"].autograd.profiler, give_way)


def _tell_ranks(torch):
    """Write into the trace who this is among the ranks of its service, as ``torch.profiler`` does."""
    said = torch.profiler.profile._get_distributed_info(None)
    if said:
        torch.autograd._add_metadata_json("distributedInfo", json.dumps(said, default=str))


def stop(started, path):
    """Stop and write the trace to ``path``. Returns for how many ns the interpreter lock was not held meanwhile.

    Where the program has stopped it in a way that could not be seen, nothing is written and 0 returned: to stop what
    does not run, or to write what is not there, would end the program.
    """
    profiler, restore = started
    try:
        if not busy():
            return 0
        native = guarded("profile", _native)
        if native is None:
            profiler.__exit__(None, None, None)
            profiler.export_chrome_trace(path)
            return 0
        return _stop_beside(native, profiler, path)
    finally:
        restore()


def can_stop_beside():
    """Whether stopping leaves the interpreter lock to others, here and with this version of torch."""
    return guarded("profile", _native) is not None


def _native():
    """(disable, save, free), or None where they were not tested."""
    torch = sys.modules["torch"]
    version = ".".join(str(torch.__version__).split(".")[:2])
    if version not in TESTED or platform.machine() not in MACHINES or sys.platform != "linux":
        return None
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
    disable, save, free = (getattr(library, name) for name in (DISABLE, SAVE, FREE))
    disable.argtypes, disable.restype = (), _Returned
    save.argtypes, save.restype = (ctypes.c_void_p, ctypes.POINTER(_String)), None
    free.argtypes, free.restype = (ctypes.c_void_p,), None
    return disable, save, free


def _stop_beside(native, profiler, path):
    disable, save, free = native
    torch = sys.modules["torch"]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()  # what was launched in the window belongs to it; this drops the lock as well
    text = os.fsencode(path)
    began = time.monotonic_ns()
    result = disable().pointer
    if result:
        save(result, ctypes.byref(_String(text, len(text))))
        free(result)  # not its own few bytes: which allocator gave them is not known
    beside = time.monotonic_ns() - began
    torch.autograd.profiler._run_on_profiler_stop()
    return beside


def _intercept(module, give_way):
    """Put ``give_way`` before the functions by which the program would start or stop a profiler. Returns the way back."""

    def before(function):
        @functools.wraps(function)
        def given_way(*args, **kwargs):
            guarded("profile", give_way)
            return function(*args, **kwargs)

        return given_way

    originals = {name: getattr(module, name) for name in ENTRIES if hasattr(module, name)}
    ours = {name: before(function) for name, function in originals.items()}
    for name, function in ours.items():
        setattr(module, name, function)

    def restore():
        for name, function in ours.items():
            if getattr(module, name) is function:
                setattr(module, name, originals[name])

    return restore
