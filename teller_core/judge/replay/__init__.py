"""Replay: the recorded work re-timed with other durations, by what each moment of it had to wait for.

chains    the moments of each thread, and whose time passed between them
arcs      what moments depend on besides their thread: launches, streams, waits, meetings of ranks
silence   time in which nothing was recorded: work, a wait for something known, or unknown
network   all of it, in the form that is re-timed (:func:`network`); what cannot be known is counted by name
passes    its loops, compiled
retime    times for other durations (:func:`retime`)
savings   how much sooner it would all end (:func:`saving`)
charge    whose time each wait was (:func:`charged`, :func:`idled`, :func:`critical`); its own time, waits, idleness
suspects  what a cause took of a step, and what that would be without it
steps     what the end of a cause would save in the steps of a request
what_if   durations for any span that somebody asks about
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
