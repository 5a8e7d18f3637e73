"""By how much a window was slower than its healthy twins, request by request."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.lab.injectors import METRICS

DRAWS = 2000
LEAST = 0.05
SIGMAS = 3.0
LEAST_PAIRS = 5

Row = Mapping[str, Any]


class Ratio(NamedTuple):
    """The median over ``pairs`` requests of struck / healthy, and its 95 % interval."""

    median: float
    low: float
    high: float
    pairs: int


def latency(row: Row, metric: str) -> float | None:
    """ns of one latency of a client's row; None where the request failed or has too few tokens."""
    times: Sequence[int] = row["tok_ns"]
    if row["err"] or not times:
        return None
    match metric:
        case "ttft":
            return times[0] - row["start_ns"]
        case "e2e":
            return row["end_ns"] - row["start_ns"]
        case "itl_mean":
            return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else None
        case _:
            return max((after - before for before, after in pairwise(times)), default=None)


def ratios(healthy: Sequence[Sequence[Row]], struck: Sequence[Row], seed: int) -> Mapping[str, Ratio]:
    """Each latency of ``struck`` over the geometric mean of those of its twins, which stand at the same place of each window.

    The interval is a percentile bootstrap over requests (Efron 1979). A latency with fewer than 5 whole pairs is left out.
    """
    found: dict[str, Ratio] = {}
    for metric in METRICS:
        logs = _logs(healthy, struck, metric)
        if len(logs) < LEAST_PAIRS:
            continue
        chance = np.random.default_rng(seed)
        medians = np.median(logs[chance.integers(0, len(logs), (DRAWS, len(logs)))], axis=1)
        limits = [*np.percentile(medians, (2.5, 97.5)), np.median(logs)]
        low, high, middle = (round(float(np.exp(limit)), 4) for limit in limits)
        found[metric] = Ratio(middle, low, high, len(logs))
    return found


def noise(differences: Sequence[float]) -> float:
    """The standard deviation (of logarithms) of one healthy window's median, from ``differences`` between two of them each."""
    return float(np.sqrt(np.mean(np.square(differences)) / 2)) if len(differences) else 0.0


def too_small(ratio: Ratio | None, sigma: float, twins: int) -> str:
    """Why ``ratio`` is no effect, empty where it is one: the least is 5 %, or 3 sigma of what healthy windows differ by."""
    if ratio is None:
        return "too few requests can be compared"
    if ratio.low <= 1.0:
        return f"the interval of the ratio begins at {ratio.low:.2f}"
    if ratio.median < 1.0 + LEAST:
        return f"the ratio is {ratio.median:.2f}, below {1 + LEAST:.2f}"
    bound = float(np.exp(SIGMAS * sigma * np.sqrt(1.0 + 1.0 / twins)))
    if ratio.median < bound:
        return f"the ratio is {ratio.median:.2f}, and healthy windows differ by up to {bound:.2f}"
    return ""


def _logs(healthy: Sequence[Sequence[Row]], struck: Sequence[Row], metric: str) -> npt.NDArray[np.float64]:
    """The logarithm of struck / healthy for each request of which every window has the latency."""
    logs: list[float] = []
    for row, *twins in zip(struck, *healthy, strict=True):
        own, usual = latency(row, metric), [latency(twin, metric) for twin in twins]
        whole = [value for value in usual if value]
        if own and len(whole) == len(healthy):
            logs.append(float(np.log(own) - np.mean(np.log(whole))))
    return np.array(logs)
