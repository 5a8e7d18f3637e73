"""The truth of a made-up block, for tests of what is made from it."""

from collections.abc import Sequence

from teller_core.lab.blocks import HEALTHY, BlockTruth, StrikeTruth, Window
from teller_core.lab.effect import Ratio
from teller_core.lab.outside import Delay

SECOND = 1_000_000_000
BEGIN = 1_796_000_000 * SECOND


def strike(
    fault: str = "host_stall",
    cause: str | None = "host.blocking_call",
    *,
    role: str = "worker",
    where: str = "inside",
    ratio: float = 2.0,
    rejected: str | None = None,
) -> StrikeTruth:
    moved = {"e2e": Ratio(ratio, ratio - 0.1, ratio + 0.1, 24)}
    return StrikeTruth(fault, cause, "strong", {"ms": 5.0}, where, role, "e2e", moved, 0.1, rejected)


def window(
    number: int, strike: int, own: Sequence[str], delays: Sequence[tuple[int, int]] = (), others: Sequence[str] = ()
) -> Window:
    """A window of two seconds, the ``number``-th of windows that begin every three seconds. ``delays``: ms from its begin."""
    begin = BEGIN + 3 * number * SECOND
    told = [Delay(begin + low * 1_000_000, begin + high * 1_000_000, (high - low) * 1_000_000) for low, high in delays]
    return Window(0, strike, False, begin, begin + 2 * SECOND, own, others, 0, {}, told)


def block(strikes: Sequence[StrikeTruth], windows: Sequence[Window], number: int = 0) -> BlockTruth:
    return BlockTruth(number, "bundle-1", windows, strikes, {"e2e": [0.1, -0.1]})


def calm(number: int, own: Sequence[str]) -> Window:
    return window(number, HEALTHY, own)
