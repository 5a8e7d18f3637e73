"""Where the durations and events of request spans begin and end, by who made them: one name means several things.

Moments of a request, in their usual order: ``received`` (the front end has it), ``dispatched`` (the front end hands it on),
``queued`` (the engine has it), ``scheduled`` (first chosen to run), ``engine_first`` and ``engine_last`` (its first and last
token exist in the engine), ``first_token`` (its first token left the front end), ``finished`` (the front end is done). What
a caller or a gateway measures lies between ``sent``, ``client_first`` and ``ended``. ``transfer_from`` and
``transfer_until`` are the ends of a transfer of KV between two engines.

Sources, as documented or read in July to November 2026:

- vLLM V1 (``do_tracing`` of its output processor): ``time_to_first_token`` and ``e2e`` count from the arrival at the front
  end on the wall clock; queue, prefill, decode and inference are differences of the engine core's monotonic stamps.
- vLLM V0: one process; ``time_in_queue`` counts from the arrival. It writes no ``time_in_model_prefill``, which tells it.
- SGLang (``convert_to_gen_ai_span_attrs``): all counted in the API server; ``time_in_model_prefill`` runs from the end of
  the dispatch to the first token, so it holds the queue as well, and decode and inference end when the answer does.
- TGI: ``validation_time``, ``queue_time`` and ``inference_time`` follow one another without gaps inside ``total_time``.
- Triton (docs/user_guide/trace.md): events of the top, model and compute spans on the system's clock.
- Datadog's vLLM integration (``vllm.latency.*``): vLLM's own numbers under other names.
- OpenTelemetry's GenAI conventions: times to the first chunk are measured by who makes the span.
"""

import re
from typing import NamedTuple

from teller_core.ingest.decimals import NS_PER_S

FRONT, ENGINE, CALLER = "front_end", "engine", "caller"
"""Clocks. Moments of one clock may be subtracted; the engine's lies at an offset that only bounds are known of."""


class Origin(NamedTuple):
    """A duration: which moments it lies between, on which clock, and its unit in ns (0: a text with a unit of its own)."""

    begin: str
    end: str
    clock: str
    unit: int = NS_PER_S


Origins = dict[str, Origin]
_LATENCY = "gen_ai.latency."
VLLM_V1: Origins = {
    f"{_LATENCY}time_to_first_token": Origin("received", "first_token", FRONT),
    f"{_LATENCY}e2e": Origin("received", "finished", FRONT),
    f"{_LATENCY}time_in_queue": Origin("queued", "scheduled", ENGINE),
    f"{_LATENCY}time_in_model_prefill": Origin("scheduled", "engine_first", ENGINE),
    f"{_LATENCY}time_in_model_decode": Origin("engine_first", "engine_last", ENGINE),
    f"{_LATENCY}time_in_model_inference": Origin("scheduled", "engine_last", ENGINE),
}
VLLM_V0: Origins = {
    **{name: VLLM_V1[name] for name in (f"{_LATENCY}time_to_first_token", f"{_LATENCY}e2e")},
    f"{_LATENCY}time_in_queue": Origin("received", "scheduled", FRONT),
}
SGLANG: Origins = {
    **{
        name: VLLM_V1[name] for name in (f"{_LATENCY}time_to_first_token", f"{_LATENCY}e2e", f"{_LATENCY}time_in_queue")
    },
    f"{_LATENCY}time_in_model_prefill": Origin("dispatched", "first_token", FRONT),
    f"{_LATENCY}time_in_model_decode": Origin("first_token", "finished", FRONT),
    f"{_LATENCY}time_in_model_inference": Origin("dispatched", "finished", FRONT),
}
DATADOG: Origins = {
    "vllm.latency.ttft": Origin("received", "first_token", FRONT),
    "vllm.latency.queue": Origin("queued", "scheduled", ENGINE),
    "vllm.latency.prefill": Origin("scheduled", "engine_first", ENGINE),
    "vllm.latency.decode": Origin("engine_first", "engine_last", ENGINE),
    "vllm.latency.inference": Origin("scheduled", "engine_last", ENGINE),
}
TGI: Origins = {
    "total_time": Origin("received", "finished", FRONT, 0),
    "validation_time": Origin("received", "queued", FRONT, 0),
    "queue_time": Origin("queued", "scheduled", FRONT, 0),
    "inference_time": Origin("scheduled", "finished", FRONT, 0),
}
SEMANTIC: Origins = {
    "gen_ai.server.time_to_first_token": Origin("sent", "client_first", CALLER),
    "gen_ai.client.operation.time_to_first_chunk": Origin("sent", "client_first", CALLER),
    "gen_ai.response.time_to_first_chunk": Origin("sent", "client_first", CALLER),
}
ALONE = (
    "gen_ai.latency.time_in_scheduler",
    "gen_ai.latency.time_in_model_forward",
    "gen_ai.latency.time_in_model_execute",
)
"""Durations in seconds that are sums over steps: they lie between no two moments, and are kept as numbers."""

EVENTS = {
    "api.arrived": "received",
    "api.handoff_to_core": "dispatched",
    "api.first_response_from_core": "first_token",
    "api.departed": "finished",
    "journey.queued": "queued",
    "journey.scheduled": "scheduled",
    "journey.first_token": "engine_first",
    "journey.finished": "engine_last",
    "request_start": "received",
    "queue_start": "queued",
    "compute_start": "scheduled",
    "compute_end": "engine_last",
    "request_end": "finished",
    "first token": "first_token",
}
"""Events of spans (vLLM's journey tracing, Triton) that mark a moment, in lower case. The first of a name counts, but the
last for ``engine_last`` and ``finished``."""

SLICES = {
    "dispatch": ("", "dispatched"),
    "api_server_dispatch": ("", "dispatched"),
    "request_process": ("", "queued"),
    "prefill_bootstrap": ("", "queued"),
    "prefill_waiting": ("queued", "scheduled"),
    "chunked_prefill": ("scheduled", ""),
    "prefill_forward": ("scheduled", "engine_first"),
    "prefill_transfer_kv_cache": ("transfer_from", "transfer_until"),
    "decode_transferred": ("", "transfer_until"),
    "decode_waiting": ("", "scheduled"),
    "decode_loop": ("", "engine_last"),
    "decode_forward": ("", "engine_last"),
    "compute": ("scheduled", "engine_last"),
}
"""Child spans that are a part of a request (SGLang's slices, Triton's compute span): the moments of their begin and end."""
LATEST = frozenset({"engine_last", "finished", "transfer_until"})
"""Moments of which the latest telling counts; of the others the earliest."""

TOKENS = {
    "gen_ai.usage.prompt_tokens": "gen_ai.usage.prompt_tokens",
    "gen_ai.usage.completion_tokens": "gen_ai.usage.completion_tokens",
    "gen_ai.usage.input_tokens": "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens": "gen_ai.usage.output_tokens",
    "gen_ai.usage.cached_tokens": "gen_ai.usage.cached_tokens",
    "gen_ai.usage.cache_read.input_tokens": "gen_ai.usage.cached_tokens",
    "gen_ai.usage.cache_read_input_tokens": "gen_ai.usage.cached_tokens",
    "llm.token_count.prompt": "gen_ai.usage.prompt_tokens",
    "llm.token_count.completion": "gen_ai.usage.completion_tokens",
    "llm.token_count.prompt_details.cache_read": "gen_ai.usage.cached_tokens",
    "llm.usage.prompt_tokens": "gen_ai.usage.prompt_tokens",
    "llm.usage.completion_tokens": "gen_ai.usage.completion_tokens",
    "vllm.usage.prompt_tokens": "gen_ai.usage.prompt_tokens",
    "vllm.usage.completion_tokens": "gen_ai.usage.completion_tokens",
}
"""Counts of tokens under the names of OpenTelemetry, OpenInference and OpenLLMetry, by the name that is kept."""

IDS = (
    "gen_ai.request.id",
    "gen_ai.response.id",
    "rid",
    "triton.request_id",
    "request_id",
    "x_request_id",
    "guid:x-request-id",
    "http.request.header.x-request-id",
    "http.request.header.x_request_id",
)
"""Attributes that name a request, the engine's own first."""

LLM_PATH = re.compile(
    r"(?:/v\d+)?/(?:chat/completions|completions|responses|messages|embeddings)"
    r"|/(?:generate|generate_stream|invocations)|/v2/models/[^/]{1,200}(?:/versions/\d{1,9})?/(?:infer|generate|generate_stream)"
)
"""Paths under which services take requests for a model."""
PATHS = ("url.path", "http.target", "http.route", "url.full", "http.url", "uri")
"""Attributes that hold a path or a whole URL."""
GATEWAYS = (
    "envoy",
    "istio",
    "gateway",
    "router",
    "litellm",
    "proxy",
    "kong",
    "nginx",
    "traefik",
    "haproxy",
    "apisix",
    "higress",
)
"""Words in the names of services and libraries that pass requests on."""
