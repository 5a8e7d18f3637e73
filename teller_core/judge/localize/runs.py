"""The calls of one place in one step, together: what they took and what they should have taken."""

from dataclasses import dataclass

import numpy as np

from teller_core.data.assessment import MATERIAL
from teller_core.data.table import Float64, Int32, Int64
from teller_core.judge.baseline import MIN_SPANS
from teller_core.judge.localize.scene import Mask, Scene
from teller_core.judge.robust import medians

LEAST_SPREAD = 0.1
"""The total of a place in a step is not known more closely than this: steps of one class differ by up to a factor of two."""
MANY = 1.5
"""Half as many calls again is more than a varying batch explains; one call more is not."""


@dataclass(frozen=True)
class Totals:
    """The places that add a material part to a step, one row a place and step.

    ``group``, ``step`` int32; ``low``, ``high`` int64 into ``Spans.order``; ``own``, ``normal`` float64 ns in all; ``calls``
    int64, ``usual`` float64: calls of a usual step; ``surprise`` float64: of the total against the place's totals in other
    steps, NaN where they are too few; ``more`` bool: more calls than usual.
    """

    group: Int32
    step: Int32
    low: Int64
    high: Int64
    own: Float64
    normal: Float64
    calls: Int64
    usual: Float64
    surprise: Float64
    more: Mask


def totals(scene: Scene) -> Totals:
    """The places of one rank whose calls took longer in a step, or were more, than usual."""
    spans, runs = scene.spans, scene.spans.runs
    counted = scene.operators[spans.order]
    own = np.add.reduceat(np.where(counted, spans.own[spans.order], 0), runs.begin).astype(np.float64)
    normal = np.add.reduceat(np.where(counted, np.exp(spans.normal[spans.order], dtype=np.float32), 0), runs.begin)
    normal = normal.astype(np.float64)
    calls = runs.stop - runs.begin
    usual = np.nan_to_num(spans.calls[runs.group], nan=0.0)
    more = _more(scene, calls, usual)
    fair = np.where(more, normal * usual / calls, normal)
    lasted = np.append(scene.lasted, 0)[runs.step]
    found = np.flatnonzero((runs.step >= 0) & (lasted > 0) & (own - fair >= MATERIAL * lasted))
    surprise = _surprise(scene, own, normal, found) if len(found) else np.empty(0)
    return Totals(
        group=runs.group[found],
        step=runs.step[found],
        low=runs.begin[found],
        high=runs.stop[found],
        own=own[found],
        normal=fair[found],
        calls=calls[found],
        usual=usual[found],
        surprise=surprise,
        more=more[found],
    )


def _more(scene: Scene, calls: Int64, usual: Float64) -> Mask:
    """Whether a step made more calls of a place than usual. A place that most steps lack counts only in a class of one phase:
    where prefills and decodes are held together, it may be what the other phase does.
    """
    runs, classes = scene.spans.runs, scene.classes
    cls = np.append(classes.of, np.int32(0))[runs.step]
    alike = np.array([text != "" for text in classes.text], dtype=np.bool_)
    many = (calls > MANY * usual) & (calls >= usual + 2) & (classes.steps >= MIN_SPANS)[cls]
    return many & ((usual > 0) | alike[cls]) & (runs.step >= 0)


def _surprise(scene: Scene, own: Float64, normal: Float64, found: Int64) -> Float64:
    """Each found total against all totals of its place: the log of what it took over what it should have taken. Where that was
    learned elsewhere, the middle of these totals is no longer than it: all of them may be slow.
    """
    runs = scene.spans.runs
    groups, index = np.unique(runs.group[found], return_inverse=True)
    mine = np.flatnonzero(np.isin(runs.group, groups) & (runs.step >= 0))
    ratio = np.log(np.maximum(own[mine], 1.0) / np.maximum(normal[mine], 1.0))
    shift = float(ratio.min())
    place = np.searchsorted(groups, runs.group[mine])
    middle, spread, count = medians(place, (ratio - shift).astype(np.float32), len(groups))
    middle = np.where(scene.spans.known[groups], np.minimum(middle, -shift), middle)
    mine_ratio = np.log(np.maximum(own[found], 1.0) / np.maximum(normal[found], 1.0)) - shift
    z = (mine_ratio - middle[index]) / np.maximum(spread[index], LEAST_SPREAD)
    return np.where(count[index] >= MIN_SPANS, z, np.nan)
