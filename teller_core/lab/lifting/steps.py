"""How much less the steps of a struck window would have taken, by what their work costs in healthy windows of other rounds."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.table import Float64, Int64
from teller_core.judge.reschedule.costs import features, phases
from teller_core.lab.blocks import Window
from teller_core.lab.lifting.calm import Calm, during
from teller_core.lab.lifting.pairs import Sums

ALIKE = 5
"""Steps of healthy twins that a struck one is compared with: those whose work is most like its own."""


def of_steps(calm: Calm, struck: Window, healthy: Sequence[Window]) -> Sums | None:
    """The steps of ``struck`` of whose kind its ``healthy`` twins have some; None where there are none. The truth of a step is
    the middle of those of its twins whose work is most like its own, by what their work costs.
    """
    own = np.flatnonzero(during(calm.setting, [struck]))
    sides = [np.flatnonzero(during(calm.setting, [twin])) for twin in healthy]
    if not len(own) or not sides or min(map(len, sides)) < ALIKE:
        return None
    usual = _alike(calm, own, np.concatenate(sides))
    apart = (_alike(calm, own, sides[0]) - _alike(calm, own, sides[-1])) / 2
    known = ~np.isnan(usual) & ~np.isnan(apart)
    if not known.any():
        return None
    own, usual, apart = own[known], usual[known], apart[known]
    before = calm.lasted[own]
    less, scaled = _by_phase(calm, own)
    columns = (before, before - usual, apart, calm.over[own], less, scaled)
    return Sums(len(own), *(float(column.sum()) for column in columns))


def _alike(calm: Calm, own: Int64, twins: Int64) -> Float64:
    """float64 ns a step of ``own``: the middle of the ALIKE steps of ``twins`` most like it; NaN where too few have its phase."""
    work = features(calm.setting.ran)
    cost, phase = calm.setting.costs.cost, phases(work)
    found = np.full(len(own), np.nan)
    for kind in np.unique(phase[own]).tolist():
        mine, theirs = np.flatnonzero(phase[own] == kind), twins[phase[twins] == kind]
        if len(theirs) < ALIKE:
            continue
        apart = np.abs((work[own[mine], None, :] - work[None, theirs, :]) * cost).sum(axis=2)
        nearest = np.argpartition(apart, ALIKE - 1, axis=1)[:, :ALIKE]
        found[mine] = np.median(calm.lasted[theirs][nearest], axis=1)
    return found


def _by_phase(calm: Calm, own: Int64) -> tuple[Float64, Float64]:
    """The two yardsticks, ns a step: all of a phase save alike, and all are shortened alike, as their middle is."""
    phase = phases(features(calm.setting.ran))
    less, scaled = np.zeros(len(own)), np.zeros(len(own))
    for kind in np.unique(phase[own]).tolist():
        mine, usual = phase[own] == kind, np.flatnonzero(calm.healthy & (phase == kind))
        if len(usual):
            middle, struck = float(np.median(calm.lasted[usual])), float(np.median(calm.lasted[own[mine]]))
            less[mine] = struck - middle
            scaled[mine] = calm.lasted[own[mine]] * (1 - middle / max(struck, 1.0))
    return less, scaled
