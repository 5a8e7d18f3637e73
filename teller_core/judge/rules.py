"""One small pure function a cause: what this request's records say for it, or nothing."""

from collections.abc import Callable, Mapping

from teller_core.judge import (
    rules_absence,
    rules_comm,
    rules_host,
    rules_logs,
    rules_metrics,
    rules_scheduler,
    rules_service,
)
from teller_core.judge.evidence import Clue
from teller_core.judge.scene import Scene

Rule = Callable[[Scene], Clue | None]

RULES: Mapping[str, Rule] = {
    "scheduler.kv_preemption": rules_metrics.kv_preemption,
    "scheduler.queue_saturation": rules_metrics.queue_saturation,
    "scheduler.prefill_interference": rules_scheduler.prefill_interference,
    "scheduler.prefix_cache_miss": rules_metrics.prefix_cache_miss,
    "host.gc_pause": rules_host.gc_pause,
    "host.cpu_starvation": rules_host.cpu_starvation,
    "host.io_stall": rules_host.io_stall,
    "host.slow_operator": rules_host.slow_operator,
    "host.interpreter_lock": rules_host.interpreter_lock,
    "host.observer_overhead": rules_host.observer_overhead,
    "host.step_overhead": rules_host.step_overhead,
    "cuda.jit_compile": rules_service.jit_compile,
    "cuda.graph_miss": rules_service.graph_miss,
    "comm.degraded_link": rules_comm.degraded_link,
    "comm.straggler_rank": rules_comm.straggler_rank,
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
        "host.slow_operator",
        "host.step_overhead",
        "comm.degraded_link",
        "comm.straggler_rank",
        "comm.fabric_fallback",
    }
)
"""Causes whose rules have nothing to say of a request that no known step served or held up."""
