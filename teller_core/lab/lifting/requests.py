"""How much sooner the requests of a struck window would have ended, with batches made anew."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import UNKNOWN, Int64
from teller_core.judge.reschedule.savings import rescheduled
from teller_core.lab.blocks import Window
from teller_core.lab.lifting.calm import Calm, during
from teller_core.lab.lifting.pairs import Sums


class _Request(NamedTuple):
    """``at``: its position in the capture; ``took`` ns, from end to end as its client measured."""

    at: int
    took: int


def of_requests(
    capture: Capture, known: Mapping[str, int], calm: Calm, struck: Window, healthy: Sequence[Window]
) -> Sums | None:
    """The requests of ``struck`` that ended there and in each of its ``healthy`` twins; None where none did. ``known``: where
    requests stand by name.
    """
    saved = np.where(during(calm.setting, [struck]), np.round(calm.over), 0).astype(np.int64)
    rows: list[tuple[float, ...]] = []
    for place, name in enumerate(struck.requests):
        own = _request(capture, known, calm, name)
        usual = [_request(capture, known, calm, twin.requests[place]) for twin in healthy]
        whole = [twin.took for twin in usual if twin is not None]
        if own is None or not whole or len(whole) < len(usual):
            continue
        predicted = _predicted(calm, own, saved)
        if predicted is not None:
            apart = (whole[0] - whole[-1]) / 2
            rows.append((1, own.took, own.took - float(np.mean(whole)), apart, *predicted))
    return Sums(len(rows), *np.sum(rows, axis=0).tolist()[1:]) if rows else None


def _request(capture: Capture, known: Mapping[str, int], calm: Calm, name: str) -> _Request | None:
    at, table = known.get(name, -1), capture.requests
    if at < 0 or table.failed[at] or UNKNOWN in (int(table.client_start[at]), int(table.client_end[at])):
        return None
    served = int(calm.setting.ran.first[at]) >= 0
    return _Request(at, int(table.client_end[at] - table.client_start[at])) if served else None


def _predicted(calm: Calm, own: _Request, saved: Int64) -> tuple[float, float, float] | None:
    """What it saves with new batches, by what its own steps lost, and by its time scaled as these are."""
    ran = calm.setting.ran
    anew = rescheduled(calm.setting, own.at, saved)
    if anew is None:
        return None
    steps = np.unique(ran.at[ran.rows(own.at)])
    lost, whole = float(saved[steps].sum()), float((ran.ended[steps] - ran.decided[steps]).sum())
    return float(anew.end), lost, own.took * min(lost / max(whole, 1.0), 1.0)
