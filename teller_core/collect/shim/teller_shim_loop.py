"""How late an asyncio loop runs what is due: the wait of every request that the loop has to serve."""

import time

from teller_shim_cost import due, spent, timed
from teller_shim_events import add
from teller_shim_guard import guarded

TICK_S = 0.1
LATE_NS = 20_000_000
_watched = {}


def watch():
    """Watch the running loop of the calling thread from now until it ends. Once is enough."""
    from asyncio import get_running_loop  # slow, and the caller has it

    loop = get_running_loop()
    if _watched.get("loop") is not loop:
        _watched["loop"] = loop
        _again(loop)


def _again(loop):
    loop.call_later(TICK_S, _tick, loop, time.monotonic_ns() + int(TICK_S * 1e9))


def _tick(loop, expected):
    cpu = due()
    guarded("loop", _note, loop, expected)
    if cpu is not None:
        spent(cpu)
        timed()


def _note(loop, expected):
    late = time.monotonic_ns() - expected
    if late > LATE_NS:
        add("L", time.time_ns(), "loop_lag", {"lag": late})
    if not loop.is_closed() and _watched.get("loop") is loop:
        _again(loop)
