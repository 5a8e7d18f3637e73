"""Rows of which the same is true and said, as one row that counts for all of them: what a bootstrap weighs a thousand times."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Float64, Int64


class Merged(NamedTuple):
    """``first`` int64: one row of each kind; ``times`` float64: how many rows are of it; ``of`` int64: a row, its kind."""

    first: Int64
    times: Float64
    of: Int64


def merged(*columns: npt.NDArray[Any]) -> Merged:
    """Rows that are equal in all ``columns`` (an entry, or a row of a matrix, each); NaN is equal to NaN."""
    of = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        for part in np.atleast_2d(column.T):
            own = np.unique(part, return_inverse=True)[1].astype(np.int64)
            of = np.unique(of * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1].astype(np.int64)
    first = np.unique(of, return_index=True)[1].astype(np.int64)
    return Merged(first, np.bincount(of, minlength=len(first)).astype(np.float64), of)
