"""What the model says of sheets: one row a sheet, and of what each sheet lists how likely it is what matters."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Float32, Float64, Int32, UInt8

Likely = npt.NDArray[np.float32]


class Verdict(IntEnum):
    """What a sheet comes to."""

    CALM = 0
    CAUSE = 1
    UNTOLD = 2
    """Abnormal, and no cause is sure enough to be named."""


@dataclass(frozen=True)
class Verdicts:
    """``verdict`` uint8; ``abnormal`` float64: how likely it is abnormal; ``cause`` int32: the class (of :mod:`classes`) of the
    likeliest cause of the taxonomy, and ``sure`` float32 of it; ``likely`` float32 [n, classes], rows sum to 1.

    By row of the sheets' parts, float32: ``suspects`` and ``pieces``: that this is the operator to blame, both together sum to 1
    in a sheet that has any; ``together``: that this is the rank to blame, sums to 1; ``facts``: that this should be cited.
    """

    verdict: UInt8
    abnormal: Float64
    cause: Int32
    sure: Float32
    likely: Likely
    suspects: Float32
    pieces: Float32
    together: Float32
    facts: Float32

    def __len__(self) -> int:
        return len(self.verdict)
