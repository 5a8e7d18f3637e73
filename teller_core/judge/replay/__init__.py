"""Replay: the recorded work re-timed with other durations, by what each moment of it had to wait for.

:func:`network` takes the rows of some ranks with their dependencies; :func:`retime` gives times for durations, :func:`saving`
how much sooner it would all end, :func:`charged` whose time each wait was.
"""

from teller_core.judge.replay.charge import Waits, Whose, charged, critical, idled, times
from teller_core.judge.replay.network import Network, network
from teller_core.judge.replay.retime import Retimed, moved, retime
from teller_core.judge.replay.savings import Saving, saving

__all__ = [
    "Network",
    "Retimed",
    "Saving",
    "Waits",
    "Whose",
    "charged",
    "critical",
    "idled",
    "moved",
    "network",
    "retime",
    "saving",
    "times",
]
