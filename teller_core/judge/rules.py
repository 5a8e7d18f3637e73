"""One small pure function a cause: what this request's records say for it, or nothing."""

from collections.abc import Callable, Mapping

from teller_core.judge import (
    rules_absence,
    rules_anatomy,
    rules_asked,
    rules_asleep,
    rules_comm,
    rules_device,
    rules_experts,
    rules_front,
    rules_host,
    rules_logs,
    rules_metrics,
    rules_neighbors,
    rules_pace,
    rules_replicas,
    rules_scheduler,
    rules_service,
)
from teller_core.judge.evidence import Clue
from teller_core.judge.scene import Scene

Rule = Callable[[Scene], Clue | None]


def graph_miss(scene: Scene) -> Clue | None:
    """By what a profile shows of its steps, else by what the log says."""
    return rules_device.graph_miss(scene) or rules_service.graph_miss(scene)


def slow_operator(scene: Scene) -> Clue | None:
    """By suspicious spans, unless slow profiled steps agree on another way of being slow; else by those."""
    found = None if rules_anatomy.other_way(scene, "operator") else rules_host.slow_operator(scene)
    return found or rules_anatomy.slow_operator(scene)


def memory_bandwidth(scene: Scene) -> Clue | None:
    """By its own profiled steps; else by others that were slow, or because nothing excludes it: by what cost more."""
    ways = (rules_anatomy.memory_bandwidth, rules_neighbors.not_excluded)
    found = [clue for clue in (way(scene) for way in ways) if clue is not None]
    return rules_neighbors.memory_bandwidth(scene) or max(found, key=lambda clue: clue.ns, default=None)


def step_overhead(scene: Scene) -> Clue | None:
    """By a device that stands still; else by what took more: gaps between steps, a silence in them, or the same in all."""
    device = rules_host.device_idle(scene)
    ways = (rules_host.between_steps, rules_anatomy.step_overhead, rules_pace.step_overhead)
    found = [clue for clue in (way(scene) for way in ways) if clue is not None]
    return device or max(found, key=lambda clue: clue.ns, default=None)


def observer_overhead(scene: Scene) -> Clue | None:
    """Our own recorder, else somebody's tracer."""
    found = [clue for clue in (rules_host.observer_overhead(scene), rules_anatomy.observer_overhead(scene)) if clue]
    return max(found, key=lambda clue: clue.ns, default=None)


def degraded_link(scene: Scene) -> Clue | None:
    """By collectives that took longer than in calm steps, or by what slow profiled steps have more: what cost more."""
    found = [clue for clue in (rules_comm.degraded_link(scene), rules_anatomy.degraded_link(scene)) if clue]
    return max(found, key=lambda clue: clue.ns, default=None)


RULES: Mapping[str, Rule] = {
    "scheduler.kv_preemption": rules_metrics.kv_preemption,
    "scheduler.queue_saturation": rules_metrics.queue_saturation,
    "scheduler.prefill_interference": rules_scheduler.prefill_interference,
    "scheduler.prefix_cache_miss": rules_metrics.prefix_cache_miss,
    "scheduler.dp_imbalance": rules_replicas.dp_imbalance,
    "scheduler.lora_swap": rules_asked.lora_swap,
    "scheduler.grammar": rules_asked.grammar,
    "scheduler.spec_decode": rules_asked.spec_decode,
    "host.gc_pause": rules_host.gc_pause,
    "host.cpu_starvation": rules_host.cpu_starvation,
    "host.io_stall": rules_host.io_stall,
    "host.blocking_call": rules_asleep.blocking_call,
    "host.memory_bandwidth": memory_bandwidth,
    "host.slow_operator": slow_operator,
    "host.interpreter_lock": rules_asleep.interpreter_lock,
    "host.observer_overhead": observer_overhead,
    "host.step_overhead": step_overhead,
    "cuda.jit_compile": rules_service.jit_compile,
    "cuda.graph_miss": graph_miss,
    "cuda.host_device_sync": rules_device.host_device_sync,
    "cuda.pageable_copy": rules_device.pageable_copy,
    "cuda.allocator": rules_device.allocator,
    "gpu.wrong_kernel": rules_device.wrong_kernel,
    "gpu.colocated_contention": rules_device.colocated_contention,
    "comm.degraded_link": degraded_link,
    "comm.straggler_rank": rules_comm.straggler_rank,
    "comm.moe_imbalance": rules_experts.moe_imbalance,
    "comm.fabric_fallback": rules_comm.fabric_fallback,
    "comm.rank_missing": rules_absence.rank_missing,
    "comm.collective_hang": rules_logs.collective_hang,
    "frontend.input_processing": rules_front.input_processing,
    "frontend.detok_stream": rules_front.detok_stream,
    "frontend.gateway_overhead": rules_front.gateway_overhead,
    "comm.kv_transfer": rules_metrics.kv_transfer,
    "gpu.hw_fault": rules_logs.hw_fault,
    "gpu.clock_throttle": rules_metrics.clock_throttle,
    "lifecycle.cold_start": rules_service.cold_start,
}
"""By the cause that the rule looks for; ``host.slow_operator`` answers ``gpu.wrong_kernel`` where the operator is a kernel."""

OF_STEPS = frozenset(
    {
        "scheduler.prefill_interference",
        "host.cpu_starvation",
        "host.io_stall",
        "host.blocking_call",
        "host.memory_bandwidth",
        "host.slow_operator",
        "host.step_overhead",
        "comm.degraded_link",
        "comm.straggler_rank",
        "comm.moe_imbalance",
        "comm.fabric_fallback",
        "scheduler.lora_swap",
        "cuda.host_device_sync",
        "cuda.pageable_copy",
        "cuda.allocator",
        "gpu.wrong_kernel",
        "gpu.colocated_contention",
    }
)
"""Causes whose rules have nothing to say of a request that no known step served or held up."""

SAYS_WHY: Mapping[str, tuple[str, ...]] = {
    "scheduler.dp_imbalance": ("scheduler.queue_saturation",),
    "scheduler.kv_preemption": ("scheduler.queue_saturation",),
    # What compiles a grammar takes processors of the threads that compute, and text is made of tokens in turns with them.
    "scheduler.grammar": ("scheduler.queue_saturation", "host.cpu_starvation", "host.step_overhead"),
    "scheduler.lora_swap": ("cuda.pageable_copy", "host.step_overhead"),
    "host.memory_bandwidth": ("host.slow_operator",),
    "cuda.pageable_copy": ("cuda.host_device_sync", "host.step_overhead"),
    "cuda.allocator": ("cuda.host_device_sync", "host.step_overhead"),
    "cuda.host_device_sync": ("host.step_overhead",),
    "cuda.graph_miss": ("host.step_overhead",),
    "gpu.colocated_contention": ("gpu.wrong_kernel",),
    "comm.moe_imbalance": ("comm.straggler_rank",),
    "comm.straggler_rank": ("host.interpreter_lock", "host.cpu_starvation", "comm.degraded_link"),
    "host.interpreter_lock": ("comm.degraded_link",),
    "frontend.detok_stream": ("host.cpu_starvation", "host.step_overhead"),
    "frontend.input_processing": ("host.cpu_starvation",),
    "gpu.hw_fault": ("comm.collective_hang",),
}
"""A cause that says why others came about: where it explains as much, these are not told beside it."""
AS_MUCH = 0.5
"""Of what the other one cost."""
