"""The scheduler as it was before a recorded decision."""

from typing import NamedTuple

import numpy as np

from teller_core.judge.reschedule.arrivals import Arrivals
from teller_core.judge.reschedule.batches import Batches
from teller_core.judge.reschedule.scheduler import Queue, Share


class _Place(NamedTuple):
    """How far a request is: as in :class:`Queue`. ``since``: the step in which it was admitted last, -1: it waits."""

    held: int
    ahead: int
    turn: int
    since: int
    lost: bool


def snapshot(ran: Batches, came: Arrivals, step: int) -> Queue:
    """What the scheduler knew when it decided on ``step`` (a position in ``ran``): who ran, who waited, and how far each was."""
    queue = Queue()
    seen = came.time + came.delay <= ran.decided[step]
    open_ = (ran.first >= 0) & (ran.last >= step) & (seen | (ran.first < step))
    running: list[tuple[int, int, int]] = []
    waiting: list[tuple[int, int, int]] = []
    for request in np.flatnonzero(open_).tolist():
        place = _place(ran, request, step)
        order = int(came.order[request])
        _put(queue, ran, request, place, order)
        if place.since >= 0:
            running.append((place.since, order, request))
        else:
            waiting.append((int(ran.first[request] >= step), order, request))
    for request, place in _done(ran, step):
        _put(queue, ran, request, place, int(came.order[request]))
        running.append((place.since, int(came.order[request]), request))
    queue.running = [request for _, _, request in sorted(running)]
    queue.waiting = [request for _, _, request in sorted(waiting)]
    return queue


def shares(ran: Batches, step: int) -> list[Share]:
    """What a recorded step computed."""
    low, high = int(ran.row[step]), int(ran.row[step + 1])
    columns = (ran.request, ran.tokens, ran.ahead > 0, ran.held)
    return [Share(*row) for row in zip(*(column[low:high].tolist() for column in columns), strict=True)]


def units(ran: Batches, request: int) -> list[int]:
    """Tokens that each decode of a request computed."""
    return ran.unit[int(ran.units[request]) : int(ran.units[request + 1])].tolist()


def _put(queue: Queue, ran: Batches, request: int, place: _Place, order: int) -> None:
    queue.units[request], queue.rank[request], queue.kept[request] = units(ran, request), order, int(ran.kept[request])
    queue.held[request], queue.ahead[request], queue.turn[request] = place.held, place.ahead, place.turn
    if place.lost:
        queue.lost.add(request)


def _place(ran: Batches, request: int, step: int) -> _Place:
    """By the request's next row; one that was evicted meanwhile still runs at the decision right after its last step."""
    rows = ran.rows(request)
    at = ran.at[rows]
    place = int(np.searchsorted(at, step, "left"))
    row = int(rows[place])
    back = int(ran.since[row]) == int(at[place])
    answered = 0 <= int(ran.answers[request]) < int(at[place])
    if back and place > 0 and int(at[place - 1]) == step - 1:
        before = int(rows[place - 1])
        done = int(ran.tokens[before])
        ahead = max(int(ran.ahead[before]) - done, 0)
        held, since = int(ran.held[before]) + done, int(ran.since[before])
        return _Place(held, ahead, int(ran.turn[row]), since, ahead > 0 and answered)
    ahead = int(ran.ahead[row])
    lost = ahead > 0 and place > 0 and answered
    return _Place(int(ran.held[row]), ahead, int(ran.turn[row]), -1 if back else int(ran.since[row]), lost)


def _done(ran: Batches, step: int) -> list[tuple[int, _Place]]:
    """Those whose last step had been decided on, and had not ended, when the scheduler decided."""
    low = int(np.searchsorted(ran.ended, int(ran.decided[step]), "right"))
    return [
        (
            share.request,
            _Place(share.held + share.tokens, 0, len(units(ran, share.request)), int(ran.since[row]), False),
        )
        for before in range(low, step)
        for row, share in enumerate(shares(ran, before), int(ran.row[before]))
        if int(ran.last[share.request]) == before
    ]
