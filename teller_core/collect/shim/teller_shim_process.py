"""The recorder's life in one process: start, a quiet thread, garbage collections, forks, the end.

The thread is one of the system, not of ``threading``: a program that waits for all its threads to end must not wait for
ours, nor trace it. It takes no signals: one that the program holds back, to wait for it, would end the process.
"""

import _warnings
import atexit
import gc
import os
import sys
import time
from _signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask, valid_signals
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread

import teller_shim_collectives as collectives
import teller_shim_cost as cost
import teller_shim_events as events
import teller_shim_imports as imports
import teller_shim_nvtx
import teller_shim_transformers
import teller_shim_vllm
from teller_shim_guard import guarded
from teller_shim_wrap import after_await

TESTED = (
    *("0.30", "0.31", "0.32", "0.33", "0.34", "0.35", "0.36", "0.37", "0.38", "0.39", "0.40", "0.41", "0.42"),
    *("0.43", "0.44", "0.45", "0.46", "0.47", "0.48", "0.49", "0.50", "0.51", "0.52", "0.53", "0.54"),
)
"""Of uvicorn, each of them (tests/studies/hook_versions.py)."""
TICK_S = 0.125
FLUSH_EVERY = 2
"""Ticks after which what is pending is written."""
RESTING, RESTING_TICK_S = 8, 0.25
"""After so many times with nothing to write, a process is looked at less often."""
LATE_NS = 20_000_000
LONG_COLLECTION_NS = 1_000_000
SILENT_S = 1.0
"""A process that lives longer than this is in the bundle, even where it has nothing to say."""
REPORT_S = 5.0
GONE_S = 0.5
LAST_S, WINDOW_S = 5.0, 10.0
"""How long the end of a process waits for what it did last to be written, and how much longer where a window may be open: a disk
that is dead answers never, and must not hold the program.
"""
TASKS = "/proc/self/task"
"""Where Linux lists the threads of a process."""
_thread = {}
"""``stop`` while a thread runs that nobody has told to end: held until then. ``ended``: held by the last one until its last line.
``number``: what the system calls it. ``last``: what it does before it ends.
"""
FORKS = "This process (pid=%d) is multi-threaded, use of %s() may lead to deadlocks in the child."
"""What Python says, to the letter: a filter with a pattern would want a module that the program may not have loaded."""
_silenced = []
"""The lists of filters into which ours were put, and these."""
_collections = {}


def start(folder):
    """Record this process into ``folder``, and its forked children too."""
    os.makedirs(folder, exist_ok=True)
    events.open_in(folder)
    imports.watch()
    for engine in (teller_shim_vllm, teller_shim_transformers, teller_shim_nvtx, collectives):
        guarded(engine.__name__, engine.install)
    imports.when_imported("multiprocessing.util", lambda module: _multiprocessing(module, folder))
    # ``uvicorn`` itself comes to its end, where it says its version, after ``uvicorn.server``.
    imports.when_imported(
        "uvicorn", lambda _: imports.when_imported("uvicorn.server", lambda module: _uvicorn(module, folder))
    )
    gc.callbacks.append(_collection)
    os.register_at_fork(
        before=lambda: guarded("fork", _before_fork),
        after_in_parent=lambda: guarded("fork", _run_thread, folder),
        after_in_child=lambda: guarded("fork", _in_child, folder),
    )
    atexit.register(lambda: guarded("end", _end, folder))
    _run_thread(folder)


def _run_thread(folder):
    stop, ended = allocate_lock(), allocate_lock()
    stop.acquire()
    ended.acquire()
    if _thread.setdefault("stop", stop) is not stop:
        return  # two threads forked at once: the first has started it again
    _thread["ended"] = ended
    before = pthread_sigmask(SIG_BLOCK, ())
    try:
        pthread_sigmask(SIG_BLOCK, valid_signals())
        start_new_thread(_live, (folder, stop, ended))
    except BaseException:
        _thread.clear()  # there is none to wait for
        raise
    finally:
        pthread_sigmask(SIG_SETMASK, before)


def _before_fork():
    """Python 3.12 and up warn of a fork beside threads: ours must not be the reason. From 3.13 on it looks when ours runs again
    already: there the warning of this fork is left out where the program had one thread.
    """
    _stop_thread()
    if sys.version_info >= (3, 13):
        _let_warn()
        if os.path.exists(TASKS) and len(os.listdir(TASKS)) == 1:
            filters = getattr(sys.modules.get("warnings"), "filters", _warnings.filters)
            ours = [
                ("ignore", FORKS % (os.getpid(), name), DeprecationWarning, None, 0) for name in ("fork", "forkpty")
            ]
            _silenced.append((filters, ours))
            filters[:0] = ours


def _let_warn():
    """Take our filters out of the program's, which it may look at, copy or send to others. In time: a tick after the fork."""
    while _silenced:
        filters, ours = _silenced.pop()
        for one in ours:
            if one in filters:
                filters.remove(one)


def _stop_thread(patience=GONE_S):
    """Before a fork, and at the end. False where it has not ended, as a dead disk holds it: then it goes on once it can."""
    stop = _thread.pop("stop", None)
    if stop is not None:
        stop.release()
    ended = _thread.get("ended")
    if ended is None:
        return True
    if ended.acquire(timeout=patience):
        ended.release()
        _wait_until_gone(_thread.get("number"))
        return True
    if stop is not None and stop.acquire(False):
        _thread["stop"] = stop  # it has not seen it: a second one beside it would be held as well
    return False


def _wait_until_gone(number):
    """After its last line a thread takes the interpreter once more, to go: until then the system counts it, as Python does."""
    there, late = "%s/%s" % (TASKS, number), time.monotonic() + GONE_S
    while os.path.exists(there) and time.monotonic() < late:
        time.sleep(0.0001)


def _in_child(folder):
    events.after_fork()
    cost.after_fork()
    collectives.after_fork()
    _of_profile("after_fork")
    _collections.clear()
    _let_warn()
    _thread.clear()  # of the parent
    events.open_in(folder)
    _run_thread(folder)


def _live(folder, stop, ended):
    _thread["number"] = get_native_id()
    try:
        guarded("thread", _watch, folder, stop)
        last = _thread.pop("last", None)
        if last is not None:
            guarded("end", last, folder)
    finally:
        ended.release()


def _watch(folder, stop):
    """Say how late this thread got processor and interpreter lock; four times a second, write and obey the control file."""
    began = reported = time.monotonic()
    tick, turn, rested = TICK_S, 0, 0
    before = time.monotonic_ns()
    while not stop.acquire(True, tick):
        guarded("fork", _let_warn)
        late = time.monotonic_ns() - before - int(tick * 1e9)
        if late > LATE_NS:
            events.add("L", time.time_ns(), "thread_lag", {"lag": late})
        turn += 1
        if tick > TICK_S or turn % FLUSH_EVERY == 0:
            now = time.monotonic()
            if now - reported > REPORT_S:
                reported = now
                _look_around(folder)
            guarded("profile", _obey, folder)
            wrote = guarded("write", events.flush, now - began > SILENT_S, default=0)
            rested = 0 if wrote > 1 else rested + 1  # one may be our own report
            tick = RESTING_TICK_S if rested >= RESTING else TICK_S
        before = time.monotonic_ns()
    cost.thread_total(ends=True)


def _look_around(folder):
    """What is due every five seconds."""
    cost.thread_total()
    guarded("cost", _report)
    guarded("collectives", collectives.watch, folder)


def _obey(folder):
    """A short-lived process must not pay for the profiler's window: its module is loaded once one is asked for."""
    if "teller_shim_profile" in sys.modules or os.path.exists(os.path.join(folder, "PROFILE")):
        import teller_shim_profile

        teller_shim_profile.obey(folder)


def _of_profile(name, *args):
    """Call a function of the profiler's window where its module has been loaded."""
    module = sys.modules.get("teller_shim_profile")
    if module is not None:
        getattr(module, name)(*args)


def _report():
    events.instant("shim_cost", **cost.report())


def _collection(phase, info):
    """Runs inside the collector: two dictionary accesses and at most one append."""
    thread = get_ident()
    if phase == "start":
        _collections[thread] = time.time_ns()
        return
    began = _collections.pop(thread, None)
    took = 0 if began is None else time.time_ns() - began
    if took >= LONG_COLLECTION_NS:
        fields = {"dur": took, "gen": info["generation"], "collected": info["collected"]}
        events.add("G", began, "gc", fields)


def _multiprocessing(module, folder):
    """Forked workers leave by ``os._exit``, which runs no ``atexit``."""

    def finalize(_):
        module.Finalize(None, lambda: guarded("end", _end, folder), exitpriority=-1000)

    module.register_after_fork(_end, finalize)


def _uvicorn(module, folder):
    """A server that a signal ended sends itself the signal again once it has served, and that runs no ``atexit``: so all is
    written when it has.
    """
    if not imports.known_library("uvicorn", TESTED):
        return

    def served(args, kwargs, result):
        _end(folder)
        _run_thread(folder)  # the process may live on

    after_await(module.Server, "shutdown", served)


def _end(folder):
    """No thread of ours may still run while the interpreter goes away. It writes what is left itself: a disk that is dead holds
    it, and not the program.
    """
    if "stop" in _thread:
        _thread["last"] = _write_all
        _stop_thread(LAST_S + (WINDOW_S if "teller_shim_profile" in sys.modules else 0))
        _thread.pop("last", None)
    elif _stop_thread():
        _write_all(folder)


def _write_all(folder):
    """An open window must not be lost, nor what is not a quarter second old."""
    guarded("profile", _of_profile, "finish", folder)
    guarded("collectives", collectives.finish, folder)
    if not events.silent():
        events.flush()
        _report()
        events.instant("process_end", anchor=events.anchor())
        events.flush()
