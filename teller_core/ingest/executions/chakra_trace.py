"""A trace out of operators whose durations a Chakra file tells.

Chakra tells how long an operator took and what it waited for, and in most files not when it began. Where no node has a
start, each is put at the earliest time that its dependencies and its thread or stream allow: durations are as recorded, the
places in time follow from the order alone. Such a trace has a clock of its own. What a node waited for are its data_deps:
its ctrl_deps name the operator that called it, which may end after it.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from teller_core.data.records import OperatorNode, Process, known
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.ingest.collective_names import COLLECTIVE
from teller_core.ingest.decimals import LARGEST
from teller_core.ingest.row_arrays import RowArrays

EPOCH_NS = 10**18
"""A time beyond this (September 2001) counts from 1970: no machine has been up for 31 years."""
COPIES = ("Memcpy", "Memset")


class Timed(NamedTuple):
    """An operator, whether it ran on the host, and the ids of the nodes that it waited for."""

    node: OperatorNode
    host: bool
    after: Sequence[int]


def traces_of(operators: Sequence[Timed], process: Process) -> list[Trace]:
    """The operators with a known duration as one trace; none where none has one."""
    recorded = any(known(one.node.start) for one in operators)
    starts = [one.node.start for one in operators] if recorded else _scheduled(operators)
    rows = RowArrays()
    pid = str(process.pid) if process.pid else ""
    for one, start in zip(operators, starts, strict=True):
        node = one.node
        if not known(node.dur) or not known(start) or start > LARGEST - node.dur:
            continue
        lane = Lane(pid, str(node.thread), False) if one.host else Lane("device", str(node.thread), True)
        layer, category = _kind(one)
        rows.add(start, node.dur, node.name, lane, category=category, layer=layer, argument=node.arguments)
    unix = recorded and 2 * sum(start >= EPOCH_NS for start in starts) > len(starts)
    origin = Origin(
        "chakra" if recorded else "chakra_durations",
        "unix" if unix else "local",
        rank=process.rank,
        host=process.host or None,
        pid=process.pid or None,
    )
    return rows.traces(origin)


def _kind(one: Timed) -> tuple[Layer, str]:
    if one.host:
        return (Layer.COMMUNICATION if COLLECTIVE.match(one.node.name) else Layer.OPERATOR), "cpu_op"
    if one.node.name.startswith(COPIES):
        return Layer.KERNEL, "gpu_memcpy"
    communicates = one.node.collective or COLLECTIVE.match(one.node.name)
    return (Layer.COMMUNICATION if communicates else Layer.KERNEL), "kernel"


def _scheduled(operators: Sequence[Timed]) -> list[int]:
    """ns: the earliest start of each; one operator at a time on a thread or stream, in the order of the file where the
    dependencies leave it open. Nodes of a cycle come last, in that order.
    """
    position = {one.node.id: i for i, one in enumerate(operators)}
    after = [{position[k] for k in one.after if k in position} - {i} for i, one in enumerate(operators)]
    before: list[list[int]] = [[] for _ in operators]
    for i, waits in enumerate(after):
        for k in waits:
            before[k].append(i)
    missing = [len(waits) for waits in after]
    ready = [i for i, count in enumerate(missing) if count == 0]
    heapify(ready)
    starts, ends, done = [0] * len(operators), [0] * len(operators), [False] * len(operators)
    free: dict[tuple[bool, int], int] = {}

    def run(i: int) -> None:
        one = operators[i]
        lane = (one.host, one.node.thread)
        starts[i] = max(free.get(lane, 0), max((ends[k] for k in after[i]), default=0))
        ends[i] = min(starts[i] + (one.node.dur if known(one.node.dur) else 0), LARGEST)
        free[lane], done[i] = ends[i], True

    while ready:
        i = heappop(ready)
        run(i)
        for k in before[i]:
            missing[k] -= 1
            if missing[k] == 0:
                heappush(ready, k)
    for i in range(len(operators)):
        if not done[i]:
            run(i)
    return starts
