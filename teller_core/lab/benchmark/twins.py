"""What each request of a struck window lost where no injector can tell: by its twins, the same requests in healthy windows."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import UNKNOWN, Int64
from teller_core.lab.benchmark.chosen import Chosen
from teller_core.lab.blocks import Window, healthy_in

FIRST = "ttft"
"""The latency that ends with the first token; all others are judged by the whole request."""


def lost(whole: Capture, chosen: Sequence[Chosen]) -> dict[str, int]:
    """ns by name, of the requests of the ``chosen`` windows in which something was done: what the latency that it is judged by
    took over the geometric mean of the twins in the healthy windows of its round, as a strike's own ratio is taken (lab/effect).

    ``whole``: all that was recorded of the life. Left out is whose latency is not known, or that of a twin.
    """
    place = {name: at for at, name in enumerate(whole.requests.client_id) if name}
    took = {FIRST: _until(whole, whole.requests.client_first), "": _until(whole, whole.requests.client_end)}
    found: dict[str, int] = {}
    for one in chosen:
        if one.strike is None:
            continue
        column = took[FIRST if one.strike.judged_by == FIRST else ""]
        twins = healthy_in(one.block, one.window.round, profiled=one.window.profiled)
        of = [_known(column, place, window) for window in twins]
        for at, (name, own) in enumerate(zip(one.window.requests, _known(column, place, one.window), strict=True)):
            usual = [window[at] for window in of if at < len(window)]
            if own != UNKNOWN and usual and UNKNOWN not in usual:
                found[name] = own - round(float(np.exp(np.mean(np.log(usual)))))
    return found


def _until(whole: Capture, end: Int64) -> Int64:
    """int64 ns from when a caller sent each request, UNKNOWN where that or the ``end`` was not recorded."""
    start = whole.requests.client_start
    return np.where((start != UNKNOWN) & (end > start), end - start, UNKNOWN)


def _known(column: Int64, place: dict[str, int], window: Window) -> list[int]:
    """The latency of each request of a window, in their order."""
    return [int(column[place[name]]) if name in place else UNKNOWN for name in window.requests]
