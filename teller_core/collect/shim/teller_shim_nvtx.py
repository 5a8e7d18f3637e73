"""NVTX ranges of Python code where no injection library listens. Ranges from C++ are missed."""

import functools
import os
import threading
import time

from teller_shim_events import add
from teller_shim_guard import guarded
from teller_shim_imports import known_library, when_imported

TESTED = ("0.2",)
"""Of nvtx: 0.2.8 to 0.2.17, each of them (tests/studies/hook_versions.py)."""
_open = threading.local()


def install():
    """Record ``nvtx.annotate``, ``push_range``, ``pop_range`` and ``mark``."""
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        when_imported("nvtx.nvtx", _wrap)


def _push(message, domain):
    _open.__dict__.setdefault("ranges", []).append((time.time_ns(), message, domain))


def _pop():
    ranges = _open.__dict__.get("ranges")
    if ranges:
        start, message, domain = ranges.pop()
        fields = {"dur": time.time_ns() - start, "domain": None if domain is None else str(domain)}
        add("N", start, str(message or ""), fields)


def _wrap(module):
    """Before ``nvtx`` itself takes its names from this module."""
    if not known_library("nvtx", TESTED):
        return
    module.annotate = _annotate(module.annotate)
    push, pop, mark = module.push_range, module.pop_range, module.mark

    @functools.wraps(push)
    def push_range(message=None, color="blue", domain=None, *args, **kwargs):
        guarded("nvtx", _push, message, domain)
        return push(message, color, domain, *args, **kwargs)

    @functools.wraps(pop)
    def pop_range(*args, **kwargs):
        guarded("nvtx", _pop)
        return pop(*args, **kwargs)

    @functools.wraps(mark)
    def marked(message=None, *args, **kwargs):
        guarded("nvtx", add, "M", time.time_ns(), str(message or ""), {})
        return mark(message, *args, **kwargs)

    module.push_range, module.pop_range, module.mark = push_range, pop_range, marked


def _annotate(original):
    class annotate(original):
        def __init__(self, message=None, color=None, domain=None, *args, **kwargs):
            super().__init__(message, color, domain, *args, **kwargs)
            self._teller = (message, domain)

        def __enter__(self):
            guarded("nvtx", _push, *self._teller)
            return super().__enter__()

        def __exit__(self, *error):
            guarded("nvtx", _pop)
            return super().__exit__(*error)

        def __call__(self, function):
            inner = super().__call__(function)
            message, domain = self._teller

            @functools.wraps(function)
            def ranged(*args, **kwargs):
                guarded("nvtx", _push, message or function.__name__, domain)
                try:
                    return inner(*args, **kwargs)
                finally:
                    guarded("nvtx", _pop)

            return ranged

    annotate.__name__ = original.__name__
    annotate.__qualname__ = original.__qualname__
    return annotate
