"""Spans whose own time is surprising, one by one or, where many small ones share it, as a family."""

from dataclasses import replace

import numpy as np

from teller_core.data.assessment import SURPRISING, Candidates
from teller_core.data.table import take
from teller_core.judge.localize.runs import totals
from teller_core.judge.localize.scene import Scene, candidates

ALONE = 0.5
"""A span that holds this share of what its place adds to the step stands for itself; else the place's calls stand together."""


def find(scene: Scene) -> Candidates:
    """Candidates of one rank. A span alone has its own value and normal; a family (method ``family``) those of all its calls,
    and the row of the one that adds most.
    """
    spans, found = scene.spans, totals(scene)
    excess = spans.own - np.exp(spans.normal.astype(np.float64)) if len(found.step) else np.empty(0)
    worst = np.zeros(len(found.step), dtype=np.int32)
    alone = np.zeros(len(found.step), dtype=np.bool_)
    for i, (low, high) in enumerate(zip(found.low.tolist(), found.high.tolist(), strict=True)):
        rows = spans.order[low:high]
        worst[i] = rows[int(np.argmax(excess[rows]))]
        alone[i] = excess[worst[i]] >= ALONE * (found.own[i] - found.normal[i])
    residual = np.where(alone, spans.residual[worst], found.surprise)
    value = np.where(alone, spans.own[worst], found.own)
    normal = np.where(alone, np.exp(spans.normal[worst].astype(np.float64)), found.normal)
    table = candidates(scene, "residual", step=found.step, row=worst, value=value, normal=normal, residual=residual)
    family = [m if one else "family" for m, one in zip(table.method, alone.tolist(), strict=True)]
    keep = ~found.more & (residual >= SURPRISING)
    return take(replace(table, method=family), keep)
