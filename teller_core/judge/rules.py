"""One small pure function a cause: what this request's records say for it, or nothing."""

from collections.abc import Callable, Mapping

from teller_core.judge import (
    rules_absence,
    rules_asked,
    rules_comm,
    rules_device,
    rules_experts,
    rules_host,
    rules_logs,
    rules_metrics,
    rules_neighbors,
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
    "host.blocking_call": rules_neighbors.blocking_call,
    "host.memory_bandwidth": rules_neighbors.memory_bandwidth,
    "host.slow_operator": rules_host.slow_operator,
    "host.interpreter_lock": rules_host.interpreter_lock,
    "host.observer_overhead": rules_host.observer_overhead,
    "host.step_overhead": rules_host.step_overhead,
    "cuda.jit_compile": rules_service.jit_compile,
    "cuda.graph_miss": graph_miss,
    "cuda.host_device_sync": rules_device.host_device_sync,
    "cuda.pageable_copy": rules_device.pageable_copy,
    "cuda.allocator": rules_device.allocator,
    "gpu.wrong_kernel": rules_device.wrong_kernel,
    "gpu.colocated_contention": rules_device.colocated_contention,
    "comm.degraded_link": rules_comm.degraded_link,
    "comm.straggler_rank": rules_comm.straggler_rank,
    "comm.moe_imbalance": rules_experts.moe_imbalance,
    "comm.fabric_fallback": rules_comm.fabric_fallback,
    "comm.rank_missing": rules_absence.rank_missing,
    "comm.collective_hang": rules_logs.collective_hang,
    "frontend.input_processing": rules_service.input_processing,
    "frontend.detok_stream": rules_service.detok_stream,
    "frontend.gateway_overhead": rules_service.gateway_overhead,
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
    "scheduler.grammar": ("scheduler.queue_saturation", "host.step_overhead"),
    "scheduler.lora_swap": ("cuda.pageable_copy", "host.step_overhead"),
    "host.memory_bandwidth": ("host.slow_operator",),
    "cuda.pageable_copy": ("cuda.host_device_sync", "host.step_overhead"),
    "cuda.allocator": ("cuda.host_device_sync", "host.step_overhead"),
    "cuda.host_device_sync": ("host.step_overhead",),
    "cuda.graph_miss": ("host.step_overhead",),
    "gpu.colocated_contention": ("gpu.wrong_kernel",),
    "comm.moe_imbalance": ("comm.straggler_rank",),
    "gpu.hw_fault": ("comm.collective_hang",),
}
"""A cause that says why others came about: where it explains as much, these are not told beside it."""
AS_MUCH = 0.5
"""Of what the other one cost."""
