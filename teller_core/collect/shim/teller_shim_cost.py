"""What the recorder costs this process: CPU inside its hooks, sampled, and of its own thread, measured whole.

One call in ODD is timed on the thread's own clock. It is no power of two: hooks come in turns (schedule, update), and an
even step would time one of them alone. The clock's own cost is inside, so the sum errs upwards.
"""

import itertools
import time

ODD = 61
CALLS = itertools.count(1)
"""Every call takes one number: a hook that counts costs no frame of Python's."""
_hooks = {"counted": 0, "timed": 0, "ns": 0}
_thread = {"ns": 0, "ended": 0}


def due():
    """Thread CPU ns now where this call is one to be timed, else None. Every call counts."""
    return now() if next(CALLS) % ODD == 0 else None


def now():
    """Thread CPU ns now. The clock is read twice: to fetch its code, which the calls that are not timed do not need, is not
    the hook's cost.
    """
    time.thread_time_ns()
    return time.thread_time_ns()


def spent(since):
    """Add what the calling thread used since ``due`` gave ``since``; nothing where it gave None."""
    if since is not None:
        _hooks["ns"] += time.thread_time_ns() - since


def timed(ns=0):
    """One timed call is complete, which used ``ns`` besides."""
    _hooks["ns"] += ns
    _hooks["timed"] += 1


def thread_total(ends=False):
    """Take down all that the calling thread, the recorder's own, has used so far. Another one may follow where it ``ends``."""
    _thread["ns"] = _thread["ended"] + time.thread_time_ns()
    if ends:
        _thread["ended"] = _thread["ns"]


def report():
    """``cpu_ns`` of the recorder in this process so far, and its two parts."""
    calls = next(CALLS) - 1 - _hooks["counted"]
    _hooks["counted"] += 1  # to look at the counter is to take a number
    hooks = _hooks["ns"] * calls // _hooks["timed"] if _hooks["timed"] else 0
    return {"cpu_ns": hooks + _thread["ns"], "hooks_ns": hooks, "thread_ns": _thread["ns"], "calls": calls}


def after_fork():
    """A child has used nothing yet."""
    _hooks.update(counted=next(CALLS), timed=0, ns=0)
    _thread.update(ns=0, ended=0)
