"""Record calls of other people's functions. The function runs exactly once, with its own arguments, result and errors."""

import functools
import time

from teller_shim_cost import due, spent, timed
from teller_shim_events import add, tell_hooks
from teller_shim_guard import guarded

_MARK = "__teller_shim__"


def record_call(owner, name, event, describe=None, prepare=None):
    """Make every call of ``owner.name`` an X event named ``event``.

    ``describe(args, kwargs, result)`` gives further fields as a dict, or a function that makes it later. With ``prepare``,
    what ``prepare(args, kwargs)`` gave before the call is its fourth argument. Errors of both are counted.
    """

    def make(function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            cpu = due()
            extra = () if prepare is None else (guarded(event, prepare, args, kwargs),)
            spent(cpu)
            start = time.time_ns()
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                add("X", start, event, {"dur": time.time_ns() - start, "err": type(error).__name__})
                raise
            took = time.time_ns() - start
            cpu = None if cpu is None else time.thread_time_ns()
            _note(event, start, took, describe, (args, kwargs, result, *extra))
            if cpu is not None:
                spent(cpu)
                timed()
            return result

        return recorded

    _replace(owner, name, make)


def _note(event, start, took, describe, call):
    said = {} if describe is None else guarded(event, describe, *call, default={})
    if callable(said):
        add("X", start, event, lambda: dict(said(), dur=took))
    else:
        said = {} if said is None else said
        said["dur"] = took
        add("X", start, event, said)


def after_await(owner, name, observe):
    """Call ``observe(args, kwargs, result)`` once each call of the coroutine function ``owner.name`` has its result."""

    def make(function):
        @functools.wraps(function)
        async def observed(*args, **kwargs):
            result = await function(*args, **kwargs)
            _counted(guarded, name, observe, args, kwargs, result)
            return result

        return observed

    _replace(owner, name, make)


def before_call(owner, name, observe):
    """Call ``observe(args, kwargs)`` before every call of ``owner.name``."""

    def make(function):
        @functools.wraps(function)
        def observed(*args, **kwargs):
            _counted(guarded, name, observe, args, kwargs)
            return function(*args, **kwargs)

        return observed

    _replace(owner, name, make)


def after_call(owner, name, observe):
    """Call ``observe(args, kwargs, result)`` after every call of ``owner.name`` that returned."""

    def make(function):
        @functools.wraps(function)
        def observed(*args, **kwargs):
            result = function(*args, **kwargs)
            _counted(guarded, name, observe, args, kwargs, result)
            return result

        return observed

    _replace(owner, name, make)


def _counted(work, *args):
    """``work(*args)``, its CPU counted as the recorder's."""
    cpu = due()
    work(*args)
    if cpu is not None:
        spent(cpu)
        timed()


def _replace(owner, name, make):
    function = getattr(owner, name, None)
    if function is None:
        tell_hooks("hooks_disabled", "%s.%s" % (getattr(owner, "__name__", ""), name), "no such function", [])
    elif not getattr(function, _MARK, False):
        replacement = make(function)
        setattr(replacement, _MARK, True)
        setattr(owner, name, replacement)
