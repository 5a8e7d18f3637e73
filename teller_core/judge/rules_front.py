"""Rules for causes before and after the steps: the front end, and the way to it and back."""

import numpy as np

from teller_core.data.report import EvidenceItem
from teller_core.data.table import UNKNOWN
from teller_core.judge.beside import BESIDE, arrivals
from teller_core.judge.breakdown import phase_ns
from teller_core.judge.evidence import COUNTED, HINTED, Clue, cost, count
from teller_core.judge.front import MOSTLY, Zone, extra, lasted, others_during, others_in, usual
from teller_core.judge.intervals import Spans, overlap, overlaps, union
from teller_core.judge.prepare import Case
from teller_core.judge.scene import Scene

LAG_TOKENS = 16
"""Fewer tokens than this show no trend of delivery."""
LUMP, LUMPS = 4, 0.8
"""Tokens that come together, by so many at least, and the share of such lumps that must be of one size."""
TOGETHER = 2_000_000
"""ns: tokens that come no farther apart came together."""


def input_processing(scene: Scene) -> Clue | None:
    """The front end kept it longer than it keeps most requests, or was at work on others' input when it was its turn."""
    if scene.metric == "itl_max":
        return _stream_paused(scene)
    if scene.metric == "tpot" or not scene.span:
        return None
    table, life, own = scene.case.capture.requests, scene.life, scene.front["in"]
    beside = sum(_by_others(scene, scene.front[way]) for way in _ways(scene)) + _crowded(scene, of_input=True)
    ns = own.rest + beside
    if ns <= 0:
        return None
    evidence = [cost("longer in the front end than most requests", own.rest, kind="decision")]
    if own.whole:
        kept = cost(
            "time in the front end before the engine can have had it",
            own.whole,
            usual(scene.case, life.request, "in"),
            kind="decision",
        )
        evidence.append(kept)
    tokenized = int(table.tokenized[life.request])
    if own.whole and life.received <= tokenized <= life.queued:
        evidence.append(cost("of it, until its prompt was tokens", tokenized - life.received, kind="decision"))
    if own.whole:
        evidence += _loop_lag(scene, own.low, own.high)
    if beside > 0:
        evidence.append(cost("the front end was at work on the input of others meanwhile", beside, kind="sample"))
    if int(table.prompt_tokens[life.request]) >= 0:
        evidence.append(count("prompt tokens", int(table.prompt_tokens[life.request]), unit="tokens"))
    # Of an engine of which only durations are known it is not known either that it did not get it between two steps.
    sure = COUNTED if len(life.step) else HINTED
    decided = (own.worked or 0) >= own.rest // 2 and _lasts(scene, own)
    return Clue("frontend.input_processing", ns, sure, evidence, layer="request", decided=decided)


def _lasts(scene: Scene, own: Zone) -> bool:
    """Whether it was kept much longer than most and so were those just before or just after it, while hardly any other was there
    that it might have waited for: a little, or once, is chance.
    """
    case, request = scene.case, scene.life.request
    if not own.rest or not lasted(case, request, "in"):
        return False
    if others_during(case, request, own.low, own.high) >= MOSTLY * own.whole:
        return False
    sides = case.once("by arrival", arrivals).beside(request)
    return any(len(side) == BESIDE and all(lasted(case, one, "in") for one in side) for side in sides)


def detok_stream(scene: Scene) -> Clue | None:
    """Its tokens arrived later and later after the steps that made them, or the front end was still at work on them when they
    were made.
    """
    if scene.metric == "ttft":
        return None
    drift = _drift(scene)
    out = scene.front["out"]
    late = (out.worked or 0) - _by_others(scene, out) if scene.metric in ("e2e", "slo") else 0
    crowded = _crowded(scene, of_input=False)
    if late + crowded <= (drift.ns if drift else 0):
        return drift
    evidence = [
        cost("longer in the front end after its last step than most requests, while it ran", late, kind="sample"),
        cost(
            "time from its last step to the end of its answer in the server",
            out.whole,
            usual(scene.case, scene.life.request, "out"),
        ),
    ]
    if crowded > 0:
        evidence.append(cost("steps held up while the front end had more to do than usual", crowded, kind="sample"))
    return Clue("frontend.detok_stream", late + crowded, COUNTED, evidence, layer="request")


def gateway_overhead(scene: Scene) -> Clue | None:
    """It spent longer on the way to the server, or back, than most requests, and the server was not at work meanwhile."""
    if scene.metric == "itl_max":
        return _lumps(scene)
    way = scene.front["way"]
    before = 0 if way.worked else way.rest - _short(scene, way)
    back = outside(scene) if scene.metric != "ttft" else 0
    if back > max(before, 0):
        evidence = [cost("its caller had the end of the answer later than most, after the server was done", back)]
        return Clue("frontend.gateway_overhead", back, COUNTED, evidence, layer="request")
    if before <= 0 or scene.metric == "tpot":
        return None
    evidence = [
        cost("longer on the way to the server than most requests", before),
        cost(
            "time between its caller's start, or a gateway's receipt, and the server's",
            phase_ns(scene.phases, "before_server"),
            usual(scene.case, scene.life.request, "way"),
        ),
    ]
    return Clue("frontend.gateway_overhead", before, COUNTED, evidence, layer="request")


def outside(scene: Scene) -> int:
    """ns that its answer took from the server to its caller beyond most requests, 0 where that is not known."""
    back = scene.front["back"]
    return 0 if back.worked else max(back.rest - _short(scene, back), 0)


def _short(scene: Scene, zone: Zone) -> int:
    """ns of a zone in which some task of the machine, its caller may be one, waited for a processor beyond the calm level."""
    if UNKNOWN in (zone.low, zone.high):
        return 0
    return int(1000 * scene.beyond("pressure_cpu_some_us", zone.low, zone.high))


def _ways(scene: Scene) -> tuple[str, ...]:
    return ("way",) if scene.metric == "ttft" else ("way", "out")


def _by_others(scene: Scene, zone: Zone) -> int:
    """ns of a zone in which the front end ran, and had requests that it had not yet handed over."""
    if not zone.worked:
        return 0
    had = others_during(scene.case, scene.life.request, zone.low, zone.high)
    return zone.worked if had >= MOSTLY * zone.whole else min(zone.worked, had)


def _crowded(scene: Scene, *, of_input: bool) -> int:
    """ns that its steps were held up by the front end's threads: at work on input, or on anything else. In a process of their own
    these only take the processors.
    """
    held, case = scene.holds, scene.case
    if not len(held.step):
        return 0
    others = others_in(case, scene.life.request)
    if case.apart:
        busy = overlap(others, scene.low, scene.high) >= MOSTLY * scene.span or _lasts(scene, scene.front["in"])
        return min(int(held.starved.sum()), extra(case, scene.low, scene.high)) if busy == of_input else 0
    busy_holds = overlaps(others, held.low, held.high) >= MOSTLY * (held.high - held.low)
    return int(held.crowded[busy_holds == of_input].sum())


def _drift(scene: Scene) -> Clue | None:
    life = scene.life
    times = scene.case.capture.tokens.of(life.request)
    made = life.stop[np.flatnonzero(life.stop >= life.first)] if life.first != UNKNOWN else life.stop[:0]
    if len(times) < LAG_TOKENS or len(times) != len(made):
        return None
    lag = times - made
    quarter = len(lag) // 4
    early, late = int(np.median(lag[:quarter])), int(np.median(lag[-quarter:]))
    middle = int(np.median(lag[quarter:-quarter]))
    if not early < middle < late or outside(scene) >= MOSTLY * (late - early):
        return None
    evidence = [
        cost("how much later than its first tokens the last ones arrived", late - early),
        cost("tokens arrived after their steps, at the end", late, early),
        count("tokens", len(times), unit="tokens"),
    ]
    return Clue("frontend.detok_stream", late - early, COUNTED, evidence, layer="request")


def _stream_paused(scene: Scene) -> Clue | None:
    """The event loop ran late in the gap between two of its tokens while it was busy with another request's input."""
    late = scene.case.once("loop lag", _late_loop)
    ns = scene.during(late) - _paused(scene, scene.low, scene.high) if scene.span else 0
    if ns <= 0:
        return None
    table = scene.case.capture.requests
    known = (table.received != UNKNOWN) & (table.queued != UNKNOWN)
    busy = np.where(known, np.minimum(table.queued, scene.high) - np.maximum(table.received, scene.low), 0)
    busy[scene.life.request] = 0
    other = int(np.argmax(busy))
    if busy[other] < MOSTLY * ns:
        return None
    evidence = [
        cost("the event loop ran late between two of its tokens", ns, kind="pause"),
        cost("another request was in the front end meanwhile", int(busy[other]), kind="decision", scope="capture"),
    ]
    if int(table.prompt_tokens[other]) >= 0:
        evidence.append(count("its prompt tokens", int(table.prompt_tokens[other]), unit="tokens", scope="capture"))
    return Clue("frontend.input_processing", ns, COUNTED, evidence, layer="request")


def _lumps(scene: Scene) -> Clue | None:
    """Its tokens came in lumps of one size, though its steps made them one after the other."""
    times, life = scene.case.capture.tokens.of(scene.life.request), scene.life
    cuts = np.flatnonzero(np.diff(times) > TOGETHER) + 1
    sizes = np.diff(np.concatenate([[0], cuts, [len(times)]]))[:-1]  # the last one is what was left
    inside = int(((life.stop > scene.low) & (life.stop < scene.high)).sum()) if scene.span else 0
    if len(sizes) < 2 or inside < LUMP or np.median(sizes) < LUMP or (sizes == np.median(sizes)).mean() < LUMPS:
        return None
    usual = int(np.median(np.diff(life.stop))) if len(life.stop) > 1 else 0
    ns = scene.span - usual
    evidence = [
        cost("the gap, beyond what its steps were apart", ns, usual),
        count("tokens that came at once, each time", int(np.median(sizes)), unit="tokens"),
        count("steps that made tokens for it in the gap", inside, unit="steps"),
    ]
    return Clue("frontend.gateway_overhead", ns, COUNTED, evidence, layer="request") if ns > 0 else None


def _paused(scene: Scene, low: int, high: int) -> int:
    """ns in which the front end stood still for a reason of its own, or the recorder's."""
    pauses = [*scene.case.front_pauses.values(), scene.case.stalls]
    return sum(overlap(spans, low, high) for spans in pauses)


def _loop_lag(scene: Scene, low: int, high: int) -> list[EvidenceItem]:
    """How late an event loop ran what was due: the wait of all that it serves."""
    late = scene.case.once("loop lag", _late_loop)
    ns = overlap(late, low, high)
    return [cost("of it, the event loop ran late", ns, kind="pause")] if ns > 0 else []


def _late_loop(case: Case) -> Spans:
    pauses = case.capture.pauses
    mine = np.array([row for row, name in enumerate(pauses.kind) if name == "loop_lag"], np.int64)
    return union(pauses.start[mine], pauses.start[mine] + pauses.dur[mine])
