"""A file that may grow to a bound: lines are kept in memory and written by a thread of our own four times a second.

TELLER_CAPTURE_BYTES bounds what a process keeps on disk: it is written in segments of an eighth, and the oldest is removed.
TELLER_CAPTURE_SECONDS bounds its age alike. Each segment begins with the same head, its clocks read anew. A disk that
refuses costs lines, which are counted; it never costs the program anything.
"""

import atexit
import itertools
import json
import os
import threading
import time
from collections import Counter, deque
from contextlib import suppress

EVERY_S = 0.25
SEGMENTS = 8
MOST_BYTES = 64 << 20
"""About 200,000 steps: half an hour of a busy engine."""
MOST_PENDING = 20_000
"""Steps that wait to be written: a few minutes of them, kilobytes each."""
TIMED = 11
"""One call in so many is timed. It is no even number: whoever calls in turns would be timed in one of them alone."""
COST_EVERY_NS = 1_000_000_000
LAST_S = 5.0
"""How long the end of the program waits for what it did last to be written: a disk that is dead answers never."""
AT_ONCE = 32
"""Rows made text in one go: the program's own threads get the interpreter in between."""
_text = json.JSONEncoder(separators=(",", ":"), default=str).encode
problems = Counter()
"""How often a part failed, by (part, type of error). Texts of errors are not kept: they may hold the program's data."""


def guarded(part, function, *args):
    """``function(*args)``, or None where it raised, which is counted: vLLM must never feel our mistakes."""
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001  # the one place of the plugin that catches everything
        problems[part, type(error).__name__] += 1
        return None


class Writer:
    """Takes rows from any thread; ``head`` begins every segment."""

    def __init__(self, environment, head):
        self.folder = environment["TELLER_CAPTURE_DIR"]
        self.segment = max(4096, _number(environment.get("TELLER_CAPTURE_BYTES"), MOST_BYTES) // SEGMENTS)
        self.age_ns = _number(environment.get("TELLER_CAPTURE_SECONDS"), 0) * 1_000_000_000
        self.head = head
        self.rows = deque()
        self.kept = deque()
        self.fd = self.file = None
        self.size = self.began = self.lost = self.dropped = self.timed = self.inside = self.thread_ns = 0
        self.calls = itertools.count(1)
        self.looked = 0
        self.told = (0, 0)
        self.resting = False
        self.torn = False
        self.wake, self.ending, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.writing = threading.Lock()
        self.pid = os.getpid()
        threading.Thread(target=self._run, name="teller-stats", daemon=True).start()
        atexit.register(self._end)

    def add(self, make, *known):
        """Keep the rows that ``make(*known)`` gives; they are made when they are written."""
        if len(self.rows) >= MOST_PENDING:
            self.lost += 1
            return
        self.rows.append((make, known))
        if self.resting:
            self.wake.set()

    def begin(self):
        """Count a call. Thread CPU ns where it is one to be timed, else 0."""
        if next(self.calls) % TIMED:
            return 0
        time.thread_time_ns()  # to fetch the clock's own code is not the call's cost
        return time.thread_time_ns()

    def spent(self, since):
        """Count the processor time that one call took from the program since ``begin``."""
        self.timed += 1
        self.inside += time.thread_time_ns() - since

    def flush(self, last=False):
        """Write what is pending."""
        with self.writing:
            now = time.time_ns()
            some = left = len(self.rows)  # not until it is empty: a busy program would not let that be
            while left > 0:
                portion = [self.rows.popleft() for _ in range(min(AT_ONCE, left))]
                left -= len(portion)
                lines = [line for make, known in portion for line in guarded("record", _lines, make, known) or ()]
                self._write("".join(lines), len(lines), now)
            if last or now - self.told[0] > COST_EVERY_NS:
                calls = next(self.calls) - 1 - self.looked
                self.looked += 1  # to look at the counter is to take a number
                if self.told[1] != calls:
                    self.told = (now, calls)
                    self._write(_text(self._cost(now, calls)) + "\n", 1, now)
        return some > 0

    def _run(self):
        while not self.ending.is_set():
            self.resting = True
            if not self.rows:
                self.wake.wait()
            self.resting = False
            self.wake.clear()
            busy = True
            while busy and not self.ending.wait(EVERY_S):
                busy = guarded("write", self.flush)
                self.thread_ns = time.thread_time_ns()
        guarded("end", self.flush, True)
        self.ended.set()

    def _end(self):
        """Our thread writes what is left: a disk that is dead holds it, and not the program. A forked child has none."""
        if os.getpid() == self.pid:
            self.ending.set()
            self.wake.set()
            self.ended.wait(LAST_S)

    def _cost(self, now, calls):
        """What the plugin itself took so far: in the program's thread, in ours, and what went wrong."""
        inside = self.inside * calls // self.timed if self.timed else 0
        row = {"k": "C", "t": now, "calls": calls, "cpu_ns": inside, "writer_ns": self.thread_ns}
        failed = {"%s.%s" % key: count for key, count in list(problems.items())}
        row.update({"errors": failed} if failed else {})
        row.update({"lost": self.lost} if self.lost else {})
        row.update({"dropped": self.dropped} if self.dropped else {})
        return row

    def _write(self, text, rows, now):
        data = text.encode("utf-8", "backslashreplace")
        try:
            if self.fd is not None and not self._is_ours():
                self.fd = None
            if self.fd is None or self.size + len(data) > self.segment or self._old(now):
                self._next(now)
            if self.torn:
                data = b"\n" + data
            written = os.write(self.fd, data)
            self.size += written
            self.torn = written != len(data)
            self.lost += rows if self.torn else 0
        except OSError as error:
            problems["write", type(error).__name__] += 1
            self.lost += rows

    def _old(self, now):
        return self.age_ns and now - self.began > self.age_ns // SEGMENTS

    def _is_ours(self):
        """Whether the descriptor still is our file: a program may close all it finds, and open its own."""
        try:
            return _identity(self.fd) == self.file
        except OSError:
            return False

    def _next(self, now):
        """Begin a segment under a number that nobody has used: a restarted container may have the same pid."""
        number = self.kept[-1][1] + 1 if self.kept else 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        os.makedirs(self.folder, exist_ok=True)
        while True:
            path = os.path.join(self.folder, "stats-%d-%04d.jsonl" % (os.getpid(), number))
            try:
                fd = os.open(path, flags, 0o644)
                break
            except FileExistsError:
                number += 1
        if self.fd is not None:
            os.close(self.fd)
        self.fd, self.file, self.size, self.began, self.torn = fd, _identity(fd), 0, now, False
        self.kept.append((path, number, now))
        while len(self.kept) > SEGMENTS or (self.age_ns and len(self.kept) > 1 and now - self.kept[1][2] > self.age_ns):
            with suppress(OSError):  # somebody else removed it
                os.unlink(self.kept.popleft()[0])
            self.dropped += 1
        anchor = [time.time_ns(), time.monotonic_ns(), time.perf_counter_ns()]
        zone = time.localtime().tm_gmtoff  # the log that this process writes beside us names none
        first = json.dumps(dict(self.head, t=now, anchor=anchor, zone=zone, segment=number), default=str) + "\n"
        self.size += os.write(fd, first.encode())


def _lines(make, known):
    return [_text(row) + "\n" for row in make(*known)]


def _identity(fd):
    about = os.fstat(fd)
    return about.st_dev, about.st_ino


def _number(text, otherwise):
    try:
        return max(1, int(text))
    except (TypeError, ValueError):
        return otherwise
