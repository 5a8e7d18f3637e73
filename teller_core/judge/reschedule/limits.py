"""What the batches say of the scheduler that made them."""

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import Float64
from teller_core.judge.reschedule.arrivals import Arrivals
from teller_core.judge.reschedule.batches import Batches
from teller_core.judge.reschedule.scheduler import Limits

BLOCKS = (16, 8, 32, 64, 128, 256, 1)
"""Tokens of a KV block that engines use; the first one that explains the recorded usage best."""
CLOSE = 0.9
"""A cut prompt ends at the budget. Cuts that add up to less than this share of the largest were made for another reason."""
SAME = 1.02
"""Block sizes that explain the recorded usage within this factor of the best do so equally."""
LEAST_USED = 0.02
"""Shares of the cache below this are told too coarsely to learn its size from."""
FEWEST = 8
"""Fewer readings do not tell the cache's size."""


def limits(capture: Capture, ran: Batches, came: Arrivals) -> Limits:
    """The limits that were met, for the default order."""
    blocks, block = _blocks(capture, ran)
    in_flight = np.arange(len(ran.step)) - np.searchsorted(ran.ended, ran.decided, "right")
    return Limits(
        tokens=_tokens(ran),
        requests=_requests(ran, came),
        blocks=blocks,
        block=block,
        depth=1 + int(np.median(in_flight.clip(0))) if len(in_flight) else 1,
    )


def _tokens(ran: Batches) -> int | None:
    """The budget of a step: what steps hold that cut a prompt."""
    cut = (ran.ahead > 0) & (ran.tokens < ran.ahead)
    if not cut.any():
        return None
    whole = np.bincount(ran.at, weights=ran.tokens, minlength=len(ran.step)).astype(np.int64)
    held = whole[np.unique(ran.at[cut])]
    budget = int(held.max())
    # A step that holds more without a cut shows that the cut was not made for want of budget.
    return budget if budget >= int(whole.max()) and (held >= CLOSE * budget).mean() >= CLOSE else None


def _requests(ran: Batches, came: Arrivals) -> int | None:
    """How many may be admitted at a time: the most that were, if others waited then for a step or more."""
    served = np.flatnonzero(ran.first >= 0)
    if not len(served):
        return None
    count = len(ran.step)
    admitted = np.bincount(ran.first[served], minlength=count + 1) - np.bincount(
        ran.last[served] + 1, minlength=count + 1
    )
    running = np.cumsum(admitted[:count])
    seen = np.searchsorted(ran.decided, came.time[served] + came.delay, "left")
    came_late = np.bincount(np.minimum(seen, ran.first[served]), minlength=count + 1) - np.bincount(
        ran.first[served], minlength=count + 1
    )
    waiting = np.cumsum(came_late[:count])
    most = int(running.max())
    held_back = waiting > 0
    return most if held_back.any() and (running[held_back] >= most).mean() >= CLOSE / 2 else None


def _blocks(capture: Capture, ran: Batches) -> tuple[int | None, int]:
    """The size of the cache and of a block, by the usage that the engine tells beside what its requests hold."""
    usage = capture.steps.kv_usage[ran.step]
    use = np.flatnonzero(~np.isnan(usage) & (usage >= LEAST_USED))
    if len(use) < FEWEST:
        return None, BLOCKS[0]
    best: tuple[float, int, int] | None = None
    for block in BLOCKS:
        size = _resident(ran, block)[use] / usage[use]
        middle = float(np.median(size))
        spread = float(np.median(np.abs(size - middle))) / max(middle, 1e-9)
        if best is None or spread * SAME < best[0]:
            best = spread, round(middle), block
    assert best is not None
    return best[1], best[2]


def _resident(ran: Batches, block: int) -> Float64:
    """float64 a step: blocks that its requests hold when it has been computed."""
    blocks = -(-(ran.held + ran.tokens) // block)
    return np.bincount(ran.at, weights=blocks, minlength=len(ran.step)).astype(np.float64)
