"""How much sooner profiled steps of a struck window would have ended, by replay of each with what is usual in healthy windows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np

from teller_core.context.linking import step_linked
from teller_core.data.assessment import MATERIAL
from teller_core.data.capture import Capture
from teller_core.data.steps import Steps
from teller_core.data.table import UNKNOWN, Float64, Int64
from teller_core.judge.prepare import MANY_ROWS
from teller_core.judge.replay import Network, network, saving
from teller_core.judge.replay.network import unclaimed
from teller_core.lab.blocks import Window
from teller_core.lab.lifting.pairs import Sums

LEAST_TWINS = 3
"""Steps of a phase that are compared with, at least."""

Key = tuple[str, ...]
OUTSIDE: Key = ("outside",)
"""Time of a step before and after its spans: nothing can run then that replay knows of."""


class Owned(NamedTuple):
    """One step as replay sees it: its ``graph``; ``keys`` of owners of time: by what they are and stand below, and the owners
    (int64) of each.
    """

    graph: Network
    keys: Mapping[Key, Int64]

    @property
    def lasted(self) -> int:
        """ns from the begin of its first span to the end of the last."""
        linked = self.graph.linked
        timed = linked.host | linked.work
        return int(linked.end[timed].max() - linked.start[timed].min()) if timed.any() else 0

    def total(self, key: Key) -> int:
        """ns that the owners of ``key`` took by themselves, waits not counted."""
        return int(self.graph.kept.owned[self.keys[key]].sum())


@dataclass
class Usual:
    """What is usual in steps of one phase: of all that a key owns in a step, its time beside what the step's work takes."""

    steps: int = 0
    shares: dict[Key, list[float]] = field(default_factory=lambda: defaultdict[Key, list[float]](list))

    def learn(self, step: Owned, lasted: int, work: float) -> None:
        """Count ``step`` in, which lasted so many ns and whose work takes ``work`` ns."""
        self.steps += 1
        self.shares[OUTSIDE].append((lasted - step.lasted) / work)
        for key in step.keys:
            self.shares[key].append(step.total(key) / work)

    def of(self, key: Key, work: float) -> float:
        """ns that it usually owns of a step whose work takes ``work``, 0 where most steps lack it."""
        missing = self.steps - len(self.shares[key])
        return work * median([*self.shares[key], *[0.0] * missing] or [0.0])


def deep(capture: Capture, window: Window) -> Int64:
    """int64: the steps of ``window`` that a profile overlaps, and whose times are known."""
    steps, work = capture.steps, capture.work
    many = np.unique(work.step[(work.row >= 0) & (work.row_stop - work.row >= MANY_ROWS)])
    begin, end = steps.begin()[many], steps.end()[many]
    inside = (begin != UNKNOWN) & (end != UNKNOWN) & (begin >= window.begin) & (end <= window.end)
    return many[inside].astype(np.int64)


def of_profiled(
    capture: Capture, expected: Float64, struck: Window, healthy: Sequence[Window], elsewhere: Sequence[Window]
) -> tuple[Sums | None, str]:
    """The profiled steps of ``struck``, what is usual learned from the windows ``elsewhere``, the truth from ``healthy`` ones
    beside it; and why there is none. ``expected`` float64 ns: what each step's work takes, as steps differ in that.
    """
    phases, lasted = [str(phase) for phase in capture.steps.phases()], _lasted(capture.steps)
    usual: dict[str, Usual] = defaultdict(Usual)
    for window in elsewhere:
        for step in deep(capture, window).tolist():
            seen = owned(capture, step)
            if seen is not None and expected[step] > 0:
                usual[phases[step]].learn(seen, int(lasted[step]), float(expected[step]))
    twins: dict[str, list[float]] = defaultdict(list)
    for window in healthy:
        for step in deep(capture, window).tolist():
            if expected[step] > 0:
                twins[phases[step]].append(float(lasted[step] / expected[step]))
    rows: list[tuple[float, ...]] = []
    why = "no step of its phase was profiled in healthy windows"
    for step in deep(capture, struck).tolist():
        phase = phases[int(step)]
        seen = owned(capture, step) if len(twins[phase]) >= LEAST_TWINS and usual[phase].steps >= LEAST_TWINS else None
        if seen is None or not expected[step] > 0:
            continue
        if reason := unclaimed(seen.graph):
            why = reason
            continue
        work, took = float(expected[step]), int(lasted[step])
        less = took - work * median(twins[phase])
        apart = work * (median(twins[phase][::2]) - median(twins[phase][1::2])) / 2
        rows.append((1, took, less, apart, *predicted(seen, usual[phase], took, work)))
    return (Sums(len(rows), *np.sum(rows, axis=0).tolist()[1:]), "") if rows else (None, why)


def predicted(step: Owned, usual: Usual, lasted: int, work: float) -> tuple[float, float, float]:
    """ns that the step saves where all that took a material part of it longer than usual for its ``work`` is usual, time before
    and after its spans too: by replay, by what that took too long, and by scaling all of the step as it all would shrink.
    """
    spans: list[Int64] = []
    durations: list[Int64] = []
    own = whole = less = outside = 0.0
    beside = lasted - step.lasted
    if (over := beside - usual.of(OUTSIDE, work)) >= MATERIAL * lasted:
        own, outside = over, over
    for key, owners in step.keys.items():
        total, middle = step.total(key), usual.of(key, work)
        whole += total
        less += total - middle
        if total - middle >= MATERIAL * lasted:
            own += total - middle
            spans.append(owners)
            durations.append(np.round(step.graph.kept.owned[owners] * (middle / total)).astype(np.int64))
    scaled = lasted * min(max(less, 0.0) / max(whole, 1.0), 1.0)
    if not spans:
        return outside, own, scaled
    return outside + saving(step.graph, np.concatenate(spans), np.concatenate(durations)).low, own, scaled


def owned(capture: Capture, step: int) -> Owned | None:
    """The step as replay sees it; None where no profile has rows of it."""
    linked = step_linked(capture, step)
    if linked is None:
        return None
    graph = network(linked)
    found: dict[Key, list[int]] = defaultdict(list)
    first = linked.first
    for at, (part, low) in enumerate(zip(linked.parts, first.tolist(), strict=False)):
        trace, parent = part.tree.trace, part.tree.parent
        rank = str(part.rank)
        for row, (name, above) in enumerate(zip(trace.name.tolist(), parent.tolist(), strict=True)):
            over = str(trace.names[int(trace.name[above])]) if above >= 0 else ""
            found[rank, str(trace.names[name]), over].append(low + row)
        for stop in np.flatnonzero(linked.stops.part == at).tolist():
            kind = capture.pauses.kind[int(linked.stops.at[stop])]
            found[rank, "", kind].append(graph.nodes.stop_owner + stop)
    for meeting, kind in enumerate(linked.calls.kind):
        found["", kind].append(graph.nodes.meeting_owner + meeting)
    for lane, part in enumerate(linked.lane_part.tolist()):
        found["", "silence", str(part)].append(graph.nodes.lane_owner + lane)
    return Owned(graph, {key: np.array(owners, dtype=np.int64) for key, owners in found.items()})


def _lasted(steps: Steps) -> Int64:
    return np.where((steps.begin() != UNKNOWN) & (steps.end() != UNKNOWN), steps.end() - steps.begin(), 0)
