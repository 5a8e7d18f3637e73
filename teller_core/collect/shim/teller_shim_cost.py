"""What the recorder costs this process: CPU inside its hooks, sampled, and of its own thread, measured whole.

One call in ODD is timed on the thread's own clock. It is no power of two: hooks come in turns (schedule, update), and an
even step would time one of them alone. The clock's own cost is inside, so the sum errs upwards.
"""

import time

ODD = 61
_hooks = {"calls": 0, "timed": 0, "ns": 0}
_thread = {"ns": 0, "ended": 0}


def due():
    """Thread CPU ns now where this call is one to be timed, else None. Every call counts."""
    _hooks["calls"] += 1
    return time.thread_time_ns() if _hooks["calls"] % ODD == 0 else None


def spent(since):
    """Add what the calling thread used since ``due`` gave ``since``; nothing where it gave None."""
    if since is not None:
        _hooks["ns"] += time.thread_time_ns() - since


def timed():
    """One timed call is complete."""
    _hooks["timed"] += 1


def thread_total(ends=False):
    """Take down all that the calling thread, the recorder's own, has used so far. Another one may follow where it ``ends``."""
    _thread["ns"] = _thread["ended"] + time.thread_time_ns()
    if ends:
        _thread["ended"] = _thread["ns"]


def report():
    """``cpu_ns`` of the recorder in this process so far, and its two parts."""
    hooks = _hooks["ns"] * _hooks["calls"] // _hooks["timed"] if _hooks["timed"] else 0
    return {"cpu_ns": hooks + _thread["ns"], "hooks_ns": hooks, "thread_ns": _thread["ns"], "calls": _hooks["calls"]}


def after_fork():
    """A child has used nothing yet."""
    _hooks.update(calls=0, timed=0, ns=0)
    _thread.update(ns=0, ended=0)
