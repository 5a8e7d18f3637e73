"""Ten times a second, from outside: who of the service ran, who waited for a processor, what it wrote, what was scarce.

``samples.jsonl`` holds one counter a line: ``t`` (Unix ns), ``pid`` (0 for the whole machine), ``name`` ending with its
unit, ``value`` and, for one thread, ``tid``. Counters only grow; one that is missing has not changed. No code runs in
the service.

What moves is read at every turn: threads that are new, or ran or waited for a hundredth of the last second. The others, and
context switches, which are dear to read, are read once a second, and in a process that did nothing less often.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from teller_core.collect import proc
from teller_core.collect.segments import Segments

INTERVAL_S = 0.1
SLOW_EVERY = 10
"""New processes are looked for, and threads read that do little, once in this many turns."""
IDLE_EVERY = 50
"""Threads of a process that did nothing are read once in this many turns."""
COUNT_EVERY = 3
"""New threads in a process whose threads all rest are looked for once in this many turns."""
GROUPS_EVERY = 100
"""A process rarely changes its control groups."""
MOST_OPEN = 512
"""Files kept open: half of what a process may have open by default."""
MOVED_NS = 10_000_000
MACHINE_EVERY = 3
"""How busy all processors are is read once in this many turns."""
QUICK_NS = 200_000
"""/proc/stat counts every interrupt of every processor: where reading it takes longer, it is read once a second."""
Pair = tuple[int, int]


@dataclass
class _Member:
    """One process: (run, waited) of its threads, which of them move, the sums of all that it ever had, its control groups."""

    io: str
    """Where its input and output are counted."""
    files: dict[int, str] = field(default_factory=dict[int, str])
    """Where each of its threads is counted."""
    texts: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """What was read there last: a thread of which the same is read has not moved."""
    threads: dict[int, Pair] = field(default_factory=dict[int, Pair])
    moving: set[int] = field(default_factory=set[int])
    before: dict[int, Pair] = field(default_factory=dict[int, Pair])
    switches: dict[int, Pair] = field(default_factory=dict[int, Pair])
    ran: int = 0
    waited: int = 0
    ended_switches: Pair = (0, 0)
    count: int = 0
    ticks: int = 0
    groups: tuple[str, ...] = ()


class Sampler:
    """Samples the process ``root`` and all that come from it into ``file``."""

    def __init__(self, root: int, file: Segments) -> None:
        self._family = proc.Family(root)
        self._file = file
        self._kept = proc.Kept(MOST_OPEN)
        self._members: dict[int, _Member] = {}
        self._values: dict[tuple[int, str], int] = {}
        self._texts: dict[str, bytes] = {}
        """By its path, what a file said last: what says the same again is not looked at."""
        self._limited: set[tuple[str, ...]] = set()
        """Control groups with a quota."""
        self._lines: list[str] = []
        self._turn = 0
        self._quick = True

    def turn(self, last: bool = False) -> None:
        """Read and write everything that is due."""
        if self._file.is_full():
            self._values.clear()  # a piece stands alone: what it does not say has to be looked for in no other
            self._texts.clear()
            for member in self._members.values():
                member.texts.clear()
            self._file.turn()
        slow = last or self._turn % SLOW_EVERY == 0
        if slow:
            self._look_for_members()
        for pid, member in self._members.items():
            self._process(pid, member, slow, last)
        self._groups(slow)
        self._machine(slow)
        self._file.write(self._lines)
        self._lines = []
        self._turn += 1

    def close(self) -> None:
        """Read once more and give back what is open."""
        self.turn(last=True)
        self._kept.close()
        self._file.close()

    def _look_for_members(self) -> None:
        living = self._family.members()
        for pid in self._members.keys() - set(living):
            self._forget(pid, self._members.pop(pid))
        for pid in living:
            if pid not in self._members:
                self._members[pid] = _Member(f"{proc.PROC}/{pid}/io", groups=proc.groups(pid))
                self._texts.clear()  # what is told of every member is to be told of this one too
            elif self._turn % GROUPS_EVERY == 0:
                self._members[pid].groups = proc.groups(pid)

    def _process(self, pid: int, member: _Member, slow: bool, last: bool) -> None:
        now = time.time_ns()
        if slow:
            ticks = proc.ticks(pid)
            slow = last or ticks != member.ticks or bool(member.moving) or self._turn % IDLE_EVERY == 0
            member.ticks = ticks
        if slow or member.moving or self._turn % COUNT_EVERY == 0:
            count = proc.thread_count(pid)
            if slow or count != member.count:
                self._look_for_threads(pid, member)
                member.count = count
        if not (slow or member.moving):
            return
        for thread in member.threads if slow else member.moving:
            self._thread(now, pid, member, thread)
        self._say(now, pid, "run_ns", member.ran)
        self._say(now, pid, "run_queue_wait_ns", member.waited)
        if slow:
            self._second(now, pid, member)
        if text := self._news(member.io):
            self._say_all(now, pid, proc.io(text))

    def _news(self, path: str) -> str:
        """What the file says, or nothing where it says what it said before."""
        text = self._kept.raw(path, proc.FEW_BYTES)
        if self._texts.get(path) == text:
            return ""
        self._texts[path] = text
        return text.decode("utf-8", "replace")

    def _thread(self, now: int, pid: int, member: _Member, thread: int) -> None:
        """Most of what is read, ten times a second: it writes its two lines itself."""
        text, last = self._kept.raw(member.files[thread], proc.FEW_BYTES), member.texts.get(thread)
        if text == last:
            return
        moved = proc.ran(text)
        if moved is None:  # it has ended, and another may have begun: they are listed at the next turn
            member.count = -1
            return
        member.texts[thread] = text
        before = member.threads[thread]
        member.threads[thread] = moved
        ran, waited = moved[0] - before[0], moved[1] - before[1]
        member.ran += ran
        member.waited += waited
        head, end = f'{{"t":{now},"pid":{pid},"name":"run', f',"tid":{thread}}}'
        if ran or last is None:
            self._lines.append(f'{head}_ns","value":{moved[0]}{end}')
        if waited or last is None:
            self._lines.append(f'{head}_queue_wait_ns","value":{moved[1]}{end}')

    def _look_for_threads(self, pid: int, member: _Member) -> None:
        """Take in new threads, as moving ones, and count those that ended among the ended."""
        living = set(proc.thread_ids(pid))
        for thread in living - member.threads.keys():
            member.threads[thread] = (0, 0)
            member.files[thread] = proc.schedstat(pid, thread)
            member.moving.add(thread)
        for thread in member.threads.keys() - living if living else ():
            member.moving.discard(thread)
            del member.threads[thread]
            member.ended_switches = _sums(member.ended_switches, {thread: member.switches.pop(thread, (0, 0))})
            member.texts.pop(thread, None)
            self._close(member.files.pop(thread))

    def _second(self, now: int, pid: int, member: _Member) -> None:
        """Count the switches of threads that ran or waited since the last time, and tell which of them move."""
        for thread, (run, waited) in member.threads.items():
            moved = run + waited - sum(member.before.get(thread, (0, 0)))
            if moved and (counted := proc.switches(pid, thread)) != (0, 0):
                member.switches[thread] = counted
            (member.moving.add if moved > MOVED_NS else member.moving.discard)(thread)
        member.before = dict(member.threads)
        own, forced = _sums(member.ended_switches, member.switches)
        self._say(now, pid, "voluntary_switches", own)
        self._say(now, pid, "involuntary_switches", forced)

    def _groups(self, slow: bool) -> None:
        """Throttling and pressure, read once a group and said of each of its processes. Where no group has a quota, whether one
        got it is looked for where it is ``slow``.
        """
        read: dict[tuple[str, ...], list[proc.Reading]] = {}
        now = time.time_ns()
        for pid, member in self._members.items():
            if (found := read.get(member.groups)) is None:
                found = [*proc.group_pressure(member.groups, self._news)]
                if slow or member.groups in self._limited:
                    found += proc.throttling(member.groups, self._kept.read)
                    limited = proc.limited(member.groups, self._kept.read)
                    (self._limited.add if limited else self._limited.discard)(member.groups)
                read[member.groups] = found
            self._say_all(now, pid, found)

    def _machine(self, slow: bool) -> None:
        now = time.time_ns()
        self._say_all(now, 0, proc.pressure(self._news))
        if slow or (self._quick and self._turn % MACHINE_EVERY == 0):
            began = time.perf_counter_ns()
            self._say_all(now, 0, map(self._grown, proc.processors(self._kept.read)))
            self._quick = time.perf_counter_ns() - began < QUICK_NS

    def _grown(self, reading: proc.Reading) -> proc.Reading:
        """A counter of /proc/stat, no less than before: kernels take back what they counted as waiting or idle."""
        return reading._replace(value=max(reading.value, self._values.get((0, reading.name), 0)))

    def _say_all(self, now: int, pid: int, readings: Iterable[proc.Reading]) -> None:
        for name, value in readings:
            self._say(now, pid, name, value)

    def _say(self, now: int, pid: int, name: str, value: int) -> None:
        key = (pid, name)
        if self._values.get(key) != value:
            self._values[key] = value
            self._lines.append(f'{{"t":{now},"pid":{pid},"name":"{name}","value":{value}}}')

    def _forget(self, pid: int, member: _Member) -> None:
        for path in (member.io, *member.files.values()):
            self._close(path)
        for key in [key for key in self._values if key[0] == pid]:
            del self._values[key]

    def _close(self, path: str) -> None:
        self._kept.forget(path)
        self._texts.pop(path, None)


def _sums(before: Pair, counted: Mapping[int, Pair]) -> Pair:
    """Both numbers of all threads together, those ``before`` included."""
    first, second = before
    for one, other in counted.values():
        first += one
        second += other
    return first, second
