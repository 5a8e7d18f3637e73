"""The numbers of a capture: baselines, what steps and requests should have taken, and the spans to be suspected."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.assessment import MATERIAL, Assessment, Candidates, StepExpectations
from teller_core.data.capture import Capture
from teller_core.data.learned import Learned
from teller_core.data.long_columns import let_go
from teller_core.data.table import UNKNOWN, Int64, take
from teller_core.judge.baseline import PER_ROW, learn
from teller_core.judge.classes import classify
from teller_core.judge.expectations import expect_steps, over
from teller_core.judge.known import known_steps, usual_requests
from teller_core.judge.localize import METHODS
from teller_core.judge.localize.scene import Mask, Scene
from teller_core.judge.localize.waits import without_waits
from teller_core.judge.request_load import expect_requests

MOST = 8
"""Candidates kept a step: what a person or a model can weigh, and what the published method keeps."""
SLOW_RESIDUAL = 3.0
"""A step whose time lies this many spreads above its expectation is slow; one in 700 would be by chance."""
SLOW_SHARE = 0.1
"""And only if it took a tenth longer: a tighter spread than that is a lucky capture."""
SPANS_SHARE = 0.2
"""Where spans explain a fifth of a step, the step is worth a look whatever its total says."""


def assess(capture: Capture, learned: Learned | None = None) -> Assessment:
    """What numbers alone say about ``capture``: against itself, or against what was ``learned`` of its service elsewhere."""
    steps, model = expect_steps(capture, known_steps(learned))
    end = over(capture)
    classes = classify(capture.steps, capture.work)
    baselines, spans = learn(capture, classes, None if learned is None else learned.operators)
    found: list[Candidates] = []
    for mine in spans:
        scene = Scene(capture, classes, steps, end, baselines, mine)
        for method in METHODS:
            found.append(_material(scene, without_waits(scene, method(scene))))
            let_go(*mine.tree.columns(), *(getattr(mine, name) for name in PER_ROW))
    return Assessment(
        baselines=baselines,
        steps=steps,
        candidates=_ranked(capture, steps, found),
        requests=expect_requests(capture, steps, model, usual_requests(learned)),
        reference="" if learned is None else learned.called,
        learned=learned,
    )


def _material(scene: Scene, found: Candidates) -> Candidates:
    """Those that, waits taken off, still add a material part to their step."""
    return take(found, found.excess >= MATERIAL * np.append(scene.lasted, 0)[found.step])


def _ranked(capture: Capture, steps: StepExpectations, found: Sequence[Candidates]) -> Candidates:
    """The candidates of all ranks and methods by step, largest excess first: of steps worth a look, MOST each."""
    table = _concatenate(found)
    table = take(table, _worth(capture, steps, table)[table.step])
    order = np.lexsort((table.row, table.rank, -table.excess, table.step))
    step = table.step[order]
    place = np.arange(len(step)) - np.searchsorted(step, step, "left")
    return take(table, order[place < MOST])


def _worth(capture: Capture, steps: StepExpectations, table: Candidates) -> Mask:
    """bool a step: it is slow, or its spans' excess on one rank is a material part of it."""
    known = (steps.excess != UNKNOWN) & (steps.expected > 0)
    slow = known & (steps.residual >= SLOW_RESIDUAL) & (steps.excess >= SLOW_SHARE * np.maximum(steps.expected, 1))
    count, ranks = len(steps.took), max(len(capture.ranks), 1)
    share = np.bincount(table.step * ranks + table.rank, weights=table.excess, minlength=count * ranks)
    most = share.reshape(count, ranks).max(axis=1) if count else np.empty(0)
    return slow | (most >= SPANS_SHARE * _lasted(capture, steps))


def _lasted(capture: Capture, steps: StepExpectations) -> Int64:
    """int64 ns a step: the longest that a rank worked on it, else what it took; never 0."""
    out = np.where(steps.took != UNKNOWN, steps.took, 1)
    longest = np.zeros(len(out), dtype=np.int64)
    np.maximum.at(longest, capture.work.step, capture.work.stop - capture.work.start)
    return np.maximum(np.where(longest > 0, longest, out), 1)


def _concatenate(found: Sequence[Candidates]) -> Candidates:
    if not found:
        return _NONE
    joined: dict[str, object] = {}
    for name in vars(_NONE):
        parts = [getattr(table, name) for table in found]
        joined[name] = [x for part in parts for x in part] if name in ("name", "method") else np.concatenate(parts)
    return Candidates(**joined)  # pyright: ignore[reportArgumentType] -- columns by name keep their types


_NONE = Candidates(
    step=np.empty(0, np.int32),
    rank=np.empty(0, np.int32),
    row=np.empty(0, np.int32),
    name=[],
    layer=np.empty(0, np.uint8),
    value=np.empty(0, np.int64),
    normal=np.empty(0, np.int64),
    residual=np.empty(0),
    excess=np.empty(0, np.int64),
    baseline=np.empty(0, np.int32),
    method=[],
)
