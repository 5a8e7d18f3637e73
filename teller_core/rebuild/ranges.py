"""Maxima over ranges of rows."""

import numpy as np

from teller_core.data.table import Int64


def range_max(values: Int64, low: Int64, high: Int64) -> Int64:
    """int64: the maximum of ``values[low[i]:high[i]]`` for each i. Ranges are not empty."""
    if len(low) == 0:
        return np.empty(0, dtype=np.int64)
    order = np.argsort(low, kind="stable")
    first, last = low[order], high[order]
    disjoint = bool(np.all(last[:-1] <= first[1:]))
    best = np.empty(len(low), dtype=np.int64)
    if disjoint:
        cuts = np.stack([first, last], axis=1).ravel()
        ends = np.append(values, np.int64(np.iinfo(np.int64).min)) if int(last[-1]) == len(values) else values
        best[order] = np.maximum.reduceat(ends, cuts)[::2]
    else:
        best[:] = [int(values[a:b].max()) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    return best
