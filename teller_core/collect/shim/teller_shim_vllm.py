"""What vLLM decides and runs. Tested on vLLM 0.32 (V1 engine)."""

from teller_shim_imports import known_version, when_imported
from teller_shim_wrap import record_call

TESTED = ("0.32",)


def install():
    """Record every ``Scheduler.schedule`` and every ``Worker.execute_model``."""
    when_imported("vllm.v1.core.sched.scheduler", _scheduler)
    when_imported("vllm.v1.worker.gpu_worker", _worker)


def _scheduler(module):
    if known_version("vllm", TESTED):
        record_call(module.Scheduler, "schedule", "vllm.schedule", _decision)


def _worker(module):
    if known_version("vllm", TESTED):
        record_call(module.Worker, "execute_model", "vllm.execute_model", _execution)


def _decision(args, kwargs, output):
    new = output.scheduled_new_reqs
    again = output.scheduled_cached_reqs
    computed = {request.req_id: request.num_computed_tokens for request in new}
    computed.update(zip(again.req_ids, again.num_computed_tokens))  # noqa: B905  # Python 3.9 has no strict
    return {
        "tokens": dict(output.num_scheduled_tokens),
        "preempted": list(output.preempted_req_ids or ()),
        "finished": list(output.finished_req_ids),
        "prompt": {request.req_id: len(request.prompt_token_ids or ()) for request in new},
        "computed": computed,
        "cached": {request.req_id: request.num_computed_tokens for request in new},
        "resumed": list(again.resumed_req_ids),
        "drafted": {request: len(ids) for request, ids in output.scheduled_spec_decode_tokens.items()},
    }


def _execution(args, kwargs, output):
    decision = args[1] if len(args) > 1 else kwargs.get("scheduler_output")
    return {"tokens": dict(decision.num_scheduled_tokens)}
