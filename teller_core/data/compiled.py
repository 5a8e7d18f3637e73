"""Loops that Python is too slow for, compiled once by numba and kept on disk.

Nothing here loads numba until a module that holds such a loop is imported, and only reading and rebuilding do that.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """``function``, compiled when first called and cached beside its module or, failing that, in the user's cache folder.

    Where neither can be written the function is compiled anew by every process: slow to start, but right.
    """
    import numba

    try:
        return cast(F, numba.njit(cache=True)(function))
    except RuntimeError:  # numba: "no locator available": no folder to keep the compiled code in
        return cast(F, numba.njit(function))


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
