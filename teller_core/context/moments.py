"""What is known of a step without a profile: its times, who took part, and what stood still."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from teller_core.data.assessment import StepExpectations
from teller_core.data.capture import Pauses
from teller_core.data.report import SliceLine
from teller_core.data.steps import Participation, Requests, Role, Steps, StepWork
from teller_core.data.table import UNKNOWN, Int64

STAGES = (
    ("scheduled", "launched", "scheduled, not yet launched"),
    ("launched", "finished", "running"),
    ("finished", "delivered", "finished, not yet delivered"),
)


@dataclass(frozen=True)
class Moment:
    """One step, cut out of its capture: ``step`` is its position there. ``steps`` has its row alone, ``work`` and
    ``participation`` its rows alone; of ``pauses`` those that overlap it are used.
    """

    step: int
    steps: Steps
    work: StepWork
    participation: Participation
    pauses: Pauses

    @property
    def begin(self) -> int:
        """ns: the earliest time known of it, UNKNOWN for none."""
        steps = self.steps
        times = [int(t[0]) for t in (steps.scheduled, steps.launched, steps.finished, steps.delivered)]
        known = [t for t in [*times, *self.work.start.tolist()] if t != UNKNOWN]
        return min(known, default=UNKNOWN)

    @property
    def end(self) -> int:
        """ns: the latest time known of it, UNKNOWN for none."""
        known = [t for t in [int(self.steps.end()[0]), *self.work.stop.tolist()] if t != UNKNOWN]
        return max(known, default=UNKNOWN)


def moment_lines(moment: Moment) -> Iterator[SliceLine]:
    """The step as lines: itself, then below it its stages, its requests and the pauses that overlap it, by time."""
    begin, end = moment.begin, moment.end
    if UNKNOWN in (begin, end):
        return
    yield _line(f"step:{moment.step}", 0, _work_text(moment.steps), "engine", (0, end - begin))
    below = [*_stages(moment, begin), *_pauses(moment, begin, end), *_requests(moment, begin, end)]
    yield from sorted(below, key=lambda line: line.start_ms)


def most_telling(line: SliceLine, request: int | None) -> tuple[int, float]:
    """Sorts lines of :func:`moment_lines` where not all find room: the step, the request it is shown for, what took longest of
    the stages and pauses, the other requests.
    """
    kind, _, number = line.handle.partition(":")
    if line.depth == 0 or (kind == "request" and number == str(request)):
        return line.depth, 0.0
    return (3, 0.0) if kind == "request" else (2, -line.dur_ms)


def blamed_step(
    request: int, requests: Requests, participation: Participation, steps: Steps, expectations: StepExpectations
) -> tuple[int, str] | None:
    """The step to show for the request at position ``request``, and why that one: of the steps that served it (of those that
    overlap it, where nobody knows which did) the one with the largest excess over its expectation, else the longest. None
    where it met no step of a known time.
    """
    own = participation.step[participation.request == request].astype(np.int64)
    which = "of its steps"
    if not len(own):
        own, which = _overlapping(request, requests, steps), "of the steps that overlap it"
    timed = own[expectations.took[own] != UNKNOWN]
    if not len(timed):
        return None
    excess = expectations.excess[timed]
    known = excess != UNKNOWN
    if known.any() and int(excess[known].max()) > 0:
        step = int(timed[known][np.argmax(excess[known])])
        return step, f"step {step}: {which} the one that took most beyond what its work predicts"
    step = int(timed[np.argmax(expectations.took[timed])])
    if int(expectations.took[step]) <= 0:
        return step, f"step {step}: {which} the first; how long each took is not known"
    return step, f"step {step}: {which} the longest"


def _overlapping(request: int, requests: Requests, steps: Steps) -> Int64:
    begin, end = int(requests.begin()[request]), int(requests.end()[request])
    low, high = steps.begin(), steps.end()
    low = np.where(low != UNKNOWN, low, high)
    if UNKNOWN in (begin, end):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((high != UNKNOWN) & (low < end) & (high > begin)).astype(np.int64)


def _stages(moment: Moment, begin: int) -> Iterator[SliceLine]:
    """The stages that followed one another: an engine may hand tokens out while its step still runs."""
    for early, late, text in STAGES:
        low, high = int(getattr(moment.steps, early)[0]), int(getattr(moment.steps, late)[0])
        if UNKNOWN not in (low, high) and low <= high:
            yield _line(f"step:{moment.step}", 1, text, "engine", (low - begin, high - begin))


def _pauses(moment: Moment, begin: int, end: int) -> Iterator[SliceLine]:
    pauses = moment.pauses
    for i in np.flatnonzero((pauses.start < end) & (pauses.start + pauses.dur > begin)).tolist():
        low = int(pauses.start[i]) - begin
        text = f"{pauses.kind[i]} of the {pauses.role[i] or 'unknown'} process"
        pause = _line(f"pause:{i}", 1, text, "engine", (low, low + int(pauses.dur[i])))
        yield pause.model_copy(update={"self_ms": pause.dur_ms})


def _requests(moment: Moment, begin: int, end: int) -> Iterator[SliceLine]:
    """Each is in the step from its scheduling to the end of the model's run: what of it is one's own, nobody can tell."""
    served = moment.participation
    at, done = int(moment.steps.scheduled[0]), int(moment.steps.finished[0])
    low = (at if at != UNKNOWN else begin) - begin
    high = (done if done != UNKNOWN else end) - begin
    for i in range(len(served.step)):
        tokens = int(served.tokens[i])
        many = f"{tokens} tokens" if tokens != 1 else "1 token"
        text = f"request {int(served.request[i]) + 1}: {Role(int(served.role[i])).name.lower()}"
        again = f", {int(served.recomputed[i])} of them again" if served.recomputed[i] > 0 else ""
        said = f"{text} {many}{again}" if tokens >= 0 else text
        yield _line(f"request:{int(served.request[i]) + 1}", 1, said, "request", (low, max(low, high)))


def _work_text(steps: Steps) -> str:
    parts = [
        f"{int(column[0])} {name}"
        for name, column in (
            ("context requests", steps.context_requests),
            ("context tokens", steps.context_tokens),
            ("generation requests", steps.generation_requests),
            ("KV tokens", steps.kv_tokens),
            ("preempted", steps.preempted),
        )
        if int(column[0]) > 0
    ]
    return ", ".join(parts) or "a step of unknown work"


def _line(handle: str, depth: int, text: str, layer: str, time: tuple[int, int]) -> SliceLine:
    low, high = time
    return SliceLine(
        handle=handle,
        depth=depth,
        text=text,
        layer=layer,
        start_ms=round(low / 1e6, 3),
        dur_ms=round((high - low) / 1e6, 3),
        self_ms=None,
        residual=None,
    )
