"""All collectives that the ranks called: those in their traces and, outside of these, those that a recorder of calls timed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from teller_core.data.capture import Rank
from teller_core.data.records import CollectiveFact
from teller_core.data.steps import StepWork
from teller_core.rebuild.collective_calls import Call, recorded_calls, traced_calls
from teller_core.rebuild.ranks import Ranked


def all_calls(ranked: Ranked, work: StepWork, facts: Mapping[int, Sequence[CollectiveFact]]) -> list[Call]:
    """The collectives of every rank. A process with several traces has several entries: what is in none of its traces goes to
    the first of them, so that no call is there twice.
    """
    traced = [traced_calls(i, rank, work) for i, rank in enumerate(ranked.ranks)]
    entries: defaultdict[object, list[int]] = defaultdict(list)
    for i, where in enumerate(ranked.places):
        entries[where].append(i)
    calls: list[Call] = []
    for of in entries.values():
        seen = [i for i in of if traced[i]]
        calls += [call for i in seen for call in traced[i]]
        if all(_on_unix(ranked.ranks[i]) for i in seen):
            windows = [_window(traced[i]) for i in seen]
            recorded = in_steps(recorded_calls(of[0], facts.get(of[0], ())), of, work)
            calls += [call for call in recorded if not any(_overlap(call, window) for window in windows)]
    return sorted(calls, key=lambda call: (call.rank, call.start, call.row))


def _on_unix(rank: Rank) -> bool:
    """Whether times of its trace can be compared with those of a recorder."""
    return rank.tree is None or rank.tree.trace.origin.clock == "unix"


def _window(calls: Sequence[Call]) -> tuple[int, int]:
    return calls[0].start, max(call.start + call.dur for call in calls)


def _overlap(call: Call, window: tuple[int, int]) -> bool:
    return window[0] <= call.start + call.dur and call.start <= window[1]


def in_steps(calls: Sequence[Call], entries: Sequence[int], work: StepWork) -> list[Call]:
    """``calls`` of a process, whose positions among the ranks are ``entries``, each with the step that it ran at the time."""
    own = np.flatnonzero(np.isin(work.rank, entries))
    if not len(own) or not calls:
        return list(calls)
    own = own[np.argsort(work.start[own], kind="stable")]
    start = np.array([call.start for call in calls], dtype=np.int64)
    k = np.searchsorted(work.start[own], start, side="right") - 1
    inside = (k >= 0) & (start <= work.stop[own][k])
    steps = np.where(inside, work.step[own][k], -1).tolist()
    return [call._replace(step=step) for call, step in zip(calls, steps, strict=True)]
