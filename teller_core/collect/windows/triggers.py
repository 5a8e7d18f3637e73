"""When the recorder asks for a window: at a time, after so many requests, on a signal, because a request is slow.

The recording process calls ``Watch.poll`` a few times a second. Nothing of it runs in the service.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from teller_core.collect.windows.control import Asked, Window, ask, asked_in
from teller_core.collect.windows.slow import Watched
from teller_core.collect.windows.tail import Tail
from teller_core.errors import InputError

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Plan:
    """What opens windows: times (s after the start), counts of requests, slow requests; and how often at most."""

    at_seconds: tuple[float, ...] = ()
    after_requests: tuple[int, ...] = ()
    slow: bool = False
    most: int = 20
    cool_down_s: float = 60.0
    window: Window = field(default_factory=Window)


def plan_of(texts: Sequence[str], window: Window | None = None) -> Plan:
    """The plan that ``--window`` asks for, each text one of ``start``, ``30s``, ``100 requests``, ``slow``.

    Raises InputError for any other text.
    """
    seconds, requests, slow = list[float](), list[int](), False
    for text in texts:
        found = re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?) ?(s|requests?)", text)
        if text in ("slow", "start"):
            slow |= text == "slow"
            requests += [1] if text == "start" else []
        elif found and found[2] == "s":
            seconds.append(float(found[1]))
        elif found and found[1].isdigit() and int(found[1]):
            requests.append(int(found[1]))
        else:
            raise InputError("--window", "it names no moment", 'Say "start", "30s", "100 requests" or "slow"')
    return Plan(tuple(sorted(seconds)), tuple(sorted(requests)), slow, window=window or Window())


class Watch:
    """Opens the windows of one capture. All times are Unix ns."""

    def __init__(self, cap: Path, plan: Plan, start: int) -> None:
        self.refused = 0
        """Windows asked for or planned that were due while another was open, or after the last that is allowed."""
        self._cap = cap
        self._plan = plan
        self._start = start
        self._slow_ones = 0
        self._times = [start + int(s * SECOND) for s in plan.at_seconds]
        self._counts = list(plan.after_requests)
        self._tail = Tail(cap)
        self._watched = Watched()
        self._signaled = False
        self._known: Asked | None = asked_in(cap)
        self._last: int | None = None
        self._count = 0

    def signal(self) -> None:
        """Open a window at the next poll. Safe inside a signal handler."""
        self._signaled = True

    def left(self) -> list[str]:
        """The moments of the plan that have not come, as ``--window`` names them."""
        times = [f"{(when - self._start) / SECOND:g}s" for when in self._times]
        counts = ["start" if count == 1 else f"{count:,} requests" for count in self._counts]
        return [*times, *counts, *(["slow"] if self._plan.slow and not self._slow_ones else [])]

    def poll(self, now: int) -> list[Asked]:
        """Ask for the window that is due, if one is, and return what was asked since the last poll, by others too."""
        asked = self._by_others()
        slow = self._learn(now) if self._plan.slow or self._counts else None
        reason = self._due(now)
        if reason is None and slow and self._plan.slow:
            reason = "slow"
        if reason is None:
            return asked
        rested = self._last is None or now - self._last >= self._rest(reason)
        if self._count >= self._plan.most or not rested:
            self.refused += reason != "slow"  # a slow one is slow at every poll
            return asked
        ask(self._cap, self._plan.window, reason)
        self._known = asked_in(self._cap)
        self._last, self._count = now, self._count + 1
        request = slow if reason == "slow" and slow else ""
        self._slow_ones += reason == "slow"
        self._watched.tell(request)
        return [*asked, Asked(now, reason, request, self._plan.window)]

    def _rest(self, reason: str) -> int:
        """ns that must have passed since the last window: what a person or the plan asks for waits only for its end."""
        return int((self._plan.cool_down_s if reason == "slow" else self._plan.window.seconds) * SECOND)

    def _by_others(self) -> list[Asked]:
        there = asked_in(self._cap)
        if there is None or there == self._known:
            return []
        self._known = there
        self._last, self._count = there.when, self._count + 1
        return [there]

    def _learn(self, now: int) -> str | None:
        slow = None
        for row in self._tail.rows():
            slow = self._watched.take(row) or slow
        return slow or self._watched.overdue(now)

    def _due(self, now: int) -> str | None:
        """The reason for a window now; what was due is crossed off, so that it cannot pile up."""
        due = None
        if self._times and now >= self._times[0]:
            self._times = [when for when in self._times if when > now]
            due = "time"
        if self._counts and self._watched.seen >= self._counts[0]:
            due = "start" if self._counts[0] == 1 else "requests"
            self._counts = [count for count in self._counts if count > self._watched.seen]
        if self._signaled:
            self._signaled = False
            due = "signal"
        return due
