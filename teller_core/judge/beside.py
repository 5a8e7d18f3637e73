"""Which requests came just before and just after one: what makes a service slow stays a while, and strikes these as well."""

from typing import NamedTuple

import numpy as np

from teller_core.data.table import UNKNOWN, Int64, Mask
from teller_core.judge.prepare import Case

BESIDE = 2
"""Requests before and after one that are looked at."""


class Arrivals(NamedTuple):
    """Requests in the ``order`` of their coming (int64 positions), and the ``place`` of each request in it, -1 for nowhere."""

    order: Int64
    place: Int64

    def beside(self, request: int) -> tuple[list[int], list[int]]:
        """Those that came just before a request and just after it, the earliest first; none where nobody knows when it came."""
        at = int(self.place[request])
        if at < 0:
            return [], []
        return self.order[max(at - BESIDE, 0) : at].tolist(), self.order[at + 1 : at + 1 + BESIDE].tolist()


def arrivals(case: Case, some: Mask | None = None) -> Arrivals:
    """The requests of which it is known when they came, or ``some`` of them (bool a request)."""
    known = case.starts != UNKNOWN if some is None else (case.starts != UNKNOWN) & some
    order = np.flatnonzero(known)
    order = order[np.argsort(case.starts[order], kind="stable")].astype(np.int64)
    place = np.full(len(case.starts), -1, np.int64)
    place[order] = np.arange(len(order))
    return Arrivals(order, place)
