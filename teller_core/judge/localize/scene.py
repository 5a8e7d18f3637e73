"""What every localizer looks at, and what it gives back."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from teller_core.data.assessment import Baselines, Candidates, StepExpectations
from teller_core.data.capture import Capture
from teller_core.data.table import UNKNOWN, Float64, Int32, Int64, Mask
from teller_core.data.trace import Layer
from teller_core.judge import intervals
from teller_core.judge.baseline import Spans
from teller_core.judge.classes import Classes

SCOPES = (Layer.REQUEST, Layer.ENGINE, Layer.PYTHON, Layer.LOG)
"""Layers that hold operators: their own time is the silence between operators."""


@dataclass(frozen=True)
class Scene:
    """One rank of a capture with its numbers."""

    capture: Capture
    classes: Classes
    steps: StepExpectations
    over: Int64
    """int64 ns a step: when the last work for its requests was done."""
    baselines: Baselines
    spans: Spans

    @cached_property
    def window(self) -> tuple[Int64, Int64]:
        """int64 ns a step: when this rank began and stopped working on it, UNKNOWN where it has no profile of it."""
        work = self.capture.work
        mine = np.flatnonzero((work.rank == self.spans.rank) & (work.row >= 0))
        start = np.full(len(self.steps.took), UNKNOWN, dtype=np.int64)
        stop = start.copy()
        start[work.step[mine]], stop[work.step[mine]] = work.start[mine], work.stop[mine]
        return start, np.where(stop != UNKNOWN, np.minimum(stop, np.maximum(self.over, start)), stop)

    @cached_property
    def lasted(self) -> Int64:
        """int64 ns a step: how long this rank worked on it, 0 where it has no profile of it."""
        start, stop = self.window
        return np.where(start != UNKNOWN, stop - start, 0)

    @cached_property
    def operators(self) -> Mask:
        """bool a row: it is work, not a scope that holds work. Every row, where the rank recorded scopes alone."""
        work = ~np.isin(self.spans.tree.trace.layer, np.array(SCOPES, dtype=np.uint8))
        return work if work.any() else np.ones(len(work), dtype=np.bool_)

    @cached_property
    def device(self) -> intervals.Spans:
        """When any stream of the rank worked."""
        trace = self.spans.tree.trace
        return intervals.union(trace.start[trace.on_device], trace.end[trace.on_device])


def candidates(
    scene: Scene, method: str, *, step: Int32, row: Int32, value: Float64, normal: Float64, residual: Float64
) -> Candidates:
    """Candidates of one rank, named for the spans at ``row``; what they add to the step is ``value - normal``."""
    trace = scene.spans.tree.trace
    took, usual = np.round(value).astype(np.int64), np.round(normal).astype(np.int64)
    return Candidates(
        step=step.astype(np.int32),
        rank=np.full(len(row), scene.spans.rank, dtype=np.int32),
        row=row.astype(np.int32),
        name=[trace.names[int(n)] for n in trace.name[row]],
        layer=trace.layer[row],
        value=took,
        normal=usual,
        residual=residual.astype(np.float64),
        excess=took - usual,
        baseline=scene.spans.baseline[row],
        method=[method] * len(row),
    )
