"""What each request would have saved, had one thing been different: the truth that a claim of a saving is held against.

A request is sent many times to a service as it was and to one that was changed. Or it was sent in a window that a fault struck
and in its healthy twins, as in each life of the benchmark: then the change is that the fault is lifted.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import UNKNOWN
from teller_core.errors import FormatError, InputError
from teller_core.lab.blocks import BROKEN, HEALTHY, BlockTruth, Window, healthy_in
from teller_core.lab.effect import Ratio, Row, latency
from teller_core.lab.injectors import METRICS

MISSED = 0.025
"""At each end of an interval."""
LEAST_TWINS = 20
"""Pairs of healthy windows' requests, without which nobody knows how far two of them differ."""
CLIENT = "client.jsonl"


class Saving(NamedTuple):
    """Of one latency: ns before the change (a median), the ratio after / before, and the ns saved, each with a 95 % interval."""

    before: int
    ratio: Ratio
    saved: int
    low: int
    high: int


@dataclass(frozen=True)
class Saved:
    """Of one request, by latency. ``place``: among those of its window; ``names``: before the change and after."""

    place: int
    names: Sequence[tuple[str, str]]
    latencies: Mapping[str, Saving]


@dataclass(frozen=True)
class Lifted:
    """What the requests of one struck window would have saved without the fault. ``strike``, ``round``: of its block."""

    block: int
    strike: int
    round: int
    fault: str
    cause: str | None
    severity: str
    rejected: str | None
    requests: Sequence[Saved]


def rows_of(bundle: Path) -> Mapping[str, Row]:
    """What clients measured, by the name of the request. Raises InputError for a recording without it, FormatError for a damaged
    one.
    """
    file = bundle / CLIENT
    if not file.exists():
        raise InputError(f"The recording {bundle.name}", "it lacks what clients measured", "Record it with teller lab")
    try:
        return {row["rid"]: row for row in map(json.loads, file.read_text().splitlines())}
    except BROKEN as error:
        raise FormatError(CLIENT, "it is damaged", "Record the life again, into a new folder") from error


def rows_in(capture: Capture) -> Mapping[str, Row]:
    """The same from a capture of the recording, which has it from tier T1 on; requests that no client tells of are not in it."""
    requests = capture.requests
    return {
        name: {
            "rid": name,
            "start_ns": int(requests.client_start[at]),
            "end_ns": int(requests.client_end[at]),
            "tok_ns": capture.tokens.of(at).tolist(),
            "err": "failed" if requests.failed[at] else None,
        }
        for at, name in enumerate(requests.client_id)
        if name and requests.client_start[at] != UNKNOWN and requests.client_end[at] != UNKNOWN
    }


def middle(values: Sequence[float]) -> tuple[float, float, float] | None:
    """The median of ``values`` and its 95 % interval; None for fewer than six, of which no interval is so sure.

    The interval lies between two of the values, whatever their distribution is (Conover, Practical Nonparametric Statistics,
    3rd edition, 3.2).
    """
    ordered, missed, out = sorted(values), 0.0, -1
    while (missed := missed + math.comb(len(ordered), out + 1) / 2 ** len(ordered)) <= MISSED:
        out += 1
    return None if out < 0 else (median(ordered), ordered[out], ordered[-1 - out])


def saved(place: int, pairs: Sequence[tuple[Row, Row]]) -> Saved:
    """Of one request that was sent again and again: each of ``pairs`` before the change and after it.

    A latency that fewer than six whole pairs have is left out.
    """
    found: dict[str, Saving] = {}
    for metric in METRICS:
        both = [(latency(before, metric), latency(after, metric)) for before, after in pairs]
        whole = [(before, after) for before, after in both if before and after]
        ratio = middle([after / before for before, after in whole])
        less = middle([before - after for before, after in whole])
        if ratio is not None and less is not None:
            usual = round(median(before for before, _ in whole))
            moved = Ratio(*(round(each, 4) for each in ratio), pairs=len(whole))
            found[metric] = Saving(usual, moved, *(round(each) for each in less))
    return Saved(place, [(str(before["rid"]), str(after["rid"])) for before, after in pairs], found)


def lifted(blocks: Sequence[BlockTruth], rows: Mapping[str, Row]) -> list[Lifted]:
    """What requests of struck windows would have saved, from their healthy twins in the same round.

    One request was struck once in a round: how far its latencies differ anyway is what healthy twins of all ``blocks`` differ by,
    its own or others'. ``rows``: of the clients, by name; what is not in them is left out.
    """
    noise = {metric: _noise(blocks, rows, metric) for metric in METRICS}
    return [each for block in blocks for each in _lifted(block, rows, noise)]


def _lifted(block: BlockTruth, rows: Mapping[str, Row], noise: Mapping[str, float | None]) -> Iterator[Lifted]:
    for window in block.windows:
        if window.strike == HEALTHY or window.profiled:
            continue
        truth, twins = block.strikes[window.strike], healthy_in(block, window.round)
        requests = [
            Saved(
                place,
                [(name, twin.requests[place]) for twin in twins],
                dict(_beside(rows.get(name), [rows.get(twin.requests[place]) for twin in twins], noise)),
            )
            for place, name in enumerate(window.requests)
        ]
        place = (block.block, window.strike, window.round)
        yield Lifted(*place, truth.fault, truth.cause, truth.severity, truth.rejected, requests)


def _beside(
    struck: Row | None, twins: Sequence[Row | None], noise: Mapping[str, float | None]
) -> Iterator[tuple[str, Saving]]:
    """Each latency of a struck request that all its twins have too, without the fault."""
    for metric, apart in noise.items():
        own, usual = _of(struck, metric), [_of(twin, metric) for twin in twins]
        whole = [each for each in usual if each]
        if apart is None or own is None or not whole or len(whole) < len(usual):
            continue
        ratio = math.exp(float(np.mean(np.log(whole)))) / own
        spread = math.exp(apart * math.sqrt((1 + 1 / len(whole)) / 2))
        ratios = (ratio, ratio / spread, ratio * spread)
        saving = (round(own * (1 - each)) for each in (ratio, ratio * spread, ratio / spread))
        yield metric, Saving(round(own), Ratio(*(round(each, 4) for each in ratios), pairs=len(whole)), *saving)


def _noise(blocks: Sequence[BlockTruth], rows: Mapping[str, Row], metric: str) -> float | None:
    """What 95 % of all pairs of healthy twins differ by at most (of logarithms); None for too few."""
    apart: list[float] = []
    for block in blocks:
        for turn in {window.round for window in block.windows}:
            first, *others = healthy_in(block, turn) or [None]
            for other in others:
                apart += _differ(first, other, rows, metric) if first is not None and other is not None else []
    return float(np.quantile(apart, 1 - 2 * MISSED)) if len(apart) >= LEAST_TWINS else None


def _differ(one: Window, other: Window, rows: Mapping[str, Row], metric: str) -> Iterator[float]:
    for name, twin in zip(one.requests, other.requests, strict=True):
        first, second = _of(rows.get(name), metric), _of(rows.get(twin), metric)
        if first and second:
            yield abs(math.log(first / second))


def _of(row: Row | None, metric: str) -> float | None:
    """None where it is 0, too: nothing can be compared with it."""
    return (latency(row, metric) or None) if row is not None else None
