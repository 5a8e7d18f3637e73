"""What speaks against a look-alike: for each cause, what the records of this request would show had it been that."""

from collections.abc import Callable

from teller_core.data.causes import cause
from teller_core.judge.breakdown import phase_ns
from teller_core.judge.prepare import Case
from teller_core.judge.rules_service import COMPILES
from teller_core.judge.scene import Scene

SMALL = 0.1
"""A share of the charged time that a look-alike may have and still not be the answer."""


def against(scene: Scene, key: str, ns: int) -> list[str]:
    """What speaks against each look-alike of the cause ``key``, which cost ``ns``; silent where nothing was recorded."""
    said: list[str] = []
    for other in cause(key).look_alikes:
        speak = SPEAKS.get(other)
        if speak is not None and (words := speak(scene, ns)):
            said.append(f"{other}: {words}")
    return said


def _collection(scene: Scene, ns: int) -> str | None:
    if not scene.case.capture.pauses.kind:
        return None
    return "no long collection was recorded during it" if scene.holds.collection.sum() < SMALL * ns else None


def _starved(scene: Scene, ns: int) -> str | None:
    if not scene.counted("run_queue_wait_ns"):
        return None
    quiet = scene.holds.starved.sum() < SMALL * ns
    return "its threads waited for a processor no longer than usual" if quiet else None


def _device(scene: Scene, ns: int) -> str | None:
    if not (scene.counted("pressure_io_some_us") or scene.counted("write_bytes")):
        return None
    return "no task waited for storage more than usual" if scene.holds.device.sum() < SMALL * ns else None


def _prompts(scene: Scene, ns: int) -> str | None:
    if not len(scene.holds.step):
        return None
    quiet = scene.holds.prompts.sum() < SMALL * ns
    return "no long prompt of another request ran in the steps" if quiet else None


def _preempted(scene: Scene, ns: int) -> str | None:
    known = any(part.part == "preempted" and part.ns is not None for part in scene.phases)
    return "it was never evicted" if known and not len(scene.life.evicted.start) else None


def _queue(scene: Scene, ns: int) -> str | None:
    known = any(part.part == "queue" and part.ns is not None for part in scene.phases)
    return "it hardly waited for admission" if known and phase_ns(scene.phases, "queue") < SMALL * ns else None


def _compiled(scene: Scene, ns: int) -> str | None:
    lines = scene.case.capture.lines
    if not len(lines.time):
        return None
    return None if any(scene.lines(rule) for rule in COMPILES) else "the log names no compilation"


def _observer(scene: Scene, ns: int) -> str | None:
    if not scene.case.capture.pauses.kind:
        return None
    return "the recorder's own stops are not part of this time" if not scene.during(scene.case.stalls) else None


def _overhead(scene: Scene, ns: int) -> str | None:
    if not scene.holds.judged:
        return None
    return "only some steps are slow; a constant overhead would be in all" if (scene.holds.over == 0).any() else None


def _gateway(scene: Scene, ns: int) -> str | None:
    known = any(part.part == "before_server" and part.ns is not None for part in scene.phases)
    quiet = phase_ns(scene.phases, "before_server") < SMALL * ns
    return "the server had the request right after it was sent" if known and quiet else None


def _straggler(scene: Scene, ns: int) -> str | None:
    nobody = scene.case.once("nobody late", _nobody_late)
    return "no rank came last in a time that the clocks allow to tell" if nobody else None


def _nobody_late(case: Case) -> bool:
    late = case.capture.collectives.late
    return bool(len(late)) and bool((late < 0).all())


def _cold(scene: Scene, ns: int) -> str | None:
    own = scene.life.step
    return "the engine had run many steps before" if len(own) and int(own.min()) > 50 else None


SPEAKS: dict[str, Callable[[Scene, int], str | None]] = {
    "host.gc_pause": _collection,
    "host.cpu_starvation": _starved,
    "host.io_stall": _device,
    "host.observer_overhead": _observer,
    "host.step_overhead": _overhead,
    "scheduler.prefill_interference": _prompts,
    "scheduler.kv_preemption": _preempted,
    "scheduler.queue_saturation": _queue,
    "cuda.jit_compile": _compiled,
    "frontend.gateway_overhead": _gateway,
    "comm.straggler_rank": _straggler,
    "lifecycle.cold_start": _cold,
}
