"""Work done side by side, each part by a fork of this process, which shares what was read and sends back what it found.

Where this process cannot be forked (it has threads, or is on another system) the parts are done here, one after the other.
"""

import gc
import importlib
import multiprocessing
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from multiprocessing import connection
from multiprocessing.context import ForkContext
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from teller_core.errors import OutOfRoom, TellerError

Found = TypeVar("Found")


def side_by_side(parts: Sequence[Callable[[], Found]], at_once: int) -> list[Found]:
    """What each of ``parts`` returns, which must be picklable, in their order. At most ``at_once`` run at a time.

    Raises the TellerError of the first part that has one, OutOfRoom where one was killed, RuntimeError where one failed.
    """
    if at_once < 2 or len(parts) < 2 or sys.platform != "linux" or threading.active_count() > 1:
        return [part() for part in parts]
    context = multiprocessing.get_context("fork")
    found: dict[int, Found] = {}
    running: dict[Any, tuple[int, BaseProcess]] = {}
    waiting = list(range(len(parts)))
    try:
        with _kept_in_place():
            while waiting or running:
                while waiting and len(running) < at_once:
                    at = waiting.pop(0)
                    pipe, process = _started(context, parts[at])
                    running[pipe] = at, process
                for pipe in connection.wait(list(running)):
                    at, process = running.pop(pipe)
                    found[at] = _sent(pipe, process)
    finally:
        for _, process in running.values():
            process.kill()
            process.join()
    return [found[at] for at in range(len(parts))]


@contextmanager
def _kept_in_place() -> Generator[None]:
    """A collection looks at all objects, and so copies the pages that forks share: what is there now is left alone by it."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _started(context: ForkContext, part: Callable[[], Any]) -> tuple[Any, BaseProcess]:
    ours, theirs = context.Pipe(duplex=False)
    with warnings.catch_warnings():
        # Later Pythons count the threads of numpy's algebra, which a fork may have, among those that it may not.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = context.Process(target=_apart, args=(part, theirs), daemon=True)
        process.start()
    theirs.close()
    return ours, process


def _apart(part: Callable[[], Any], pipe: Any) -> None:
    """In the fork. Ctrl-C is for whoever started it, which ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with _one_thread():
            sent = part()
    except TellerError as error:
        sent = error
    pipe.send(sent)
    pipe.close()


def _one_thread() -> AbstractContextManager[object]:
    """While it lasts, what is loaded of native libraries works in one thread: in a fork its parent's threads are not there, and
    forks share the processors among themselves.
    """
    if find_spec("threadpoolctl") is None:
        return nullcontext()
    found: Any = importlib.import_module("threadpoolctl")
    return found.threadpool_limits(1)


def _sent(pipe: Any, process: BaseProcess) -> Any:
    try:
        sent = pipe.recv()
    except (EOFError, OSError):
        process.join()
        if process.exitcode == -signal.SIGKILL:
            raise OutOfRoom("The lab", "a process of it was killed", "Free some memory") from None
        raise RuntimeError("a process of the lab failed: what it said stands above") from None
    process.join()
    pipe.close()
    if isinstance(sent, TellerError):
        raise sent
    return sent
