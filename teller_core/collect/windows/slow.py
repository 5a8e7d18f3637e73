"""Which requests are slower than those before them: what opens a window while the slowness still lasts.

A request is slow where its wait for the first token, or its time a token, lies above the 99th percentile of the requests
before it and at twice their median: of a service whose requests all take the same, one in a hundred is not slow. One that
still waits is slow as soon as it has waited longer than that.
"""

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REMEMBERED = 1_000
ENOUGH = 50
"""Requests that must be known before one is called slow: of fewer, the 99th percentile is their slowest."""
FORGOTTEN_NS = 600_000_000_000
"""After so long without a first token its caller is gone, and its end was not seen."""
MOST_OPEN = 20_000
"""Requests that are followed at once. Of more, the oldest are let go: they may have ended unseen."""


class Usual:
    """The latest values of one duration, in order."""

    def __init__(self) -> None:
        self._latest: deque[int] = deque()
        self._ordered: list[int] = []

    def add(self, value: int) -> None:
        """Remember ``value`` (ns) and forget the oldest where there are too many."""
        self._latest.append(value)
        insort(self._ordered, value)
        if len(self._latest) > REMEMBERED:
            del self._ordered[bisect_left(self._ordered, self._latest.popleft())]

    def limit(self) -> int | None:
        """ns above which a value is slow, or None while too few are known."""
        known = len(self._ordered)
        if known < ENOUGH:
            return None
        return max(self._ordered[int(known * 0.99)], 2 * self._ordered[known // 2])


@dataclass
class _Open:
    received: int
    first: int | None = None
    told: bool = False


@dataclass
class Watched:
    """Requests on their way, and how long those before them took."""

    going: OrderedDict[str, _Open] = field(default_factory=OrderedDict[str, _Open])
    first_token: Usual = field(default_factory=Usual)
    a_token: Usual = field(default_factory=Usual)
    seen: int = 0

    def take(self, row: Mapping[str, Any]) -> str | None:
        """Learn from one event of a request. Returns the request's id where this shows that it was slow."""
        request = row.get("rid")
        if not isinstance(request, str):
            return None
        match row["name"]:
            case "request.received" | "request.added":
                self._received(request, row)
            case "request.first_token":
                return self._first(request, row["t"])
            case "request.finished":
                return self._finished(request, row)
            case "request.aborted":
                self.going.pop(request, None)
            case _:
                pass
        return None

    def overdue(self, now: int) -> str | None:
        """The oldest request that has waited for its first token longer than is usual, if there is one."""
        limit = self.first_token.limit()
        if limit is None:
            return None
        waiting = ((rid, now - one.received) for rid, one in self.going.items() if one.first is None and not one.told)
        return next((rid for rid, waited in waiting if limit < waited < FORGOTTEN_NS), None)

    def tell(self, request: str) -> None:
        """Name ``request`` as overdue no more: one that never ends would be so for ever."""
        if request in self.going:
            self.going[request].told = True

    def _received(self, request: str, row: Mapping[str, Any]) -> None:
        """vLLM says when a request came with the id that it got later."""
        if request in self.going:
            return
        self.seen += 1
        came = row.get("at")
        self.going[request] = _Open(came if isinstance(came, int) else row["t"])
        if len(self.going) > MOST_OPEN:
            self.going.popitem(last=False)

    def _first(self, request: str, when: int) -> str | None:
        one = self.going.get(request)
        if one is None or one.first is not None:
            return None
        one.first = when
        return request if _over(self.first_token, when - one.received) else None

    def _finished(self, request: str, row: Mapping[str, Any]) -> str | None:
        one = self.going.pop(request, None)
        tokens = row.get("tokens")
        if one is None or one.first is None or not isinstance(tokens, int) or tokens < 2:
            return None
        return request if _over(self.a_token, (row["t"] - one.first) // (tokens - 1)) else None


def _over(usual: Usual, value: int) -> bool:
    limit = usual.limit()
    usual.add(value)
    return limit is not None and value > limit
