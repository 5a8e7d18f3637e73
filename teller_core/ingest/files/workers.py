"""Files read side by side, each by a process of its own or by this one, with the results in the order of the files.

What comes back is the same as if the files were read here, one after the other. Where this process has one thread, a reader
is a fork of it and finds the compiled code loaded, and this process reads files too while the readers do: a fork is saved.
Elsewhere a reader comes from a server of forks or is a new interpreter, and this process waits. A reader
ignores Ctrl-C, which is for whoever started it, and ends with that process. How many run at once depends on the processors
and on the memory that they may use.
"""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import connection
from multiprocessing.context import ForkContext, ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from teller_core.data.means import within_means
from teller_core.data.trace import Trace
from teller_core.data.tree import Tree
from teller_core.errors import OutOfRoom, TellerError
from teller_core.ingest.files.handover import Packed, pack, unpack
from teller_core.ingest.files.opening import within
from teller_core.ingest.files.room import cores, memory
from teller_core.ingest.formats import reader_of
from teller_core.ingest.found import Found, Place, Progress

Nest = Callable[[Trace], Tree]
Context = ForkContext | ForkServerContext | SpawnContext
Sent = tuple[Found, list[Packed]] | TellerError
"""What a reader sends: what the file held, its trees handed over in a file, or why it could not be read."""

LEAST_S = 0.15
"""Seconds that reading a file takes, about, from which a process of its own pays: a fork and its hand-over take 50 ms."""
LEAST_S_ELSEWHERE = 3.0
"""The same where this process cannot be forked: a new interpreter loads the compiled code, which takes 1.2 s."""
PACE = {"kineto": 400 << 20, "nsight_sqlite": 50 << 20}
"""Expanded bytes that are read in a second, by format; READ for the others, which are text that Python reads."""
READ = 5 << 20
EXPANSION = 10
"""Traces and logs expand 8 to 15 times."""
NEEDS = {"engine_log": 5}
"""Bytes of memory that reading takes for an expanded byte, by format; 1 for the others, less for a long trace."""
SHARE = 0.7
"""Of the memory that is left, what all readers together may take."""
LOOK_S = 0.1
"""Seconds between two looks at how far the readers are."""
WORD = 8
"""Bytes of a number in the file in which readers note how far they are."""
WARMING = b'{"traceEvents": [{"ph": "X", "name": "a", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'
"""The smallest trace: reading it loads the compiled code."""


class Task(NamedTuple):
    """A file to read: where it lies, what format it is of, and what its reader is told."""

    path: Path
    format: str
    place: Place
    size: int
    compressed: bool
    within: tuple[Path, ...] = ()
    """The folders that alone may be read, none where all may."""

    @property
    def expanded(self) -> int:
        """Bytes when expanded, about."""
        return self.size * (EXPANSION if self.compressed else 1)

    @property
    def takes(self) -> float:
        """Seconds to read it, about."""
        return self.expanded / PACE.get(self.format, READ)


class Read(NamedTuple):
    """What a file held, and the trees of its traces where they were nested. ``refusal``: why it could not be read."""

    found: Found
    trees: Sequence[Tree] = ()
    refusal: TellerError | None = None


@dataclass
class _Reader:
    """One running process and the end of the pipe that its result comes through."""

    task: Task
    process: BaseProcess
    pipe: "connection.Connection[None, Sent]"


@dataclass
class _Readers:
    """The files that are not read yet, those being read and the results nobody has asked for, by position."""

    nest: Nest
    folder: Path
    context: Context
    most: int
    """Files read at once by readers: one less than are read where this process reads too."""
    reads_here: bool
    room: int
    waiting: list[tuple[int, Task]]
    here: int = 0
    """Bytes of memory that the file which this process is reading needs."""
    running: dict[int, _Reader] = field(default_factory=dict[int, _Reader])
    done: dict[int, Read] = field(default_factory=dict[int, Read])


def read_each(
    tasks: Sequence[Task], nest: Nest | None, notes: Sequence[Progress], *, folder: Path, jobs: int | None = None
) -> Generator[Read]:
    """What each file held, in their order; ``notes`` hear how far each is. ``jobs``: files read at once, 1 for one after the
    other; by default as many as pay. Processes hand over through a new folder in ``folder``. Close the generator where it is
    not exhausted: that ends its processes.

    Errors: OutOfRoom for a reader that was killed, or ran out of something.
    """
    apart = [] if nest is None else worth_apart(tasks, jobs)
    if nest is None or not apart:
        yield from (read_here(task, nest, note) for task, note in zip(tasks, notes, strict=True))
        return
    folder = Path(mkdtemp(dir=folder))
    if any(tasks[i].format in PACE for i in apart):
        _warm(nest, folder)
    context, room, most = _context(), int(SHARE * memory()), min(len(apart), jobs or cores())
    reads_here = context.get_start_method() == "fork"
    waiting = [(i, tasks[i]) for i in apart]
    readers = _Readers(nest, folder, context, most - reads_here, reads_here, room, waiting)
    try:
        for i, task in enumerate(tasks):
            _start(readers)
            yield _result(readers, i, notes) if i in apart else read_here(task, nest, notes[i])
    finally:
        _end(readers)


def worth_apart(tasks: Sequence[Task], jobs: int | None) -> list[int]:
    """Positions of the files that are worth a process each: none where fewer than two are, or only one may run."""
    least = 0 if jobs else LEAST_S if _may_fork() else LEAST_S_ELSEWHERE
    large = [i for i, task in enumerate(tasks) if task.takes >= least]
    return large if min(len(large), jobs or cores()) > 1 else []


def read_here(task: Task, nest: Nest | None, progress: Progress | None) -> Read:
    """What the file held, read by this process. Errors: OutOfRoom, which is no finding about the file."""
    try:
        with within(task.within):
            found = reader_of(task.format)(task.path, task.place, progress)
    except OutOfRoom:
        raise
    except TellerError as error:
        return Read(Found(), refusal=error)
    if nest is None:
        return Read(found)
    trees = [nest(found.traces.pop(0)) for _ in range(len(found.traces))]  # none is held twice as it is and nested
    found.traces = [tree.trace for tree in trees]
    return Read(found, trees)


def _may_fork() -> bool:
    """Whether a fork of this process is safe: no other thread can hold a lock that the fork would find taken for ever."""
    return sys.platform == "linux" and threading.active_count() == 1


def _context() -> Context:
    if _may_fork():
        return multiprocessing.get_context("fork")
    if "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["teller_core.ingest.kineto.collected", __name__])
        return context
    return multiprocessing.get_context("spawn")


def _warm(nest: Nest, folder: Path) -> None:
    """Load the compiled code, and compile it once where that was never done, before several processes want it."""
    path = folder / "warming.json"
    path.write_bytes(WARMING)
    read_here(Task(path, "kineto", Place(), len(WARMING), False), nest, None)
    path.unlink()


def _start(readers: _Readers) -> None:
    """Start readers in order while processors and memory allow; one may always run."""
    while readers.waiting and len(readers.running) < readers.most:
        number, task = readers.waiting[0]
        if not _fits(readers, task):
            return
        readers.waiting.pop(0)
        with _interrupts_held(), warnings.catch_warnings():
            # Later Pythons count the threads of numpy's algebra, which a fork may have, among those that it may not.
            warnings.simplefilter("ignore", DeprecationWarning)
            ours, theirs = readers.context.Pipe(duplex=False)
            process = readers.context.Process(
                target=_read_apart, args=(number, task, readers.nest, readers.folder, theirs), daemon=True
            )
            process.start()
            theirs.close()
            readers.running[number] = _Reader(task, process, ours)


def _fits(readers: _Readers, task: Task) -> bool:
    """Whether memory allows to read a further file: always where none is being read."""
    taken = readers.here + sum(_need(reader.task) for reader in readers.running.values())
    return not taken or taken + _need(task) <= readers.room


def _need(task: Task) -> int:
    return task.expanded * NEEDS.get(task.format, 1)


def _result(readers: _Readers, number: int, notes: Sequence[Progress]) -> Read:
    """The result of the file at ``number``, as soon as it is there."""
    while number not in readers.done:
        _start(readers)
        if readers.reads_here and readers.waiting and _fits(readers, readers.waiting[0][1]):
            _read_beside(readers, notes)
            _look(readers, notes, 0)
        else:
            _look(readers, notes, LOOK_S)
    _start(readers)  # so that they read on while what was found is used
    return readers.done.pop(number)


def _read_beside(readers: _Readers, notes: Sequence[Progress]) -> None:
    """Read the next file here, and look after the readers meanwhile."""
    number, task = readers.waiting.pop(0)
    looked = time.monotonic()

    def note(done: int) -> None:
        nonlocal looked
        notes[number](done)
        if time.monotonic() - looked >= LOOK_S:
            _look(readers, notes, 0)
            _start(readers)
            looked = time.monotonic()

    readers.here = _need(task)
    with within_means(task.path.name):
        read = read_here(task, readers.nest, note)
        if readers.waiting and not read.refusal:
            # As readers hand over theirs: of many long ranks memory need not hold those read here.
            columns = _columns(readers.folder, number)
            read = _handed_over(read.found, pack(read.trees, columns), columns)
        readers.done[number] = read
    readers.here = 0


def _look(readers: _Readers, notes: Sequence[Progress], wait_s: float) -> None:
    """Take what readers have sent, after at most ``wait_s`` seconds, and note how far the others are."""
    ready = connection.wait([reader.pipe for reader in readers.running.values()], wait_s)
    for at in [at for at, reader in readers.running.items() if reader.pipe in ready]:
        _take(readers, at)
    for at in readers.running:
        notes[at](_noted(readers.folder, at))


def _take(readers: _Readers, number: int) -> None:
    """What a reader sent, or how it ended."""
    reader = readers.running[number]
    try:
        sent = reader.pipe.recv()
    except (EOFError, OSError):  # the second: it ended in the middle of what it sent
        raise _ended(reader) from None
    if isinstance(sent, OutOfRoom):
        raise sent
    if isinstance(sent, TellerError):
        readers.done[number] = Read(Found(), refusal=sent)
    else:
        found, packed = sent
        readers.done[number] = _handed_over(found, packed, _columns(readers.folder, number))
    del readers.running[number]
    reader.pipe.close()
    # Nobody waits for its end: giving its memory back takes a while. The interpreter collects what has ended.


def _handed_over(found: Found, packed: Sequence[Packed], columns: Path) -> Read:
    trees = unpack(packed, columns)
    found.traces = [tree.trace for tree in trees]
    return Read(found, trees)


def _ended(reader: _Reader) -> TellerError | RuntimeError:
    reader.process.join()
    code = reader.process.exitcode or 0
    if code < 0:
        why = "the process that read it was killed, as happens where memory runs out"
        return OutOfRoom(
            reader.task.path.name, why, "Import fewer files at once, or read them one by one with --jobs 1"
        )
    return RuntimeError(f"a reader of {reader.task.format} failed: --jobs 1 reads here and shows where")


def _end(readers: _Readers) -> None:
    for reader in readers.running.values():
        reader.process.kill()
    for reader in readers.running.values():
        reader.process.join()
        reader.pipe.close()
    readers.running.clear()


@contextmanager
def _interrupts_held() -> Generator[None]:
    """Ctrl-C waits until the block is done: what starts in it is known to whoever has to end it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# What follows runs in a reader.


def _read_apart(
    number: int,
    task: Task,
    nest: Nest,
    folder: Path,
    pipe: "connection.Connection[Sent, None]",
) -> None:
    """Read one file, and send what it held or why it could not be read."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()  # a collection would look at, and so copy, all that this process shares with the one it was forked from
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a terminal belongs to the process that draws on it
    try:
        with within_means(task.path.name):
            read = read_here(task, nest, partial(_note, folder, number))
            read.found.traces = []
            sent = read.refusal or (read.found, pack(read.trees, _columns(folder, number)))
    except TellerError as error:
        sent = error
    with suppress(BrokenPipeError):  # nobody wants it any more
        _send(pipe, task.path.name, sent)


def _send(pipe: "connection.Connection[Sent, None]", name: str, sent: Sent) -> None:
    """Send a result; where there is no memory to write it down as bytes, that."""
    try:
        with within_means(name):
            pipe.send(sent)
    except OutOfRoom as error:
        pipe.send(error)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _columns(folder: Path, number: int) -> Path:
    return folder / f"{number}.columns"


def _note(folder: Path, number: int, done: int) -> None:
    """Say how far the reading of a file is. On a full disk nobody is told: that alone stops no reader."""
    with suppress(OSError):
        (folder / f"{number}.read").write_bytes(done.to_bytes(WORD, "little"))


def _noted(folder: Path, number: int) -> int:
    try:
        return int.from_bytes((folder / f"{number}.read").read_bytes(), "little")
    except OSError:
        return 0
