"""Loops that Python is too slow for, compiled once by numba and kept on disk.

Nothing here loads numba until a module that holds such a loop is imported: reading, rebuilding, tokens and replay do that.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, **options: bool) -> F:
    """``function``, compiled when first called and cached beside its module or, failing that, in the user's cache folder.

    Where neither can be written the function is compiled anew by every process: slow to start, but right. A compiled
    function works on the arrays it is given and makes none: without reference counts (``_nrt``) calls cost nothing.
    """
    from numba import njit

    jit = cast(Callable[..., Callable[[F], F]], njit)
    try:
        return jit(cache=True, _nrt=False, **options)(function)
    except RuntimeError:  # numba: "no locator available": no folder to keep the compiled code in
        return jit(_nrt=False, **options)(function)


def inlined(function: F) -> F:
    """As :func:`compiled`, for a function that is part of its callers: an array would be seven words at every call."""
    return compiled(function, forceinline=True)


def forget_stale(function: Callable[..., Any], *sources: str | None) -> None:
    """Delete what is cached of ``sources``, files of compiled functions that call one another, if any of them is newer.

    numba looks at the file of the function called and not at the files of those it calls, whose code is part of it.
    ``function`` is one that is compiled: all are kept in one folder.
    """
    files = [Path(source) for source in sources if source]
    folder = getattr(getattr(function, "stats", None), "cache_path", "") or "."
    with suppress(OSError):  # a folder that cannot be changed was filled by an installation, which is of one piece
        newest = max(file.stat().st_mtime for file in files)
        for index in [index for file in files for index in Path(folder).glob(f"{file.stem}.*.nbi")]:
            if index.stat().st_mtime < newest:
                index.unlink()


@contextmanager
def announce_compiling(say: Callable[[], object]) -> Generator[None]:
    """Call ``say()`` once if something really has to be compiled inside the block, before it is: that takes many seconds."""
    from numba.core import event

    class Listener(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                self.said = True
                say()

        def on_end(self, event: Any) -> None:
            pass

    with cast(Any, event).install_listener("numba:compile", Listener()):
        yield
