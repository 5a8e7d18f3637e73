"""What a model says of one request, as judging takes it: it knows nothing of how a model is made."""

from dataclasses import dataclass

from teller_core.data.pooling import Fusion
from teller_core.data.table import Float64, Mask


@dataclass(frozen=True)
class Pointed:
    """One of what numbers suspect in a step, as in :class:`Suspects`, and how ``likely`` the model holds it to be to blame."""

    name: str
    layer: int
    rank: int
    row: int
    value: int
    normal: int
    likely: float


@dataclass(frozen=True)
class Opinion:
    """``likely`` float64 [classes], as in :mod:`pooling`, sums to 1; ``abnormal``: how likely something is wrong; ``known`` bool
    [classes]: what the model can say at all; ``fusion``: how much it is to count beside what rules claim; ``pointed``: suspects
    of the step at position ``step`` (-1: of none), the likeliest first.
    """

    likely: Float64
    abnormal: float
    known: Mask
    fusion: Fusion
    step: int = -1
    pointed: tuple[Pointed, ...] = ()
