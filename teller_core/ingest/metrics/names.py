"""What the series of serving engines, routers and exporters mean, by name: one word for one thing, in one unit.

Names are compared with ``:`` as ``_`` and without ``_total``: monitoring systems rewrite them so. Sources: the documented
metrics of vLLM (V0 and V1), SGLang, TGI, Triton with TensorRT-LLM, llama.cpp, Dynamo, DCGM exporter and node exporter, as
of November 2026. Two names deserve care: vLLM's ``time_per_output_token_seconds`` was, until it was renamed
``inter_token_latency_seconds``, the time between two tokens and no mean of a request; SGLang's ``token_usage`` is its KV
cache in use, from 0 to 1.
"""

from collections.abc import Mapping
from typing import NamedTuple

GAUGE, COUNTER, BUCKET = "gauge", "counter", "bucket"


class Meaning(NamedTuple):
    """What a series is; ``scale`` makes its value one of the unit that all with this meaning have.

    Requests: running, waiting, finished. KV cache: kv_usage (0 to 1), preemptions, prefix_queries and prefix_hits (tokens),
    prefix_hit_rate (0 to 1). Tokens: prompt_tokens, output_tokens. Times in seconds, as buckets: ttft, itl, tpot, e2e, queue,
    prefill, decode. Devices: xid (number of the last error), throttle_reasons (bits of NVML), power_violation and
    thermal_violation (grow while the clock is held down), ecc_errors, gpu_temperature (Celsius). Machine: cpu_pressure,
    io_pressure (seconds waited). process_start (unix s).
    """

    means: str
    kind: str
    scale: float = 1.0


def _gauges(means: str, *names: str, scale: float = 1.0) -> dict[str, Meaning]:
    return {name: Meaning(means, GAUGE, scale) for name in names}


def _counters(means: str, *names: str, scale: float = 1.0) -> dict[str, Meaning]:
    return {name: Meaning(means, COUNTER, scale) for name in names}


def _buckets(means: str, *names: str, scale: float = 1.0) -> dict[str, Meaning]:
    return {f"{name}_bucket": Meaning(means, BUCKET, scale) for name in names}


MEANINGS: Mapping[str, Meaning] = {
    **_gauges(
        "running",
        "vllm_num_requests_running",
        "sglang_num_running_reqs",
        "tgi_batch_current_size",
        "llamacpp_requests_processing",
        "dynamo_frontend_inflight_requests",
    ),
    **_gauges(
        "waiting",
        "vllm_num_requests_waiting",
        "sglang_num_queue_reqs",
        "tgi_queue_size",
        "llamacpp_requests_deferred",
        "dynamo_frontend_queued_requests",
        "nv_inference_pending_request_count",
    ),
    **_gauges(
        "kv_usage",
        "vllm_kv_cache_usage_perc",
        "vllm_gpu_cache_usage_perc",
        "sglang_token_usage",
        "llamacpp_kv_cache_usage_ratio",
    ),
    **_gauges("prefix_hit_rate", "vllm_gpu_prefix_cache_hit_rate", "sglang_cache_hit_rate"),
    **_gauges("retracted", "sglang_num_retracted_reqs"),
    **_counters("preemptions", "vllm_num_preemptions"),
    **_counters("prefix_queries", "vllm_prefix_cache_queries", "vllm_gpu_prefix_cache_queries"),
    **_counters("prefix_hits", "vllm_prefix_cache_hits", "vllm_gpu_prefix_cache_hits"),
    **_counters("prompt_tokens", "vllm_prompt_tokens", "sglang_prompt_tokens", "llamacpp_prompt_tokens"),
    **_counters("output_tokens", "vllm_generation_tokens", "sglang_generation_tokens", "llamacpp_tokens_predicted"),
    **_counters(
        "finished",
        "vllm_request_success",
        "sglang_num_requests",
        "tgi_request_success",
        "nv_inference_request_success",
        "dynamo_frontend_requests",
    ),
    **_buckets(
        "ttft",
        "vllm_time_to_first_token_seconds",
        "sglang_time_to_first_token_seconds",
        "dynamo_frontend_time_to_first_token_seconds",
    ),
    **_buckets(
        "itl",
        "vllm_inter_token_latency_seconds",
        "vllm_time_per_output_token_seconds",
        "sglang_inter_token_latency_seconds",
        "sglang_time_per_output_token_seconds",
        "dynamo_frontend_inter_token_latency_seconds",
    ),
    **_buckets("tpot", "vllm_request_time_per_output_token_seconds", "tgi_request_mean_time_per_token_duration"),
    **_buckets(
        "e2e",
        "vllm_e2e_request_latency_seconds",
        "sglang_e2e_request_latency_seconds",
        "tgi_request_duration",
        "dynamo_frontend_request_duration_seconds",
    ),
    **_buckets("ttft", "nv_inference_first_response_histogram_ms", scale=1e-3),
    **_buckets("queue", "vllm_request_queue_time_seconds", "sglang_queue_time_seconds", "tgi_request_queue_duration"),
    **_buckets("prefill", "vllm_request_prefill_time_seconds"),
    **_buckets("decode", "vllm_request_decode_time_seconds"),
    **_gauges("xid", "DCGM_FI_DEV_XID_ERRORS"),
    **_gauges("throttle_reasons", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
    **_gauges("gpu_temperature", "DCGM_FI_DEV_GPU_TEMP"),
    **_counters("power_violation", "DCGM_FI_DEV_POWER_VIOLATION"),
    **_counters("thermal_violation", "DCGM_FI_DEV_THERMAL_VIOLATION"),
    **_counters("ecc_errors", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_VOL"),
    **_counters("cpu_pressure", "node_pressure_cpu_waiting_seconds"),
    **_counters("io_pressure", "node_pressure_io_waiting_seconds"),
    **_gauges("process_start", "process_start_time_seconds"),
}
BY_LABEL: Mapping[str, tuple[str, Mapping[str, Meaning]]] = {
    "nv_trt_llm_request_metrics": (
        "request_type",
        {"waiting": Meaning("waiting", GAUGE), "active": Meaning("running", GAUGE)},
    ),
    "nv_trt_llm_kv_cache_block_metrics": ("kv_cache_block_type", {"fraction": Meaning("kv_usage", GAUGE)}),
}
"""Names under which several things stand, told apart by a label."""
ENGINES = (
    ("vllm", "vllm_"),
    ("sglang", "sglang_"),
    ("tgi", "tgi_"),
    ("triton", "nv_trt_llm_"),
    ("llama.cpp", "llamacpp_"),
)
KNOWN_PREFIXES = (
    "vllm",
    "sglang",
    "tgi_",
    "nv_",
    "llamacpp",
    "dynamo",
    "DCGM_",
    "node_",
    "process_",
    "python_",
    "http_",
)


def meaning_of(name: str, labels: Mapping[str, str]) -> Meaning | None:
    """What the series ``name`` with these labels is, None where nobody knows."""
    plain = name.replace(":", "_")
    if plain in BY_LABEL:
        label, kinds = BY_LABEL[plain]
        return kinds.get(labels.get(label, ""))
    return MEANINGS.get(plain) or MEANINGS.get(plain.removesuffix("_total"))


def engine_of(name: str) -> str:
    """The engine that exposes a series of this name, empty where none is known to."""
    plain = name.replace(":", "_")
    return next((engine for engine, prefix in ENGINES if plain.startswith(prefix)), "")
