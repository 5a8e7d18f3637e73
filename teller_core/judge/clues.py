"""What every rule says of one request, as numbers: what it cost, how sure that is, and where there was nothing to look at."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.causes import cause
from teller_core.data.report import Metric
from teller_core.data.sheets import CLUE, cause_ids
from teller_core.data.table import Float32
from teller_core.judge.claims import applies, claimed, dearest, heard
from teller_core.judge.evidence import Clue
from teller_core.judge.front import NOWHERE
from teller_core.judge.prepare import Case
from teller_core.judge.questions import Answers
from teller_core.judge.rules import RULES
from teller_core.judge.scene import Scene

MOST = 2.0
"""Times its stretch that a cause may cost: what rules say of a short stretch may be of a longer one."""
MOST_KEPT = 64
"""Requests of which it is kept what rules say."""
Looked = Callable[[Scene], bool]


class Clues(NamedTuple):
    """``number`` float32 [causes, CLUE], as in :class:`Sheets`; ``found``: one clue a cause, the dearest first."""

    number: Float32
    found: Sequence[Clue]


def clues_of(view: Scene, answers: Answers) -> Clues:
    """What rules say of the request, whatever it cost, and what of it they would tell."""
    said = _heard(view)
    told = [clue.cause for clue in claimed(view, answers, said)]
    found = dearest(said)
    number = np.full((len(cause_ids()), len(CLUE)), np.nan, np.float32)
    if not view.span:
        return Clues(number, found)
    of = {clue.cause: clue for clue in found}
    for at, key in enumerate(cause_ids()):
        if (clue := of.get(key)) is not None:
            rank = 1 / (1 + told.index(key)) if key in told else 0.0
            number[at] = min(max(clue.ns, 0) / view.span, MOST), clue.confidence, rank
        elif looked(view, key):
            number[at] = 0.0
    return Clues(number, found)


def _heard(view: Scene) -> Sequence[Clue]:
    """What rules say, kept of the requests that were asked about last: who asks a model writes their sheets by it, and then
    weighs the model's opinions against it.
    """
    last = view.case.once("heard of the last requests", lambda _: dict[tuple[int, Metric], Sequence[Clue]]())
    key = view.life.request, view.metric
    if key not in last:
        last[key] = heard(view)
        if len(last) > MOST_KEPT:
            del last[next(iter(last))]
    return last[key]


def looked(view: Scene, key: str) -> bool:
    """Whether what the rule of a cause looks at was recorded."""
    if key not in RULES or cause(key).tier > view.case.capture.tier:
        return False
    return applies(view, key) and LOOKS.get(key, _judged)(view)


def _judged(view: Scene) -> bool:
    """Steps whose work tells what they should take."""
    return view.holds.judged


def _paused(view: Scene) -> bool:
    return bool(view.case.capture.pauses.kind)


def _waited(view: Scene) -> bool:
    return view.counted("run_queue_wait_ns")


def _stored(view: Scene) -> bool:
    return view.counted("pressure_io_some_us") or view.counted("write_bytes")


def _watched(view: Scene) -> bool:
    return view.holds.watched


def _profiled(view: Scene) -> bool:
    return bool(view.case.profiled.any())


def _on_device(view: Scene) -> bool:
    return view.case.once("on a device", _any_device)


def _any_device(case: Case) -> bool:
    trees = [rank.tree for rank in case.capture.ranks if rank.tree is not None]
    return any(bool(tree.trace.on_device.any()) for tree in trees) or any(rank.kernels for rank in case.capture.ranks)


def _met(view: Scene) -> bool:
    return bool(len(view.case.capture.collectives.rank))


def _lines(view: Scene) -> bool:
    return bool(len(view.case.capture.lines.time))


def _entered(view: Scene) -> bool:
    return view.front["in"] is not NOWHERE


def _left(view: Scene) -> bool:
    return view.front["out"] is not NOWHERE or len(view.case.capture.tokens.of(view.life.request)) > 1


def _travelled(view: Scene) -> bool:
    return view.front["way"] is not NOWHERE or view.front["back"] is not NOWHERE


def _queued(view: Scene) -> bool:
    return any(part.part == "queue" and part.ns is not None for part in view.phases)


def _counted_evictions(view: Scene) -> bool:
    return int(view.case.capture.requests.preemptions[view.life.request]) >= 0


def _counted_hits(view: Scene) -> bool:
    return int(view.case.capture.requests.cached_tokens[view.life.request]) >= 0


def _replicas(view: Scene) -> bool:
    return len(view.case.engines) > 1


def _moved(view: Scene) -> bool:
    return bool(len(view.case.capture.transfers.request))


def _clocked(view: Scene) -> bool:
    return bool(view.case.capture.readings.name)


LOOKS: Mapping[str, Looked] = {
    "frontend.input_processing": _entered,
    "frontend.detok_stream": _left,
    "frontend.gateway_overhead": _travelled,
    "scheduler.queue_saturation": _queued,
    "scheduler.kv_preemption": _counted_evictions,
    "scheduler.prefix_cache_miss": _counted_hits,
    "scheduler.dp_imbalance": _replicas,
    "scheduler.lora_swap": _lines,
    "scheduler.grammar": _lines,
    "scheduler.spec_decode": _lines,
    "host.gc_pause": _paused,
    "host.observer_overhead": _paused,
    "host.cpu_starvation": _waited,
    "host.io_stall": _stored,
    "host.blocking_call": _watched,
    "host.interpreter_lock": _watched,
    "host.memory_bandwidth": _profiled,
    "host.slow_operator": _profiled,
    "cuda.host_device_sync": _on_device,
    "cuda.pageable_copy": _on_device,
    "cuda.allocator": _on_device,
    "cuda.jit_compile": _lines,
    "cuda.graph_miss": _lines,
    "gpu.wrong_kernel": _on_device,
    "gpu.clock_throttle": _clocked,
    "gpu.colocated_contention": _on_device,
    "gpu.hw_fault": _lines,
    "comm.straggler_rank": _met,
    "comm.degraded_link": _met,
    "comm.moe_imbalance": _met,
    "comm.fabric_fallback": _met,
    "comm.collective_hang": _lines,
    "comm.rank_missing": _met,
    "comm.kv_transfer": _moved,
}
"""What the rule of a cause looks at; of all others, whether the steps are known with what they should take."""
