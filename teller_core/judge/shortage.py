"""When an engine had no place for more: requests lay before it that it did not take between two steps."""

import numpy as np

from teller_core.data.table import UNKNOWN
from teller_core.judge.intervals import EMPTY, Spans, overlap, union
from teller_core.judge.prepare import Case
from teller_core.judge.scene import Scene, over_work

SHORT_NS = 30_000_000
"""A request that an engine takes so soon after the step in which it came was not kept out."""


def kept_out(case: Case, engine: int) -> Spans:
    """When some request waited for an engine beyond the step in which it came; what kept it out is not said."""
    return case.once("kept out", _kept_out).get(engine, EMPTY)


def crowded(scene: Scene) -> int:
    """ns that a request took over what its work asks for while it ran beside as many as the engine has places for: no more than
    lay in times in which others were kept out, and without what held up its steps or made it wait itself.
    """
    life = scene.life
    if not len(life.step) or UNKNOWN in (life.chosen, life.last) or not scene.span:
        return 0
    low, high = max(life.chosen, scene.low), min(life.last, scene.high)
    number = int(scene.case.capture.steps.engine[life.step[0]])
    inside = overlap(kept_out(scene.case, number), low, high) - scene.during(life.evicted)
    waited = 0 if life.queued == UNKNOWN else max(life.chosen - max(life.queued, scene.low), 0)
    held = scene.holds
    left = over_work(scene) - waited - scene.during(life.evicted) - int(held.over[held.low >= low].sum())
    return max(min(left, inside), 0)


def _kept_out(case: Case) -> dict[int, Spans]:
    table = case.capture.requests
    number = (
        np.where(table.engine < 0, min(case.engines, default=-1), table.engine)
        if len(case.engines) < 2
        else table.engine
    )
    found: dict[int, Spans] = {}
    for engine, one in case.engines.items():
        mine = np.flatnonzero((number == engine) & (table.queued != UNKNOWN) & (table.scheduled != UNKNOWN))
        if not len(mine) or not len(one.step):
            continue
        queued, taken = table.queued[mine], table.scheduled[mine]
        # It may have come while a step ran: the engine looks when that is over.
        before = np.searchsorted(one.begin, queued, "right") - 1
        since = np.where(before >= 0, np.maximum(one.stop_reach[np.maximum(before, 0)], queued), queued)
        late = taken - since > SHORT_NS
        found[engine] = union(since[late], taken[late])
    return found
