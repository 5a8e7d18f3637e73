"""What a method is judged on: a capture, and beside it what is true of it, which no method sees."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from teller_core.data.capture import Capture
from teller_core.data.sheets_file import HEALTHY, NOT_JUDGED
from teller_core.data.table import Int8, Int32, Mask, Text
from teller_core.lab.evaluation.seen import Seen

__all__ = ["HEALTHY", "NOT_JUDGED"]  # what labels are made of and is written down elsewhere
TRAIN, TEST = "train", "test"
"""The sides of lives: what is learned from, and what is judged."""


@dataclass(frozen=True)
class Labels:
    """The truth of one capture, by position in its tables.

    ``request``: a cause of the taxonomy, HEALTHY, or NOT_JUDGED; ``hard`` bool: the request lies in a struck window of a hard
    negative: slow, and no fault. ``request_window``, ``step_window`` int32: which window of the life, -1 for none: what shares
    a window shares its luck. ``step`` int8: 1 abnormal, 0 healthy, -1 not judged. ``operators``: by step, the names any of which
    is right; ``ranks``: by step, the position in ``Capture.ranks`` of the rank to blame. ``d_prime``: the effect of the strike
    over the noise, NaN where nothing struck. ``healthy_ns``: how long its healthy windows are together.
    """

    request: Text
    hard: Mask
    request_window: Int32
    step: Int8
    step_window: Int32
    operators: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    ranks: Mapping[int, int] = field(default_factory=dict[int, int])
    fault: str = ""
    cause: str = ""
    severity: str = ""
    d_prime: float = float("nan")
    healthy_ns: int = 0

    def check(self, capture: Capture) -> None:
        """Raise ValueError where the labels are not those of ``capture``."""
        requests, steps = len(capture.requests.number), len(capture.steps.engine)
        if {len(self.request), len(self.hard), len(self.request_window)} != {requests}:
            raise ValueError("there must be one label a request")
        if {len(self.step), len(self.step_window)} != {steps}:
            raise ValueError("there must be one label a step")
        if not all(0 <= step < steps for step in (*self.operators, *self.ranks)):
            raise ValueError("a label is of a step that is not there")
        if not all(0 <= rank < len(capture.ranks) for rank in self.ranks.values()):
            raise ValueError("a label is of a rank that is not there")


@dataclass(frozen=True)
class Episode:
    """One capture with its truth. ``life``: the start of a server that it was cut from: what is never split or drawn apart.
    ``about``: what that was: engine, model, load.
    """

    life: str
    seen: Seen
    labels: Labels
    about: Mapping[str, str] = field(default_factory=dict[str, str])
