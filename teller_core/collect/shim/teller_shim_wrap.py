"""Record calls of other people's functions. The function runs exactly once, with its own arguments, result and errors."""

import functools
import time

from teller_shim_events import add, instant
from teller_shim_guard import guarded

_MARK = "__teller_shim__"


def record_call(owner, name, event, describe=None):
    """Make every call of ``owner.name`` an X event named ``event``.

    ``describe(args, kwargs, result)`` gives further fields as a dict. Errors of ``describe`` are counted.
    """

    def make(function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            start = time.time_ns()
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                add("X", start, event, {"dur": time.time_ns() - start, "err": type(error).__name__})
                raise
            fields = {"dur": time.time_ns() - start}
            if describe is not None:
                fields.update(guarded(event, describe, args, kwargs, result, default={}))
            add("X", start, event, fields)
            return result

        return recorded

    _replace(owner, name, make)


def before_call(owner, name, observe):
    """Call ``observe(args, kwargs)`` before every call of ``owner.name``."""

    def make(function):
        @functools.wraps(function)
        def observed(*args, **kwargs):
            guarded(name, observe, args, kwargs)
            return function(*args, **kwargs)

        return observed

    _replace(owner, name, make)


def _replace(owner, name, make):
    function = getattr(owner, name, None)
    if function is None:
        instant("hooks_disabled", package=getattr(owner, "__name__", ""), version="no " + name, tested=[])
    elif not getattr(function, _MARK, False):
        replacement = make(function)
        setattr(replacement, _MARK, True)
        setattr(owner, name, replacement)
