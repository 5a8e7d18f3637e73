"""Rules that look at /metrics: what the service, its devices and its machine counted while a request ran.

A reading is of everybody, and some seconds away from what it tells of. So it names a cause only where nothing was recorded
of the request itself, and stands as evidence beside a cause that is.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.data.report import EvidenceItem
from teller_core.data.table import UNKNOWN, Float64, Int64
from teller_core.judge import rules_scheduler
from teller_core.judge.breakdown import phase_ns
from teller_core.judge.evidence import COUNTED, HINTED, Clue, cost, count
from teller_core.judge.prepare import Case
from teller_core.judge.scene import Scene, over_work

NEAR_NS = 15_000_000_000
"""A gauge tells of what was up to this far away: as often is a service asked where nobody sets it otherwise (Prometheus: 60 s,
its charts for vLLM and SGLang: 5 to 15 s)."""
LONGEST_NS = 300_000_000_000
"""A counter's growth over a longer interval tells nothing of a request in it."""
SHARED = 0.3
"""Prefixes are shared where at least this share of the prompt tokens was found in the cache."""
FALLEN = 0.5
"""The share of hits has fallen where it is at most this much of the whole recording's."""
HELD_DOWN = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""Reasons for a lower clock that are none of idling or settings: power cap, hardware, heat and power brake (NVML,
nvmlClocksEventReasons)."""
EMPTY_NS = np.empty(0, np.int64)


class Told(NamedTuple):
    """Readings of one name by start: int64 ns ``start`` and ``stop``, float64 ``value``."""

    start: Int64
    stop: Int64
    value: Float64


NOTHING = Told(EMPTY_NS, EMPTY_NS, np.empty(0, np.float64))


def queue_saturation(scene: Scene) -> Clue | None:
    """As the scheduler's rule finds it, with how many waited; else the gauge alone, while it took longer than its work asks."""
    clue = rules_scheduler.queue_saturation(scene)
    waiting = _highest(scene, "waiting")
    if clue is not None:
        return replace(clue, evidence=[*clue.evidence, *_gauge("requests waiting at once, by /metrics", waiting)])
    ns = over_work(scene)
    if waiting is None or waiting < 1 or ns <= 0 or scene.life.queued != UNKNOWN:
        return None
    evidence = [
        cost("beyond what its work predicts, while requests waited", ns),
        *_gauge("requests waiting at once, by /metrics", waiting),
        *_gauge("requests running at once, by /metrics", _highest(scene, "running")),
    ]
    return Clue("scheduler.queue_saturation", ns, HINTED, evidence)


def kv_preemption(scene: Scene) -> Clue | None:
    """As the scheduler's rule finds it, with how full the cache was; else evictions that the service counted meanwhile."""
    clue = rules_scheduler.kv_preemption(scene)
    usage = _percent("highest KV cache use, by /metrics", _highest(scene, "kv_usage"))
    if clue is not None:
        return replace(clue, evidence=[*clue.evidence, *usage])
    ns = over_work(scene)
    evictions = max(_growth(scene, "preemptions"), _highest(scene, "retracted") or 0.0)
    if len(scene.life.step) or evictions < 1 or ns <= 0:
        return None
    evidence = [
        cost("beyond what its work predicts, while requests were evicted", ns),
        count("evictions of any request meanwhile, by /metrics", evictions, unit="times", scope="capture"),
        *usage,
    ]
    full = (_highest(scene, "kv_usage") or 0.0) >= rules_scheduler.FULL
    return Clue("scheduler.kv_preemption", ns, HINTED if full else HINTED / 2, evidence)


def prefix_cache_miss(scene: Scene) -> Clue | None:
    """As the scheduler's rule finds it; else the share of hits fell while it ran."""
    clue = rules_scheduler.prefix_cache_miss(scene)
    if clue is not None:
        return clue
    queries, hits = _growth(scene, "prefix_queries"), _growth(scene, "prefix_hits")
    usual = scene.case.once("share of hits", _usual_hits)
    ns = over_work(scene)
    if (
        queries <= 0
        or usual < SHARED
        or hits / queries > FALLEN * usual
        or ns <= 0
        or scene.metric in ("tpot", "itl_max")
    ):
        return None
    evidence = [
        cost("beyond what its work predicts, while few prefixes were found", ns),
        count(
            "prompt tokens found in the cache meanwhile", 100 * hits / queries, 100 * usual, unit="%", scope="capture"
        ),
    ]
    return Clue("scheduler.prefix_cache_miss", ns, HINTED, evidence)


def hw_fault(scene: Scene) -> Clue | None:
    """A device reported an error while it ran, and it took longer than its work asks."""
    ns = over_work(scene)
    new, errors = _new_error(scene), _growth(scene, "ecc_errors")
    if ns <= 0 or (new is None and errors < 1):
        return None
    evidence = [cost("beyond what its work predicts, while a device failed", ns)]
    if new is not None:
        evidence.append(count("error that a GPU reported", new, unit="(Xid)", scope="capture"))
    if errors >= 1:
        evidence.append(count("uncorrected memory errors", errors, unit="errors", scope="capture"))
    return Clue("gpu.hw_fault", ns, HINTED, evidence, layer="kernel")


def clock_throttle(scene: Scene) -> Clue | None:
    """The driver held the clock of a device down while it ran, and it took longer than its work asks."""
    ns = over_work(scene)
    told = _near(scene, "throttle_reasons")
    reasons = [int(value) & HELD_DOWN for value in told.value.tolist()]
    violated = _growth(scene, "thermal_violation") + _growth(scene, "power_violation")
    if ns <= 0 or not (any(reasons) or violated > 0):
        return None
    evidence = [
        cost("beyond what its work predicts, while a clock was held down", ns),
        count("readings in which a clock was held down", sum(map(bool, reasons)), unit="times", scope="capture"),
        *_gauge("highest GPU temperature", _highest(scene, "gpu_temperature"), unit="C"),
    ]
    return Clue("gpu.clock_throttle", ns, HINTED, evidence, layer="kernel")


def kv_transfer(scene: Scene) -> Clue | None:
    """Its KV took longer from the engine that computed its prompt to the one that answered than most requests' does."""
    took = phase_ns(scene.phases, "remote_kv_wait")
    ns = took - scene.case.once("usual transfer", _usual_transfer)
    if ns <= 0 or scene.metric in ("tpot", "itl_max"):
        return None
    usual = took - ns
    evidence = [
        cost("longer between the engines than most requests", ns),
        cost("time between the end of its prefill and its first step on the other engine", took, usual or None),
    ]
    return Clue("comm.kv_transfer", ns, COUNTED if usual else HINTED, evidence, layer="communication")


def _usual_transfer(case: Case) -> int:
    """The median transfer of the capture, 0 for fewer than four."""
    took = case.capture.transfers.stop - case.capture.transfers.start
    return int(np.median(took)) if len(took) >= 4 else 0


def _by_name(case: Case) -> dict[str, Told]:
    table = case.capture.readings
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(table.name):
        rows.setdefault(name, []).append(row)
    found: dict[str, Told] = {}
    for name, mine in rows.items():
        order = np.array(mine, np.int64)[np.argsort(table.start[mine], kind="stable")]
        found[name] = Told(table.start[order], table.stop[order], table.value[order])
    return found


def _named(scene: Scene, name: str) -> Told:
    return scene.case.once("readings", _by_name).get(name, NOTHING) if scene.span else NOTHING


def _near(scene: Scene, name: str) -> Told:
    """The readings of a gauge around the stretch, by time."""
    told = _named(scene, name)
    if not len(told.value):
        return told
    near = (told.stop >= scene.low - NEAR_NS) & (told.start <= scene.high + NEAR_NS) & (told.stop != UNKNOWN)
    return Told(told.start[near], told.stop[near], told.value[near])


def _highest(scene: Scene, name: str) -> float | None:
    """The highest reading around the stretch, of requests over all sources together; None where there is none."""
    told = _near(scene, name)
    if not len(told.value):
        return None
    if name in ("waiting", "running", "retracted"):
        times, place = np.unique(told.start, return_inverse=True)
        return float(np.bincount(place, told.value, len(times)).max())
    return float(told.value.max())


def _growth(scene: Scene, name: str) -> float:
    """By how much a counter grew in the intervals that touch the stretch and are short enough to tell of it."""
    told = _named(scene, name)
    if not len(told.value):
        return 0.0
    short = (told.start != UNKNOWN) & (told.stop - told.start <= LONGEST_NS)
    touching = short & (told.stop > scene.low) & (told.start < scene.high)
    return float(told.value[touching].sum())


def _new_error(scene: Scene) -> float | None:
    """The number of an error that a device reported around the stretch and had not reported before."""
    told = _named(scene, "xid")
    before = {float(value) for value in told.value[told.stop < scene.low - NEAR_NS].tolist()}
    near = [float(value) for value in _near(scene, "xid").value.tolist() if value > 0]
    return next((value for value in near if value not in before), None) if before else None


def _usual_hits(case: Case) -> float:
    """The share of prompt tokens found in the cache over the whole recording, 0 where that is not known."""
    told = case.once("readings", _by_name)
    if "prefix_queries" not in told or "prefix_hits" not in told:
        return 0.0
    asked = float(told["prefix_queries"].value.sum())
    return float(told["prefix_hits"].value.sum()) / asked if asked > 0 else 0.0


def _gauge(name: str, value: float | None, unit: str = "requests") -> list[EvidenceItem]:
    return [] if value is None else [count(name, value, unit=unit, scope="capture")]


def _percent(name: str, share: float | None) -> list[EvidenceItem]:
    return [] if share is None else [count(name, 100 * share, unit="%", scope="capture")]
