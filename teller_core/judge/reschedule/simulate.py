"""Decision after decision: what the scheduler would have batched, and when each step would have ended."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from teller_core.data.table import UNKNOWN, Float64, Int64
from teller_core.judge.reschedule.arrivals import Arrivals
from teller_core.judge.reschedule.batches import Batches
from teller_core.judge.reschedule.costs import Costs
from teller_core.judge.reschedule.scheduler import Limits, Queue, Share, choose, computed, forget
from teller_core.judge.reschedule.snapshot import snapshot, units

MOST_STEPS = 20_000
"""A simulation ends after so many steps, whatever it was to reach."""
MOST_TIMES = 2.0
"""What makes a step longer than this many times its work's prediction is taken for a stall, which adds time to any step alike.
"""
NEAR = 2.0
"""A decision between two recorded steps meets what the second one met if they are at most so many usual steps apart."""


@dataclass(frozen=True)
class Setting:
    """What a simulation is given: what was recorded, when requests came, what the scheduler and its steps are like."""

    ran: Batches
    came: Arrivals
    limits: Limits
    costs: Costs
    receives: bool = False
    """One process receives requests and computes: whatever stops it keeps them away, too."""


@dataclass(frozen=True)
class Background:
    """What steps met besides their work, by recorded step: ``level`` float64: log of how many times longer than its
    work predicts it took, MOST_TIMES at most; ``extra`` float64 ns: what it took beyond that;
    int64 ns ``ready``, when it could have been decided on, and ``turnaround`` from then on. ``usual`` ns: a turnaround where
    nothing was recorded; ``near`` ns: see NEAR. What disturbs steps is tied to the time of its recording, not to a step's
    number.
    """

    level: Float64
    extra: Float64
    ready: Int64
    turnaround: Int64
    usual: int
    near: int


class Step(NamedTuple):
    """A simulated step: ns when it was decided on and when it ended, and what it computed."""

    decided: int
    ended: int
    batch: Sequence[Share]


@dataclass
class Run:
    """A simulation: its ``steps``, and by request ns when its ``answered`` (first token) and its ``ended`` step ended."""

    steps: list[Step] = field(default_factory=list[Step])
    answered: dict[int, int] = field(default_factory=dict[int, int])
    ended: dict[int, int] = field(default_factory=dict[int, int])


def quiet(setting: Setting, usual: int) -> Background:
    """A background in which every step takes what its work predicts."""
    count = len(setting.ran.step)
    return Background(
        np.zeros(count), np.zeros(count), setting.ran.decided, np.full(count, usual, dtype=np.int64), usual, 0
    )


@dataclass(slots=True)
class _Engine:
    """A simulation under way: who is in the ``queue``; who is still ``coming``, in order, and how many of them ``came``; the
    ``ends`` of the steps so far; ``last`` of these by request that has nothing left to compute; ns when it ``decided`` last;
    ``met``: the last recorded step whose disturbance it met.
    """

    setting: Setting
    queue: Queue
    coming: Sequence[int]
    came: int
    ends: list[int]
    last: dict[int, int]
    decided: int
    met: int

    def arrival(self) -> int | None:
        """ns when the next request is seen, None where none is coming."""
        if self.came >= len(self.coming):
            return None
        return int(self.setting.came.time[self.coming[self.came]]) + self.setting.came.delay

    def receive(self, now: int) -> None:
        """Put those that have come by ``now`` into the queue."""
        ran, order = self.setting.ran, self.setting.came.order
        while (time := self.arrival()) is not None and time <= now:
            request = self.coming[self.came]
            self.queue.arrive(
                request,
                prompt=int(ran.prompt[request]),
                cached=int(ran.cached[request]),
                units=units(ran, request),
                rank=int(order[request]),
                kept=int(ran.kept[request]),
            )
            self.came += 1

    def anyone(self) -> bool:
        """Whether somebody could be served."""
        return bool(self.queue.waiting) or any(self.queue.wants(request) > 0 for request in self.queue.running)


def run(
    setting: Setting,
    background: Background,
    start: int,
    wanted: Collection[int],
    *,
    first_only: bool = False,
    most: int = MOST_STEPS,
) -> Run:
    """Simulate from the recorded decision ``start`` on until all requests ``wanted`` have ended, or with ``first_only`` have
    got their first token.
    """
    engine, made, left = _begin(setting, start), Run(), set(wanted)
    while left and len(made.steps) < most:
        now = _decision(engine, background)
        if now is None:
            break
        batch = choose(engine.queue, setting.limits)
        if not batch:
            later = [end for end in engine.last.values() if end > now]
            later += [time for time in [engine.arrival()] if time is not None]
            if not later:
                break
            engine.decided = max(min(later), now + 1)
            continue
        begin = max(now, engine.ends[-1]) if engine.ends else now
        end = begin + _takes(engine, background, now, setting.costs.of(batch))
        answered, ended = computed(engine.queue, batch)
        engine.ends.append(end)
        engine.last.update(dict.fromkeys(ended, end))
        made.steps.append(Step(now, end, batch))
        made.answered.update(dict.fromkeys(answered, end))
        made.ended.update(dict.fromkeys(ended, end))
        left.difference_update(answered if first_only else ended)
    return made


def _begin(setting: Setting, start: int) -> _Engine:
    ran, came = setting.ran, setting.came
    queue = snapshot(ran, came, start)
    new = np.flatnonzero((ran.first >= start) & (came.time != UNKNOWN))
    new = new[np.lexsort((came.order[new], came.time[new]))]
    # They come when they came: the decision may be made sooner than it was.
    queue.waiting = [request for request in queue.waiting if int(ran.first[request]) < start]
    done = {one: int(ran.ended[ran.last[one]]) for one in queue.running if queue.wants(one) == 0}
    return _Engine(
        setting=setting,
        queue=queue,
        coming=new.tolist(),
        came=0,
        ends=ran.ended[max(start - setting.limits.depth, 0) : start].tolist(),
        last=done,
        decided=int(ran.decided[start - 1]) if start else int(came.time[new].min()) if len(new) else 0,
        met=start - 1,
    )


def _decision(engine: _Engine, background: Background) -> int | None:
    """ns of the next decision, those that have come and those that have ended counted; None where nobody is left."""
    depth = engine.setting.limits.depth
    ready = max(engine.ends[-depth] if len(engine.ends) >= depth else engine.decided, engine.decided)
    engine.receive(ready)
    if not engine.anyone():
        time = engine.arrival()
        if time is None:
            return None
        # Nobody is decided on while the last steps run.
        ready = max(ready, time)
    now = max(ready + _turnaround(background, ready), engine.decided)
    engine.receive(now)
    for request in [one for one, end in engine.last.items() if end <= now]:
        forget(engine.queue, request)
        del engine.last[request]
    engine.decided = now
    return now


def _turnaround(background: Background, ready: int) -> int:
    """ns that the recorded decision needed that was possible at ``ready`` or next, if that was near."""
    step = int(np.searchsorted(background.ready, ready, "left"))
    if step >= len(background.ready) or int(background.ready[step]) - ready > background.near:
        return background.usual
    return int(background.turnaround[step])


def _takes(engine: _Engine, background: Background, now: int, usual: float) -> int:
    """ns that a step of ``usual`` ns takes that is decided on at ``now``: it meets what the recorded step of that time met. That
    strikes once: the next simulated step meets what the next recorded one met, if that is near, else none of its stall.
    """
    ran = engine.setting.ran
    step = int(np.searchsorted(ran.decided, now, "right")) - 1
    step += int(step < 0 or now > int(ran.ended[step]))
    first = max(step, engine.met + 1)
    if first < len(ran.decided) and int(ran.decided[first]) - now <= background.near:
        engine.met = first
        return max(round(usual * float(np.exp(background.level[first])) + float(background.extra[first])), 1)
    if step < len(ran.decided) and int(ran.decided[step]) - now <= background.near:
        usual *= float(np.exp(background.level[step]))
    return max(round(usual), 1)
