"""A wait is not a cause: time that a span spends waiting for others is taken off what it adds."""

import re
from dataclasses import replace

import numpy as np

from teller_core.data.assessment import Candidates
from teller_core.data.capture import names_of
from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.trace import Layer
from teller_core.judge.expectations import OBSERVER
from teller_core.judge.intervals import Spans, overlap, union
from teller_core.judge.localize.scene import Scene

BLOCKING = re.compile(
    r"Synchronize|cu(da)?Memcpy(?!.*Async)|hipMemcpy(?!.*Async)|StreamWaitEvent|::item$|_local_scalar_dense"
)
"""Calls that return when the device has caught up: they last as long as the work before them."""


def without_waits(scene: Scene, found: Candidates) -> Candidates:
    """``found`` with the recorded wait of collectives, and of blocking calls the time in which the device worked, taken off
    value and excess; and so is what the recorder itself held the process up.
    """
    wait = _collective_wait(scene, found)
    stopped = _stopped(scene)
    trace = scene.spans.tree.trace
    for i, (row, name) in enumerate(zip(found.row.tolist(), found.name, strict=True)):
        begin, end = int(trace.start[row]), int(trace.start[row] + trace.dur[row])
        if found.layer[i] in (Layer.RUNTIME, Layer.OPERATOR) and BLOCKING.search(name):
            wait[i] = max(wait[i], overlap(scene.device, begin, end))
        wait[i] += overlap(stopped, begin, end)
    wait = np.minimum(wait, found.value)
    return replace(found, value=found.value - wait, excess=found.excess - wait) if wait.any() else found


def _stopped(scene: Scene) -> Spans:
    """When the recorder held this rank's process up."""
    pauses, mine = scene.capture.pauses, names_of(scene.capture.ranks)[scene.spans.rank]
    held = [kind in OBSERVER and process in mine for kind, process in zip(pauses.kind, pauses.process, strict=True)]
    which = np.array(held, dtype=np.bool_)
    return union(pauses.start[which], pauses.start[which] + pauses.dur[which])


def _collective_wait(scene: Scene, found: Candidates) -> Int64:
    """int64 ns: the wait recorded of the collective at each candidate's row, 0 where none is."""
    met = scene.capture.collectives
    mine = np.flatnonzero((met.rank == scene.spans.rank) & (met.row >= 0) & (met.wait != UNKNOWN))
    wait = dict(zip(met.row[mine].tolist(), met.wait[mine].tolist(), strict=True))
    return np.array([wait.get(row, 0) for row in found.row.tolist()], dtype=np.int64)
