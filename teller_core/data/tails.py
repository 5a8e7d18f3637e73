"""The slowest requests of many captures and those in the middle: sums of groups, from which a tail is explained."""

from collections.abc import Sequence
from typing import NamedTuple

from teller_core.data.table import Int32, Int64

SIZES = (64, 256, 1024, 4096, 16384, 65536)
"""Tokens at which kinds of prompts and of answers part."""


class Measured(NamedTuple):
    """``value`` int64 ns a request, and ``replica``, an index of ``replicas``: (key of the capture, engine)."""

    value: Int64
    replica: Int32
    replicas: list[tuple[int, int]]


class Bounds(NamedTuple):
    """ns: the middle is from ``low`` to ``high``, the tail from ``tail`` on."""

    low: int
    high: int
    tail: int


class Sums(NamedTuple):
    """Of the requests of one replica in one cohort: how many, and sums of ns; ``known``: how many have a source of each phase,
    ``squares`` of ns.
    """

    tail: bool
    capture: int
    engine: int
    requests: int
    value: int
    phases: Sequence[int]
    known: Sequence[int]
    squares: Sequence[float]


class Sort(NamedTuple):
    """Of the requests of one sort in one cohort: how many, and the sum of their ns. ``what``: a name, or for tokens the place of
    their number among SIZES, -1 for an unknown one.
    """

    of: str
    what: str | int
    tail: bool
    requests: int
    value: int
