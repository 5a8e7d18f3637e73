"""What every method is, and what it says about a capture: one shape for ours and for all baselines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import Float64, Text, UInt8
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.seen import Seen

Options = Mapping[str, float]
"""What is chosen on the training side."""
BUDGET = 6
"""Sets of options that are tried for a method, and no more for any."""
CAUSE, TYPICAL, CANNOT = "cause", "typical_here", "could_not_tell"


class Claim(NamedTuple):
    """A cause of the taxonomy, and how sure the method is of it, 0 to 1."""

    cause: str
    confidence: float


@dataclass(frozen=True)
class Judged:
    """What a method says. What it does not claim is empty.

    A step: ``step_score`` float64, more is more suspicious, NaN where it cannot tell; ``step_flag`` uint8; ``operators``: names,
    the most suspicious first; ``ranks``: positions in ``Capture.ranks``. A request: ``causes``, the surest first; ``verdict``:
    ``cause``, ``normal``, ``typical_here`` or ``could_not_tell``; ``sure`` float64, 0 to 1: of the verdict as a whole.
    """

    step_score: Float64
    step_flag: UInt8
    causes: Sequence[Sequence[Claim]]
    verdict: Text
    sure: Float64
    operators: Sequence[Sequence[str]]
    ranks: Sequence[Sequence[int]]

    def check(self, capture: Capture) -> None:
        """Raise ValueError where it is not about ``capture``, or is out of bounds."""
        steps, requests = len(capture.steps.engine), len(capture.requests.number)
        of_steps = (self.step_score, self.step_flag, self.operators, self.ranks)
        if {len(each) for each in of_steps} != {steps}:
            raise ValueError("a method must say one thing a step")
        if {len(each) for each in (self.causes, self.verdict, self.sure)} != {requests}:
            raise ValueError("a method must say one thing a request")
        sure = [claim.confidence for mine in self.causes for claim in mine] + self.sure.tolist()
        if not all(0.0 <= each <= 1.0 for each in sure):
            raise ValueError("a confidence lies between 0 and 1")


Train = Callable[[Sequence[Episode], Options, int], Any]
"""Episodes of the training side, options, a seed -> whatever ``judge`` needs."""
Judge = Callable[[Any, Seen], Judged]


@dataclass(frozen=True)
class Method:
    """``about``: one line for the head of its table. ``grid``: the options to choose from, BUDGET at most; ``seeds``: how often
    it is trained and judged where chance has a part in it; ``learns``: whether it needs a training side at all; ``of_steps``: its
    options say how steps are scored, and nothing else; ``chances``: its scores of steps are the chances that they are abnormal.
    """

    name: str
    about: str
    train: Train
    judge: Judge
    grid: Sequence[Options] = field(default=({},))
    seeds: int = 1
    learns: bool = True
    of_steps: bool = False
    chances: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.grid) <= BUDGET:
            raise ValueError(f"a method has 1 to {BUDGET} sets of options")


def nothing(capture: Capture) -> Judged:
    """What a method says that can say nothing: to be replaced in parts."""
    steps, requests = len(capture.steps.engine), len(capture.requests.number)
    return Judged(
        step_score=np.full(steps, np.nan),
        step_flag=np.zeros(steps, dtype=np.uint8),
        causes=[[] for _ in range(requests)],
        verdict=[CANNOT] * requests,
        sure=np.zeros(requests),
        operators=[[] for _ in range(steps)],
        ranks=[[] for _ in range(steps)],
    )
