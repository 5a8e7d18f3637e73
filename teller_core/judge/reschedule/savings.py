"""How much sooner a request would have ended had some steps been shorter: with the recorded batches, and with new ones."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int64, Mask
from teller_core.judge.reschedule.arrivals import Arrivals
from teller_core.judge.reschedule.background import NEVER, alone, background, before, without
from teller_core.judge.reschedule.batches import Batches
from teller_core.judge.reschedule.simulate import Background, Setting, run


class Sooner(NamedTuple):
    """int ns, negative for later: ``first_token`` (None where no step is known to have given it) and ``end`` of a request."""

    first_token: int | None
    end: int


def same_schedule(setting: Setting, request: int, saved: Int64) -> Sooner:
    """With the batches as they were recorded: no step is decided on before all whom it serves first have come, and none ends
    before the one before it. ``saved`` int64 ns a step of ``setting.ran``: see :func:`without`.
    """
    ran = setting.ran
    last, answers = int(ran.last[request]), int(ran.answers[request])
    low = _reaching(ran, saved, last)
    ends = _ends(setting, saved, low, last + 1)

    def moved(step: int) -> int:
        return int(ran.ended[step]) - ends[step - low] if step >= low else 0

    return Sooner(moved(answers) if answers >= 0 else None, moved(last))


def rescheduled(setting: Setting, request: int, saved: Int64) -> Sooner | None:
    """With batches chosen anew, against a simulation of what was recorded. None where one does not come to the request's end.
    ``saved`` int64 ns a step of ``setting.ran``: see :func:`without`.
    """
    ran, came = setting.ran, setting.came
    then = replace(setting, came=came._replace(time=came.time - kept_away(setting, saved)))
    running = max(int(np.searchsorted(ran.decided, int(then.came.time[request]), "right")) - 1, 0)
    low = _reaching(ran, saved, min(running, int(ran.first[request])))
    was = _simulated(setting, request, low, background(setting))
    now = _simulated(then, request, low, background(setting, saved))
    if was is None or now is None:
        return None
    first = None if was[0] is None or now[0] is None else was[0] - now[0]
    return Sooner(first, was[1] - now[1])


def kept_away(setting: Setting, saved: Int64) -> Int64:
    """int64 ns a request of the capture: by how much sooner it would have reached the scheduler: what its way took beyond the
    usual. A scheduler that hears nobody while a step runs is reached late where steps are long: at most what is ``saved`` of the
    steps that ran meanwhile, unless what held these up stopped the process that receives, too.
    """
    ran, came = setting.ran, setting.came
    served = ran.first >= 0
    way = np.where(served, came.time - came.heard, 0)
    total = np.append(np.int64(0), np.cumsum(saved))
    first = np.searchsorted(ran.ended, came.heard, "right")
    held = total[np.maximum(np.searchsorted(ran.decided, came.time, "left"), first)] - total[first]
    late = np.maximum(way - came.way, 0)
    if not setting.receives:
        return np.where(served, np.minimum(late, np.maximum(held, 0)), 0)
    return np.where(served & _near(ran, came, saved), late, 0)


def _near(ran: Batches, came: Arrivals, saved: Int64) -> Mask:
    """bool a request: the steps around its arrival would have saved something."""
    last = np.clip(np.searchsorted(ran.decided, came.time, "left"), 0, len(ran.step) - 1)
    return (saved[last] != 0) | (saved[np.maximum(last - 1, 0)] != 0)


def _simulated(setting: Setting, request: int, low: int, met: Background) -> tuple[int | None, int] | None:
    made = run(setting, met, low, {request})
    return (made.answered.get(request), made.ended[request]) if request in made.ended else None


def _reaching(ran: Batches, saved: Int64, step: int) -> int:
    """The step from which on a saving can reach ``step``: the first with one since the engine last had nothing to do."""
    idle = np.flatnonzero(alone(ran)[: step + 1])
    since = int(idle[-1]) if len(idle) else 0
    gains = np.flatnonzero(saved[since : step + 1])
    return since + int(gains[0]) if len(gains) else step


def _ends(setting: Setting, saved: Int64, low: int, high: int) -> list[int]:
    """ns when each step from ``low`` to before ``high`` would have ended, those before as recorded."""
    ran, depth = setting.ran, setting.limits.depth
    newest = _newest(setting)
    could = np.maximum(before(ran, depth), newest)
    taken, turnaround = without(setting, ran.decided - could, saved)
    ends: list[int] = []
    for step in range(low, high):
        free = ends[step - depth - low] if step - depth >= low else int(before(ran, depth)[step])
        decided = max(free, int(newest[step])) + int(turnaround[step])
        previous = ends[-1] if ends else int(ran.ended[step - 1]) if step else decided
        ends.append(max(decided, previous) + round(float(taken[step])))
    return ends


def _newest(setting: Setting) -> Int64:
    """int64 ns a step: when the last of those that it serves first had come; long ago where it serves nobody first."""
    ran, came = setting.ran, setting.came
    newest = np.full(len(ran.step), -NEVER)
    served = np.flatnonzero(ran.first >= 0)
    np.maximum.at(newest, ran.first[served], came.time[served] + came.delay)
    return np.minimum(newest, ran.decided)
