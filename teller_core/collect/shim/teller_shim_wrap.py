"""Record calls of other people's functions. The function runs exactly once, with its own arguments, result and errors.

What a hook costs is fetching its code and data into caches that the program has filled meanwhile: 5 to 10 microseconds for each
function it calls. So those that run at every step call few.
"""

import functools
from threading import get_native_id
from time import thread_time_ns, time_ns

from teller_shim_cost import CALLS, ODD, now, timed
from teller_shim_events import MOST_PENDING, add, lose, pending, tell_hooks
from teller_shim_guard import failed, guarded

CO_COROUTINE = 0x80
"""As in ``inspect``, which is slow to import."""
_MARK = "__teller_shim__"


def record_call(owner, name, event, describe=None, prepare=None):
    """Make every call of ``owner.name`` an X event named ``event``.

    ``describe(args, kwargs, result)`` gives further fields as a dict, or a function that makes it later. With ``prepare``,
    what ``prepare(args, kwargs)`` gave before the call is its fourth argument. Errors of both are counted.
    """

    def make(function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            timing, cpu, extra = next(CALLS) % ODD == 0, 0, ()
            if prepare is not None:
                cpu = now() if timing else 0
                extra = (guarded(event, prepare, args, kwargs),)
                cpu = thread_time_ns() - cpu if timing else 0
            start = time_ns()
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                add("X", start, event, {"err": type(error).__name__}, time_ns() - start)
                raise
            took = time_ns() - start
            cpu = cpu - now() if timing else 0
            try:
                said = None if describe is None else describe(args, kwargs, result, *extra)
            except Exception as error:  # noqa: BLE001  # as guarded does
                said = failed(event, error)
            if len(pending) < MOST_PENDING:
                pending.append(("X", start, get_native_id(), event, said, took))
            else:
                lose(1)
            if timing:
                timed(cpu + thread_time_ns())
            return result

        return recorded

    _replace(owner, name, make)


def after_await(owner, name, observe):
    """Call ``observe(args, kwargs, result)`` once each call of the coroutine function ``owner.name`` has its result.

    Any other function is left alone: whoever calls it awaits nothing.
    """

    def make(function):
        if not getattr(getattr(function, "__code__", None), "co_flags", 0) & CO_COROUTINE:
            return None

        @functools.wraps(function)
        async def observed(*args, **kwargs):
            result = await function(*args, **kwargs)
            _counted(name, observe, args, kwargs, result)
            return result

        return observed

    _replace(owner, name, make)


def before_call(owner, name, observe):
    """Call ``observe(args, kwargs)`` before every call of ``owner.name``."""

    def make(function):
        @functools.wraps(function)
        def observed(*args, **kwargs):
            try:
                _counted(name, observe, args, kwargs)
            except BaseException:  # Ctrl-C while we looked: the call is still the program's
                function(*args, **kwargs)
                raise
            return function(*args, **kwargs)

        return observed

    _replace(owner, name, make)


def after_call(owner, name, observe):
    """Call ``observe(args, kwargs, result)`` after every call of ``owner.name`` that returned."""

    def make(function):
        @functools.wraps(function)
        def observed(*args, **kwargs):
            result = function(*args, **kwargs)
            _counted(name, observe, args, kwargs, result)
            return result

        return observed

    _replace(owner, name, make)


def _counted(part, observe, *args):
    """``observe(*args)``, its errors counted under ``part`` and its CPU as the recorder's."""
    cpu = now() if next(CALLS) % ODD == 0 else 0
    guarded(part, observe, *args)
    if cpu:
        timed(thread_time_ns() - cpu)


def _replace(owner, name, make):
    function = getattr(owner, name, None)
    if getattr(function, _MARK, False):
        return
    replacement = None if function is None else make(function)
    if replacement is None:
        tell_hooks("hooks_disabled", "%s.%s" % (getattr(owner, "__name__", ""), name), "no such function", [])
    else:
        setattr(replacement, _MARK, True)
        setattr(owner, name, replacement)
