"""Requests on their way to the scheduler when it decided: their admission tells when they came, better than their stamp."""

import numpy as np

from teller_core.data.table import Int64, Mask
from teller_core.judge.reschedule.arrivals import Arrivals
from teller_core.judge.reschedule.batches import Batches
from teller_core.judge.reschedule.scheduler import Limits, choose
from teller_core.judge.reschedule.snapshot import snapshot

MOST = 300
"""Requests of which it is asked how long their way took."""
FEW = 0.05
"""Of these, the share that may have waited for another reason."""


def handed_over(ran: Batches, came: Arrivals, limits: Limits) -> Arrivals:
    """``came`` with the delay of all, the least that hides most requests from decisions that would have admitted them, had they
    seen them; and with the arrival of those that are left of these, where one decision alone passed them over: after that one.
    """
    if np.array_equal(came.early, came.late):
        came = came._replace(delay=_delay(ran, came, limits))
    unstamped = (ran.first >= 0) & ~came.stamped  # they are there when they are admitted
    early, time, late = (np.where(unstamped, one - came.delay, one) for one in (came.early, came.time, came.late))
    came = came._replace(early=early, time=time, late=late)
    for request in _passed_over(ran, came, limits, only=1).tolist():
        first = int(ran.first[request])
        early[request] = time[request] = int(ran.decided[first - 1]) + 1 - came.delay
        late[request] = int(ran.decided[first]) - came.delay
    return came._replace(early=early, time=time, late=late)


def _passed_over(ran: Batches, came: Arrivals, limits: Limits, only: int | None = None) -> Int64:
    """Requests that the decision before the one that admitted them would have admitted: it did not see them. ``only`` those
    that so many decisions could have seen.
    """
    served = np.flatnonzero((ran.first >= 1) & came.stamped)
    passed = ran.first[served] - np.searchsorted(ran.decided, came.time[served] + came.delay, "left")
    served = served[passed > 0 if only is None else passed == only]
    if len(served) > MOST and only is None:
        served = served[np.linspace(0, len(served) - 1, MOST).astype(np.int64)]
    hidden = [_admits(ran, came, limits, request) for request in served.tolist()]
    return served[np.array(hidden, dtype=np.bool_)] if len(served) else served


def _admits(ran: Batches, came: Arrivals, limits: Limits, request: int) -> bool:
    """Whether the decision before the recorded one would admit the request."""
    before = int(ran.first[request]) - 1
    return any(share.request == request for share in choose(snapshot(ran, came, before), limits))


def _delay(ran: Batches, came: Arrivals, limits: Limits) -> int:
    """ns after its stamp at which a request is seen. Each that was passed over allows what hides it from that decision and
    shows it to the next one, each that the first decision after its stamp admitted what shows it to that: the least value that
    most allow.
    """
    hidden = _passed_over(ran, came, limits)
    if not len(hidden):
        return 0
    at_once = _at_once(ran, came)
    stamps, first = came.time, ran.first
    low = np.concatenate([ran.decided[first[hidden] - 1] - stamps[hidden] + 1, np.zeros(int(at_once.sum()), np.int64)])
    high = np.concatenate([ran.decided[first[hidden]] - stamps[hidden], ran.decided[first[at_once]] - stamps[at_once]])
    edges = np.unique(low)
    count = np.searchsorted(np.sort(low), edges, "right") - np.searchsorted(np.sort(high), edges, "left")
    return int(edges[np.argmax(count >= count.max() - FEW * len(low))])


def _at_once(ran: Batches, came: Arrivals) -> Mask:
    served = (ran.first >= 0) & came.stamped
    seen = np.searchsorted(ran.decided, np.where(served, came.time, 0), "left")
    return served & (seen == ran.first)
