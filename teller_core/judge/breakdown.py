"""Where a request's time went, by phase: disjoint in time and summing to the whole (DESIGN rule 4)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from teller_core.data.parts import PHASES
from teller_core.data.report import Part
from teller_core.data.steps import Role
from teller_core.data.table import UNKNOWN
from teller_core.judge.intervals import EMPTY, Spans, clip, paint, span, union
from teller_core.judge.life import Life
from teller_core.judge.prepare import Case
from teller_core.judge.windows import keyed

FRONT = "from the server's receipt to the engine's"
PLACED = "as lines tell it, or durations if each token was sent on at once"
"""Without steps, durations of spans tell how long the engine had it, and not how much of the rest was before and after."""

QUEUE = "from the engine's receipt to its first scheduling"
APART_NS = 1_000_000
"""An engine's own count of the queue that is this much shorter than what was recorded leaves something out."""
LAUNCHED = "from its first scheduling to its first step's begin"
SERVERS_OWN = "what remains: the server's own time, of which nothing was recorded"


class _Colored(NamedTuple):
    phase: str
    time: Spans | None
    """None: nobody recorded this phase."""
    source: str


def phases(case: Case, life: Life, low: int, high: int) -> list[Part]:
    """The phases of one request from ``low`` to ``high`` (ns) in the order of PHASES; they sum to high - low. Empty where either
    is unknown.

    An instant that could belong to several phases has the first of: the capture's own stall, recompute, preempted, a transfer
    of its KV, its own steps, the engine's other activity while it was decoding, the zone between two boundaries.
    """
    if UNKNOWN in (low, high) or high < low:
        return []
    layers = [_stall(case), *_evictions(life), _transfer(case, life), *_own(case, life), *_zones(case, life)]
    painted = paint(low, high, [layer.time or EMPTY for layer in layers])
    total: dict[str, int | None] = dict.fromkeys(PHASES)
    source = {"unexplained": _remains(layers, life)}
    for layer, ns in zip(layers, painted, strict=False):
        if layer.time is not None:
            total[layer.phase] = (total[layer.phase] or 0) + ns
        source.setdefault(layer.phase, layer.source)
    total["unexplained"] = painted[-1]
    return [_part(phase, total[phase], source[phase]) for phase in PHASES]


def _remains(layers: Sequence[_Colored], life: Life) -> str:
    """What the rest is made of: the server's own time where nothing but its receipt is known of it."""
    dark = all(layer.time is None for layer in layers if layer.phase not in ("before_server", "capture_stall"))
    return SERVERS_OWN if dark and life.received != UNKNOWN else "what remains"


def _part(phase: str, ns: int | None, source: str) -> Part:
    return Part(part=phase, ns=ns, source=source) if ns else _without_time(phase, ns, source)


@lru_cache(maxsize=256)
def _without_time(phase: str, ns: int | None, source: str) -> Part:
    """A phase that took nothing, or of which nothing is known: most of them are, and the same ones in request after request."""
    return Part(part=phase, ns=ns, source=source)


def phase_ns(parts: list[Part], phase: str) -> int:
    """ns of one phase, 0 where it is null or not there."""
    return next((part.ns or 0 for part in parts if part.part == phase), 0)


def _stall(case: Case) -> _Colored:
    if not case.capture.pauses.kind:
        return _Colored("capture_stall", None, "no pauses were recorded")
    return _Colored("capture_stall", case.stalls, "the recorder's own stops of its profiler")


def _transfer(case: Case, life: Life) -> _Colored:
    table = case.capture.transfers
    mine = case.once("transfers", lambda case: keyed(case.capture.transfers.request.astype(np.int64))).of(
        np.array([life.request], np.int64)
    )
    if not len(mine):
        return _Colored("remote_kv_wait", None, "nothing recorded a transfer of KV from another engine")
    told = "from the end of the engine that computed its prompt to its first step on the one that answered"
    return _Colored("remote_kv_wait", union(table.start[mine], table.stop[mine]), told)


def _evictions(life: Life) -> list[_Colored]:
    if not len(life.step):
        why = f"{life.dark} is unknown"
        return [_Colored("recompute", None, why), _Colored("preempted", None, why)]
    return [
        _Colored("recompute", life.recompute, "steps that computed its tokens again"),
        _Colored("preempted", life.evicted, "between its last step before and its first step after a preemption"),
    ]


def _own(case: Case, life: Life) -> list[_Colored]:
    """Its own steps, and while it decodes everything the engine did besides."""
    if not len(life.step):
        return _from_records(case, life)
    prefill = life.role == Role.PREFILL
    early = union(life.start[prefill], life.stop[prefill])
    decode = union(life.start[~prefill], life.stop[~prefill])
    around = clip(life.engine.activity, life.first, life.last) if life.engine is not None else EMPTY
    gaps = span(life.launched, life.first) if life.first != UNKNOWN else EMPTY
    return [
        _Colored("own_prefill", early, "its first scheduling, and steps that computed its prompt"),
        _Colored("decode", decode, "steps that served it, and what the engine did between them"),
        _Colored("decode", around, "steps that served it, and what the engine did between them"),
        _Colored("between_own_chunks", gaps, "between the steps that computed its prompt"),
    ]


def _from_records(case: Case, life: Life) -> list[_Colored]:
    """Without steps: what the server says of its first and last token, or else its caller of the decoding alone."""
    table = case.capture.requests
    first, last = int(table.first_token[life.request]), int(table.last_token[life.request])
    if last == UNKNOWN:
        last = int(table.finished[life.request])
    who = "the server says"
    if first == UNKNOWN and len(seen := case.capture.tokens.of(life.request)):
        first, last, who = int(seen[0]), int(seen[-1]), "its caller saw them"
    missing = "neither its steps nor the server's times of its tokens are known"
    return [
        _between("own_prefill", life.launched, first, "from its first scheduling to its first token", missing),
        _between("decode", first, last, f"from its first to its last token, as {who}", missing),
        _Colored("between_own_chunks", None, f"{life.dark} is unknown"),
    ]


def _zones(case: Case, life: Life) -> list[_Colored]:
    """What lies between two recorded boundaries and is nothing else."""
    sent = int(case.capture.requests.client_start[life.request])
    return [
        _between(
            "before_server",
            sent,
            life.received,
            "from the start of its caller, or its receipt by a gateway, to the server's receipt",
        ),
        _between("front_end", life.received, life.queued, FRONT if len(life.step) else f"{FRONT}, {PLACED}"),
        _between("queue", life.queued, life.chosen, _queue_source(case, life)),
        _between("own_prefill", life.chosen, life.launched, LAUNCHED),
        _between("delivery", life.last, life.end, "from the end of its last step to its end"),
    ]


def _queue_source(case: Case, life: Life) -> str:
    """Engines count from when they take a request in, which may be long after it was handed to them."""
    said = int(case.capture.requests.queue_ns[life.request])
    apart = (
        said != UNKNOWN and UNKNOWN not in (life.queued, life.chosen) and life.chosen - life.queued - said > APART_NS
    )
    return f"{QUEUE}, of which the engine's own count has only the end" if apart else QUEUE


def _between(phase: str, low: int, high: int, source: str, missing: str = "not both of its ends are known") -> _Colored:
    """The time between two boundaries, without time where either is unknown."""
    if UNKNOWN in (low, high):
        return _Colored(phase, None, missing)
    return _Colored(phase, span(low, high), source)
