"""The calls of an operator on a rank, as what is told of it is made from them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from teller_core.data.calls import Calls, Edges
from teller_core.data.table import Int32


class RankCalls(NamedTuple):
    """The calls of one operator on one rank. ``rank``: position in ``Capture.ranks``; ``names``: what the codes of ``calls`` and
    ``edges`` stand for; ``steps``: row ranges of the rank's steps as (low, high, begin ns).
    """

    rank: int
    names: Sequence[str]
    calls: Calls
    edges: Edges
    devices: Sequence[str]
    """What the devices of the process are called."""
    when: Callable[[int], tuple[int, int]]
    """Start and duration of a row, int ns."""
    steps: Sequence[tuple[int, int, int]] = ()
    arguments: Callable[[Int32], Sequence[str]] | None = None
    """Arguments as JSON text by their codes."""
