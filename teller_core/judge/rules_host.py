"""Rules for causes on the host: collections, starvation, storage, one operator, work between steps, our own recorder."""

import numpy as np

from teller_core.data.report import EvidenceItem
from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.trace import Layer
from teller_core.judge.evidence import COUNTED, RECORDED, SAMPLED, Clue, cost, count, ms, step_item
from teller_core.judge.holds import Bool
from teller_core.judge.intervals import common, span
from teller_core.judge.prepare import Case
from teller_core.judge.rules_device import unseen
from teller_core.judge.scene import Scene
from teller_core.judge.windows import Keyed, Windows, keyed, windows

ONE_OPERATOR = 0.5
"""One operator is to blame where it has this share of all that suspicious spans add: starvation spreads over all of them."""
SEEN = 0.15
"""Where suspicious spans of one operator make up this share of the overtime, it is charged with its share of all of it:
spans are only suspicious where they stand out, and the operator was as slow in the steps between."""
OFTEN = 3
"""Steps in which it must stand out for that: once or twice is a hiccup, not a slow operator."""
COPIES = ("Memcpy", "Memset")
"""What profilers call what a device does that is no kernel."""
MOSTLY = 0.5
"""A device is idle for the host's sake where it stands still for this share of its profiled steps."""


def gc_pause(scene: Scene) -> Clue | None:
    """Collections of the interpreter stood in its way."""
    ns = int(scene.holds.collection.sum()) + front_pauses(scene, "gc")
    if ns <= 0:
        return None
    rows = paused(scene, "gc")
    pauses = scene.case.capture.pauses
    longest = max(rows, key=lambda row: int(pauses.dur[row]), default=None)
    evidence = [
        cost("collections while it waited", ns, kind="pause"),
        count("collections", len(rows), unit="times", kind="pause"),
    ]
    if longest is not None:
        evidence.append(cost("the longest collection", int(pauses.dur[longest]), kind="pause"))
    return Clue("host.gc_pause", ns, RECORDED, evidence, step=worst(scene, scene.holds.collection), layer="python")


def cpu_starvation(scene: Scene) -> Clue | None:
    """Threads of the engine were ready to run and did not get a processor, while its steps were stretched."""
    held = scene.holds
    steps, front = int(held.starved.sum()), sum(scene.front[way].starved for way in ways(scene))
    ns = steps + front
    if ns <= 0:
        return None
    evidence = [cost("steps stretched while threads waited for a processor", steps, kind="sample")]
    if front > 0:
        evidence.append(cost("the front end waited for a processor, or was held back by a quota", front, kind="sample"))
    evidence += [
        cost(
            "run-queue wait beyond the calm level",
            int(scene.beyond_calm("run_queue_wait_ns")),
            kind="sample",
            scope="capture",
        ),
        count("steps stretched", int(((held.starved > 0) & ~held.gap).sum()), unit="steps", scope="its_steps"),
        *worst_item(scene, held.starved),
    ]
    if scene.counted("pressure_cpu_some_us"):
        pressure = int(scene.beyond_calm("pressure_cpu_some_us") * 1000)
        evidence.append(
            cost(
                "time some task waited for a processor, beyond the calm level", pressure, kind="sample", scope="capture"
            )
        )
    if scene.beyond_calm("cgroup_throttled_periods") > 0:
        throttled = scene.beyond_calm("cgroup_throttled_periods")
        evidence.append(
            count("throttled periods of its control group", throttled, unit="times", kind="sample", scope="capture")
        )
    return Clue("host.cpu_starvation", ns, SAMPLED, evidence, step=worst(scene, held.starved), layer="python")


def io_stall(scene: Scene) -> Clue | None:
    """Tasks waited for storage, or the service wrote unusually much, while its steps or the gaps between them grew."""
    ns = int(scene.holds.device.sum())
    if ns <= 0:
        return None
    held = scene.holds
    evidence = [
        cost("steps and gaps stretched while storage was waited for", ns, kind="sample"),
        count("steps and gaps stretched", int((held.device > 0).sum()), unit="steps", scope="its_steps"),
        *worst_item(scene, held.device),
    ]
    if scene.counted("pressure_io_some_us"):
        pressure = int(scene.beyond_calm("pressure_io_some_us") * 1000)
        evidence.append(
            cost("time some task waited for storage, beyond the calm level", pressure, kind="sample", scope="capture")
        )
    if scene.counted("write_bytes"):
        written = scene.beyond_calm("write_bytes") / 1e6
        evidence.append(
            count("written by the service beyond the calm level", written, unit="MB", kind="sample", scope="capture")
        )
    return Clue("host.io_stall", ns, SAMPLED, evidence, step=worst(scene, held.device), layer="python")


def slow_operator(scene: Scene) -> Clue | None:
    """One operator has most of what suspicious spans add to steps whose overtime nothing else explains."""
    found = _suspects(scene)
    if found is None:
        return None
    rows, scope = found
    table = scene.case.assessment.candidates
    by_name: dict[str, int] = {}
    for row in rows:
        by_name[table.name[row]] = by_name.get(table.name[row], 0) + max(int(table.excess[row]), 0)
    name, added = max(by_name.items(), key=lambda item: item[1])
    everything = sum(by_name.values())
    if not everything or added < ONE_OPERATOR * everything:
        return None
    mine = [row for row in rows if table.name[row] == name]
    top = max(mine, key=lambda row: int(table.excess[row]))
    left = int(scene.holds.rest[~scene.holds.gap].sum())
    often = len(set(table.step[mine].tolist())) >= OFTEN and added >= SEEN * left
    ns = (left * added // everything if often else min(left, added)) - _waited_besides(scene)
    if ns <= 0:
        return None
    layer = Layer(int(table.layer[top])).name.lower()
    evidence = [
        cost("what its spans add to the steps", ns, kind="span"),
        EvidenceItem(
            kind="span",
            scope="this_request" if scope == "this_request" else "similar_steps",
            span=f"{int(table.rank[top])}:{int(table.row[top])}",
            step=int(table.step[top]),
            name=name,
            value=ms(int(table.value[top])),
            normal=ms(int(table.normal[top])),
            unit="ms",
        ),
        count("suspicious spans of this operator", len(mine), unit="spans", kind="span"),
        *_cpu(scene),
    ]
    cause = "gpu.wrong_kernel" if table.layer[top] == Layer.KERNEL else "host.slow_operator"
    return Clue(
        cause,
        ns,
        COUNTED,
        evidence,
        step=int(table.step[top]),
        rank=int(table.rank[top]),
        operator=name,
        layer=layer,
    )


def observer_overhead(scene: Scene) -> Clue | None:
    """The recorder's own profiler was being stopped: no fault of the service."""
    stopping, opening = scene.during(scene.case.stalls), int(scene.holds.observed.sum())
    if stopping + opening <= 0:
        return None
    evidence = [
        cost("the recorder's profiler was being started or stopped", stopping + opening, kind="pause"),
        cost("stops of the profiler", stopping, kind="pause"),
        cost("overtime of the first steps of a profile", opening, kind="step", scope="its_steps"),
    ]
    return Clue("host.observer_overhead", stopping + opening, RECORDED, evidence, layer="python")


def between_steps(scene: Scene) -> Clue | None:
    """Gaps between its steps grew in which the thread that decides on them ran, and nothing else explains it."""
    held = scene.holds
    busy = np.where(held.gap, held.rest - held.asleep, 0)
    ns = int(busy.sum())
    if ns <= 0 or not held.watched:
        return None
    evidence = [
        cost("between its steps, longer than usual, while the engine ran", ns, kind="sample", scope="its_steps"),
        count("such gaps", int((busy > 0).sum()), unit="gaps", scope="its_steps"),
        *worst_item(scene, busy),
    ]
    return Clue("host.step_overhead", ns, SAMPLED, evidence, step=worst(scene, busy), layer="python")


def device_idle(scene: Scene) -> Clue | None:
    """Its device stood still for most of its profiled steps, while the host worked."""
    parts = {part.part: part.ns for part in scene.resources}
    idle, host, busy = parts.get("device_idle"), parts.get("exposed_host"), parts.get("device_compute")
    if idle is None or host is None or busy is None or unseen(scene):
        return None
    seen = sum(ns or 0 for name, ns in parts.items() if name != "unexplained")
    ns = idle + host
    if not seen or ns < MOSTLY * seen:
        return None
    evidence = [
        cost("its device stood still in its profiled steps", ns, kind="span"),
        cost("kernels in them", busy, kind="span"),
        cost("the host worked meanwhile", host, kind="span"),
    ]
    return Clue("host.step_overhead", ns, COUNTED * 0.8, evidence, layer="python")


def ways(scene: Scene) -> tuple[str, ...]:
    """The zones outside the engine that bear on the metric."""
    return (
        () if scene.metric in ("tpot", "itl_max") else ("way", "in") if scene.metric == "ttft" else ("way", "in", "out")
    )


def front_pauses(scene: Scene, kind: str) -> int:
    """ns that pauses of the front end delayed it: before the engine had it, after its last step, or in the gap asked for."""
    pauses, life = scene.case.front_pauses[kind], scene.life
    if not len(pauses.start) or not scene.span:
        return 0
    if scene.metric == "itl_max" and scene.case.apart:
        return scene.during(pauses)
    arrived = next((time for time in (life.queued, life.launched) if time != UNKNOWN), UNKNOWN)
    zones = [(life.begin, arrived), (life.last, life.end)]
    return sum(scene.during(common(pauses, span(*zone))) for zone in zones if UNKNOWN not in zone)


def paused(scene: Scene, kind: str) -> list[int]:
    """Pauses of the service of one kind that touch the metric's stretch."""
    found = scene.case.once("pauses by time", _pauses_by_time).get(kind)
    return found.touching(scene.low + 1, scene.high - 1).tolist() if found is not None and scene.span else []


def _pauses_by_time(case: Case) -> dict[str, Windows]:
    pauses = case.capture.pauses
    rows: dict[str, list[int]] = {}
    for row, kind in enumerate(pauses.kind):
        rows.setdefault(kind, []).append(row)
    index = {kind: np.array(found, np.int64) for kind, found in rows.items()}
    return {kind: windows(at, pauses.start[at], pauses.start[at] + pauses.dur[at]) for kind, at in index.items()}


def worst(scene: Scene, charge: Int64) -> int | None:
    """The step with most of a charge."""
    return int(scene.holds.step[int(np.argmax(charge))]) if len(charge) and charge.max() > 0 else None


def worst_item(scene: Scene, charge: Int64) -> list[EvidenceItem]:
    held = scene.holds
    steps: Bool = ~held.gap
    at = int(np.argmax(np.where(steps, charge, -1))) if steps.any() else int(np.argmax(charge))
    if charge[at] <= 0:
        at = int(np.argmax(charge))
    name = "the longest gap after a step" if held.gap[at] else "the most stretched step"
    return [step_item(int(held.step[at]), name, int(held.took[at]), int(held.base[at]), own=bool(held.own[at]))]


def _suspects(scene: Scene) -> tuple[list[int], str] | None:
    """Rows of the candidates in its slow steps, else in slow steps near in time; and which of the two."""
    held = scene.holds
    slow = held.step[(held.rest > 0) & ~held.gap]
    if not len(slow):
        return None
    by_step, by_time = scene.case.once("candidates", _candidates)
    rows = by_step.of(slow)
    if len(rows):
        return rows.tolist(), "this_request"
    near = by_time.touching(scene.low, scene.high - 1)
    return (near.tolist(), "similar_steps") if len(near) else None


def _candidates(case: Case) -> tuple[Keyed, Windows]:
    """Suspicious spans that compute, by their step and by its begin."""
    table = case.assessment.candidates
    computing = np.isin(table.layer, (Layer.OPERATOR, Layer.KERNEL)) & (table.step >= 0)
    computing &= np.array([not name.startswith(COPIES) for name in table.name], dtype=np.bool_)
    rows = np.flatnonzero(computing)
    by_step, begin = keyed(table.step[rows].astype(np.int64)), case.begin[table.step[rows]]
    return Keyed(by_step.key, rows[by_step.row].astype(np.int64)), windows(rows.astype(np.int64), begin, begin)


def _waited_besides(scene: Scene) -> int:
    """ns that its processes waited for a processor beyond the calm level, and that no step was charged with: a counter that is
    read ten times a second does not say in which span of a step a thread was set aside.
    """
    if not scene.counted("run_queue_wait_ns"):
        return 0
    return max(int(scene.beyond_calm("run_queue_wait_ns")) - int(scene.holds.starved.sum()), 0)


def _cpu(scene: Scene) -> list[EvidenceItem]:
    if not scene.counted("run_queue_wait_ns"):
        return []
    waited = int(scene.beyond_calm("run_queue_wait_ns"))
    return [cost("run-queue wait beyond the calm level", waited, kind="sample", scope="capture")]
