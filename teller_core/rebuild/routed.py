"""Requests that a router passed on, and those that an engine received: one and the same where no id says so, but time does.

A router that hands its id on is joined by it. One that does not names requests that no engine knows: such a one is the
engine's request that came within the time of a hop after it was passed on, if it is the only one that did, and if no other
was passed on within that time before it.
"""

from collections import Counter
from collections.abc import Sequence

from teller_core.data.records import RequestFact, known
from teller_core.rebuild.entry import Entry
from teller_core.rebuild.legs import SLACK

ROUTED = "routed"
CAME = ("received", "added", "queued")
"""Facts that tell when an engine had a request."""


def join_routed(entries: list[Entry], problems: Counter[str]) -> list[Entry]:
    """``entries`` with requests of a router laid on those of an engine.

    Problems: ``routed_without_engine``: requests of a router that fit none of an engine, or several.
    """
    routed = [entry for entry in entries if entry.facts and all(fact.kind == ROUTED for fact in entry.facts)]
    routed = [entry for entry in routed if not entry.spans() and entry.client is None]
    alone = {id(entry) for entry in routed}
    came = [entry for entry in entries if id(entry) not in alone and not any(f.kind == ROUTED for f in entry.facts)]
    arrivals = [(first, entry) for entry in came if (first := _first(entry, CAME)) is not None]
    gone: set[int] = set()
    fits = {id(entry): _fits(_first(entry, (ROUTED,)), arrivals) for entry in routed}
    claims = Counter(id(one) for some in fits.values() for one in some)
    for entry in routed:
        fit = fits[id(entry)]
        if len(fit) == 1 and claims[id(fit[0])] == 1:
            fit[0].facts += entry.facts
            gone.add(id(entry))
    problems["routed_without_engine"] += len(routed) - len(gone)
    return [entry for entry in entries if id(entry) not in gone]


def _first(entry: Entry, kinds: Sequence[str]) -> RequestFact | None:
    said = [fact for fact in entry.facts if fact.kind in kinds and known(fact.time) and known(fact.resolution)]
    return min(said, key=lambda fact: (fact.resolution, fact.time), default=None)


def _fits(passed: RequestFact | None, arrivals: Sequence[tuple[RequestFact, Entry]]) -> list[Entry]:
    if passed is None:
        return []
    low, high = passed.time, passed.time + passed.resolution + SLACK
    return [entry for came, entry in arrivals if came.time <= high and came.time + came.resolution >= low]
