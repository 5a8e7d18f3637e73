"""By how much a window was slower than its healthy twins, request by request."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.lab.injectors import METRICS

DRAWS = 1000
LEAST = 0.05
SIGMAS = 3.0
LEAST_PAIRS = 5

Row = Mapping[str, Any]
Logs = npt.NDArray[np.float64]


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


def ratios(rounds: Sequence[Sequence[Sequence[Row]]], seed: int) -> Mapping[str, Ratio]:
    """Each latency of the last window of every round over the geometric mean of those of its twins, the windows before it.

    ``rounds``: round, window, request; a request stands at the same place in each window. The interval is a percentile
    bootstrap over rounds, and over the requests of each (Davison and Hinkley 1997, 3.8: what shares a round shares its luck). A
    latency with fewer than 5 whole pairs is left out.
    """
    found: dict[str, Ratio] = {}
    for metric in METRICS:
        groups = [logs for logs in (_logs(windows, metric) for windows in rounds) if logs.size]
        if sum(logs.size for logs in groups) < LEAST_PAIRS:
            continue
        chance = np.random.default_rng(seed)
        medians = [np.median(_again(groups, chance)) for _ in range(DRAWS)]
        every = np.concatenate(groups)
        limits = [*np.percentile(medians, (2.5, 97.5)), np.median(every)]
        low, high, middle = (round(float(np.exp(limit)), 4) for limit in limits)
        found[metric] = Ratio(middle, low, high, len(every))
    return found


def apart(twins: Sequence[Sequence[Sequence[Row]]], metric: str) -> list[float]:
    """How far each healthy window lies from the others of its round, as one draw of one window's noise (of logarithms).

    ``twins``: round, healthy window, request. Between a window and the mean of n others there are 1 + 1/n variances of one.
    """
    found: list[float] = []
    for windows in (each for each in twins if len(each) > 1):
        scale = float(np.sqrt(1.0 + 1.0 / (len(windows) - 1)))
        for place, own in enumerate(windows):
            logs = _logs([*windows[:place], *windows[place + 1 :], own], metric)
            found += [float(np.median(logs)) / scale] if logs.size else []
    return found


def _again(groups: Sequence[Logs], chance: np.random.Generator) -> Logs:
    places: list[int] = chance.integers(0, len(groups), len(groups)).tolist()
    drawn = [groups[place] for place in places]
    return np.concatenate([logs[chance.integers(0, logs.size, logs.size)] for logs in drawn])


def noise(differences: Sequence[float]) -> float:
    """The standard deviation (of logarithms) of one healthy window's median, from what :func:`apart` found."""
    return float(np.sqrt(np.mean(np.square(differences)))) if len(differences) else 0.0


def too_small(ratio: Ratio | None, sigma: float, twins: int, rounds: int) -> str:
    """Why ``ratio`` is no effect, empty where it is one: the least is 5 %, or 3 sigma of what healthy windows differ by.

    ``sigma``: of one window. ``twins``: healthy windows of a round. ``rounds``: over so many the ratio is taken.
    """
    if ratio is None:
        return "too few requests can be compared"
    if ratio.low <= 1.0:
        return f"the interval of the ratio begins at {ratio.low:.2f}"
    if ratio.median < 1.0 + LEAST:
        return f"the ratio is {ratio.median:.2f}, below {1 + LEAST:.2f}"
    bound = float(np.exp(SIGMAS * sigma * np.sqrt((1.0 + 1.0 / twins) / rounds)))
    if ratio.median < bound:
        return f"the ratio is {ratio.median:.2f}, and by chance it may be {bound:.2f} here"
    return ""


def _logs(windows: Sequence[Sequence[Row]], metric: str) -> Logs:
    """The logarithm of last / those before for each request of which every window has the latency."""
    logs: list[float] = []
    for *twins, row in zip(*windows, strict=True):
        own, usual = latency(row, metric), [latency(twin, metric) for twin in twins]
        whole = [value for value in usual if value]
        if own and len(whole) == len(usual):
            logs.append(float(np.log(own) - np.mean(np.log(whole))))
    return np.array(logs)
