"""From what vLLM counted to the rows that are kept: numbers as vLLM has them, ids and reasons, and no other text.

``P`` begins a file; ``S`` is a step, ``F`` a finished request, ``M`` names fields that this vLLM does not have. ``t`` is
when a row was made, in Unix ns. vLLM's own times are float seconds and stay so: ``at`` is when the API server got the step's
output, ``e2e`` and ``first`` count on its clock from a request's arrival, the others on the engine's.
"""

import os
import sys
from operator import attrgetter

SCHEDULER = {
    "running": "num_running_reqs",
    "waiting": "num_waiting_reqs",
    "deferred": "num_skipped_waiting_reqs",
    "kv": "kv_cache_usage",
}
PREFIX = {"queries": "queries", "hits": "hits"}
DRAFTS = {"drafts": "num_drafts", "drafted": "num_draft_tokens", "accepted": "num_accepted_tokens"}
DETAILS = {
    "step": "iteration_index",
    "context": "num_ctx_requests",
    "context_tokens": "num_ctx_tokens",
    "generation": "num_generation_requests",
    "generation_tokens": "num_generation_tokens",
    "elapsed_ms": "elapsed_ms",
    "dummy": "is_dummy",
}
ITERATION = {
    "at": "iteration_timestamp",
    "output": "num_generation_tokens",
    "preempted": "num_preempted_reqs",
    "first": "time_to_first_tokens_iter",
}
PROMPT = {"prompt": "total", "computed": "computed", "cached": "local_cache_hit", "remote": "external_kv_transfer"}
FINISHED = {
    "rid": "request_id",
    "e2e": "e2e_latency",
    "queued": "queued_time",
    "prefill": "prefill_time",
    "decode": "decode_time",
    "inference": "inference_time",
    "prompt": "num_prompt_tokens",
    "output": "num_generation_tokens",
    "cached": "num_cached_tokens",
    "preempted": "num_preemptions",
}
SETTINGS = (
    ("scheduler_config", "max_num_seqs"),
    ("scheduler_config", "max_num_batched_tokens"),
    ("model_config", "max_model_len"),
    ("parallel_config", "tensor_parallel_size"),
    ("parallel_config", "data_parallel_size"),
    ("cache_config", "enable_prefix_caching"),
    ("observability_config", "enable_logging_iteration_details"),
)


def head(config, tested):
    """What a file begins with: who writes it, for which vLLM and how it was set up."""
    version = str(getattr(sys.modules.get("vllm"), "__version__", "unknown"))
    settings = {name: getattr(getattr(config, part, None), name, None) for part, name in SETTINGS}
    return {
        "k": "P",
        "name": "engine_stats",
        "pid": os.getpid(),
        "engine": "vllm",
        "version": version[:32],
        "tested": ".".join(version.split(".")[:2]) in tested,
        "settings": {name: value for name, value in settings.items() if isinstance(value, (int, bool))},
    }


class Rows:
    """Makes rows, and finds out once for each kind of thing which of its fields this vLLM has."""

    def __init__(self):
        self.fields = {}
        self.missing = []
        """Names of fields that were looked for in vain, since the list was last emptied."""

    def step(self, scheduler, iteration, engine, now):
        """What the scheduler had, what came out, and, where vLLM was asked for them, the step's own counts."""
        row = {"k": "S", "t": now, "e": engine}
        if iteration is not None:
            self._take(row, iteration, ITERATION)
            self._take(row, getattr(iteration, "prompt_token_stats", None), PROMPT)
            gaps = getattr(iteration, "inter_token_latencies_iter", None)
            if gaps is not None:
                row["gaps"] = len(gaps)
                if gaps:
                    row["gap_max"] = max(gaps)
        if scheduler is not None:
            self._take(row, scheduler, SCHEDULER)
            self._take(row, getattr(scheduler, "prefix_cache_stats", None), PREFIX)
            self._take(row, getattr(scheduler, "spec_decoding_stats", None), DRAFTS)
            self._take(row, getattr(scheduler, "iteration_details", None), DETAILS)
        return row

    def finished(self, iteration, engine, now):
        """A row for each request that the step finished."""
        for request in getattr(iteration, "finished_requests", None) or ():
            row = {"k": "F", "t": now, "e": engine, "at": getattr(iteration, "iteration_timestamp", None)}
            self._take(row, request, FINISHED)
            row["reason"] = str(getattr(request, "finish_reason", ""))[:32]
            yield row

    def absent(self, now):
        """The row that names what was looked for in vain."""
        names, self.missing = self.missing, []
        return {"k": "M", "t": now, "missing": names}

    def _take(self, row, thing, wanted):
        if thing is None:
            return
        kind = type(thing)
        known = self.fields.get(kind)
        if known is None:
            known = self.fields[kind] = self._look(thing, wanted)
        keys, get = known
        if keys:
            row.update(zip(keys, get(thing)))  # noqa: B905  # Python 3.9 has no strict

    def _look(self, thing, wanted):
        there = [(key, name) for key, name in wanted.items() if hasattr(thing, name)]
        self.missing += [type(thing).__name__ + "." + name for name in wanted.values() if not hasattr(thing, name)]
        if not there:
            return (), None
        if len(there) == 1:  # attrgetter of one name gives no tuple
            there *= 2
        return tuple(key for key, _ in there), attrgetter(*(name for _, name in there))
