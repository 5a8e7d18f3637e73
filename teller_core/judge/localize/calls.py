"""Places that were called more often than usual: a slow operator may show as more calls, none of them slow."""

import numpy as np

from teller_core.data.assessment import SURPRISING, Candidates
from teller_core.data.table import take
from teller_core.judge.localize.runs import LEAST_SPREAD, totals
from teller_core.judge.localize.scene import Scene, candidates


def find(scene: Scene) -> Candidates:
    """Candidates of one rank: ``value`` is the own time of all calls of the place in the step, ``normal`` that of the usual
    number of such calls, ``row`` the first call beyond the usual number.
    """
    spans, found = scene.spans, totals(scene)
    extra = np.minimum(found.low + found.usual.astype(np.int64), found.high - 1)
    row = spans.order[extra] if len(extra) else np.empty(0, dtype=np.int32)
    residual = np.log(found.calls / np.maximum(found.usual, 0.5)) / LEAST_SPREAD
    table = candidates(
        scene, "calls", step=found.step, row=row, value=found.own, normal=found.normal, residual=residual
    )
    return take(table, found.more & (residual >= SURPRISING))
