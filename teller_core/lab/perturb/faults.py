"""What can be done to a replayed step: one entry a fault, with the one cause of the taxonomy that it produces."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from teller_core.lab.perturb import adding, stretching
from teller_core.lab.perturb.blows import Blow, Given, Struck, Target

NOTHING = "nothing"
MOVES_HOST, MOVES_DEVICE, MOVES_TALK = "host", "device", "communication"


class Fault(NamedTuple):
    """``cause``: of the taxonomy, None for a hard negative, empty for nothing at all. ``choose``: what is struck in a piece,
    None where it has nothing of the kind; ``strike``: what that does to a run, None where it cannot be. ``own``: the sides
    on which it changes spans that it does not name itself. ``once``: it strikes one step of a run; ``works``: it is more work,
    which the service records as such.
    """

    cause: str | None
    choose: Callable[[Given, np.random.Generator], Target | None]
    strike: Callable[[Blow], Struck | None]
    own: frozenset[str] = frozenset()
    once: bool = False
    works: bool = False


FAULTS: Mapping[str, Fault] = {
    "slow_kernel": Fault("gpu.wrong_kernel", stretching.one_kernel, stretching.slow_kernel),
    "slow_operator": Fault("host.slow_operator", stretching.one_operator, stretching.slow_operator),
    "added_sync": Fault("cuda.host_device_sync", adding.sync_target, adding.added_sync),
    "pageable_copy": Fault("cuda.pageable_copy", adding.copy_target, adding.pageable_copy),
    "late_rank": Fault(
        "comm.straggler_rank", stretching.a_rank, stretching.late_rank, frozenset({MOVES_HOST, MOVES_TALK})
    ),
    "slow_link": Fault(
        "comm.degraded_link", stretching.a_link, stretching.slow_link, frozenset({MOVES_HOST, MOVES_TALK})
    ),
    "graph_miss": Fault("cuda.graph_miss", adding.a_graph, adding.graph_miss, frozenset({MOVES_HOST})),
    "allocator": Fault("cuda.allocator", adding.memory_target, adding.allocator),
    "clock_down": Fault("gpu.clock_throttle", stretching.a_device, stretching.clock_down, frozenset({MOVES_DEVICE})),
    "gc_pause": Fault("host.gc_pause", stretching.a_process, stretching.gc_pause, frozenset({MOVES_HOST}), once=True),
    "starved_host": Fault(
        "host.cpu_starvation", stretching.a_process, stretching.starved_host, frozenset({MOVES_HOST})
    ),
    "contention": Fault(
        "gpu.colocated_contention", stretching.a_device, stretching.contention, frozenset({MOVES_DEVICE})
    ),
    "harmless_sync": Fault(None, adding.sync_target, adding.harmless_sync),
    "more_work": Fault(None, stretching.a_device, stretching.clock_down, frozenset({MOVES_DEVICE}), works=True),
    NOTHING: Fault("", stretching.a_process, adding.nothing),
}
REPLAYS_TOLD = "recorded runs are told from replayed ones (area 0.94)"
"""Why no figure of replayed episodes is a headline; empty where `lab leaks --replayed` finds none."""
NO_HEADLINE: Mapping[str, str] = {
    "slow_kernel": "area 0.57",
    "added_sync": "area 0.57",
    "slow_link": "area 0.80",
    "graph_miss": "area 0.62, of too few steps",
    "allocator": "area 0.57",
    "clock_down": "area 0.61",
    "starved_host": "area 0.73",
    "more_work": "area 0.62",
}
"""Faults whose episodes are in no figure: their struck steps are told from others by spans that are not the fault's."""
