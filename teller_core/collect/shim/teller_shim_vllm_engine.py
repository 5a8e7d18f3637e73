"""vLLM's engine: what the scheduler decides, what came out of each step, who was evicted, and what workers run.

A step is called by the scheduler's own count, ``current_step``. The scheduler's output carries it to the workers as an
attribute that vLLM does not read.
"""

import threading
from functools import partial

from teller_shim_events import instant
from teller_shim_steps import ACTIVE, begin_step, end_step
from teller_shim_wrap import after_call, before_call, record_call

_STEP = "_teller_step"
_running = threading.local()
"""The step that this worker's thread computes: ``sample_tokens`` is not told."""
_dropping = set()
"""Requests evicted in a way that throws away the tokens they had in flight."""


def hook_scheduler(module):
    """Record requests coming, every decision, every step's outcome, evictions and requests that are ended from outside."""
    owner = module.Scheduler
    before_call(owner, "add_request", _queued)
    record_call(owner, "schedule", "vllm.schedule", _decision)
    record_call(owner, "update_from_output", "vllm.update", _outcome, _unused)
    before_call(owner, "_preempt_request", _preempted)
    after_call(owner, "finish_requests", _ended)


def hook_worker(module):
    """Record every ``execute_model`` and the sampling that belongs to it, which is the next on its thread: it need not say so."""
    begin, begin_sampling, sampled = (_begin, _begin_sampling, _sampled) if ACTIVE else (None, None, None)
    record_call(module.Worker, "execute_model", "vllm.execute_model", _executed, begin)
    record_call(module.Worker, "sample_tokens", "vllm.sample_tokens", sampled, begin_sampling)


def hook_profiler(module):
    """Record how long vLLM takes to start and to stop its own profiler: it computes nothing meanwhile."""
    record_call(module.WorkerProfiler, "_call_start", "vllm.profiler_start")
    record_call(module.WorkerProfiler, "_call_stop", "vllm.profiler_stop")


def _queued(args, kwargs):
    request = args[1] if len(args) > 1 else kwargs["request"]
    known = request.request_id in args[0].requests
    if not known:  # else more input for a session
        instant("request.queued", rid=request.request_id, prompt=request.num_prompt_tokens, max_new=request.max_tokens)


def _decision(args, kwargs, output):
    """Takes what changes; the rest is made of it when it is written: the scheduler's thread has more urgent work."""
    scheduler, new, again = args[0], output.scheduled_new_reqs, output.scheduled_cached_reqs
    setattr(output, _STEP, scheduler.current_step)
    drafts = output.scheduled_spec_decode_tokens
    return partial(
        _decided,
        scheduler.current_step,
        dict(output.num_scheduled_tokens),
        (*scheduler.get_request_counts(), scheduler.get_kv_cache_usage()),
        (output.preempted_req_ids, output.finished_req_ids, again),
        _admitted(scheduler.requests, new) if new else {},
        {request: len(ids) for request, ids in drafts.items()} if drafts else None,
    )


def _decided(step, tokens, state, names, said, drafted):  # noqa: PLR0917  # called by _decision's partial alone
    running, waiting, usage = state
    preempted, finished, again = names
    known = dict(zip(again.req_ids, again.num_computed_tokens))  # noqa: B905  # Python 3.9 has no strict
    known.update(said.pop("first", ()))
    row = {
        "n": step,
        "tokens": tokens,
        "running": running,
        "waiting": waiting,
        "kv": round(usage, 4),
        "computed": [known.get(name, -1) for name in tokens],  # in their order: names are most of a line
    }
    if preempted:
        row["preempted"] = list(preempted)
    if finished:
        row["finished"] = list(finished)
    if again.resumed_req_ids:
        row["resumed"] = list(again.resumed_req_ids)
    if drafted:
        row["drafted"] = drafted
    for name, value in said.items():
        if value:
            row[name] = [*row.get(name, ()), *value] if name == "resumed" else value
    return row


def _admitted(requests, new):
    """Prompt and prefix-cache hits, local and remote, of requests that run for the first time."""
    said = {"first": {}, "prompt": {}, "cached": {}, "remote": {}, "resumed": []}
    for one in new:
        request = requests[one.req_id]
        said["first"][one.req_id] = one.num_computed_tokens
        if request.num_preemptions:  # vLLM's second model runner takes those that come back for new ones
            said["resumed"].append(one.req_id)
            continue
        said["prompt"][one.req_id] = request.num_prompt_tokens
        stats = request.prefill_stats
        if stats is not None:
            said["cached"][one.req_id] = stats.num_local_cached_tokens
            if stats.num_external_cached_tokens:
                said["remote"][one.req_id] = stats.num_external_cached_tokens
    return said


def _unused(args, kwargs):
    """What must be looked at before the outcome is taken in: work for requests that are gone, and all that was sampled."""
    scheduler, decision, output = _arguments(args, kwargs)
    requests, tokens = scheduler.requests, decision.num_scheduled_tokens
    drafts = decision.scheduled_spec_decode_tokens
    if not (drafts or _dropping or scheduler.connector) and tokens.keys() <= requests.keys():
        return None
    unused = {request: tokens[request] for request in tokens.keys() - requests.keys()}
    if scheduler.connector is not None:  # a request that has ended may wait here until its KV has been sent
        unused.update((name, n) for name, n in tokens.items() if name in requests and requests[name].is_finished())
    for name in list(_dropping):
        request = requests.get(name)
        if request is None or not request.num_stale_output_tokens:
            _dropping.discard(name)
        elif name in tokens:
            unused[name] = tokens[name]
    sampled = {}
    if drafts and output.sampled_token_ids:
        place = output.req_id_to_index
        sampled = {name: len(output.sampled_token_ids[place[name]]) for name in drafts}
    return unused, sampled


def _outcome(args, kwargs, result, before):
    _, decision, _ = _arguments(args, kwargs)
    unused, sampled = before or ({}, {})
    got, done = {}, {}
    for of_client in result.values():
        for one in of_client.outputs:
            got[one.request_id] = len(one.new_token_ids)
            if one.finish_reason is not None:
                done[one.request_id] = one.finish_reason.name.lower()
    said = {"n": getattr(decision, _STEP, None), "got": got}
    if not (done or unused or sampled):
        return said
    drafted = decision.scheduled_spec_decode_tokens
    rejected = {name: len(drafted[name]) - max(0, n - 1) for name, n in sampled.items() if n and name not in unused}
    surplus = {name: n - got.get(name, 0) for name, n in sampled.items() if name not in unused}
    for key, value in (("done", done), ("unused", unused), ("rejected", rejected), ("surplus", surplus)):
        told = {name: each for name, each in value.items() if each}
        if told:
            said[key] = told
    return said


def _arguments(args, kwargs):
    """The scheduler, its decision and what the model made of it."""
    if len(args) == 3:
        return args
    named = ("scheduler_output", "model_runner_output")
    rest = list(args[1:]) + [kwargs[name] for name in named[len(args) - 1 :]]
    return args[0], rest[0], rest[1]


def _preempted(args, kwargs):
    request = args[1] if len(args) > 1 else kwargs["request"]
    drop = kwargs.get("drop_stale_output", args[3] if len(args) > 3 else False)
    if drop:
        _dropping.add(request.request_id)
    instant(
        "request.preempted",
        rid=request.request_id,
        computed=request.num_computed_tokens,
        in_flight=request.num_in_flight_tokens,
    )


def _ended(args, kwargs, ended):
    status = kwargs.get("finished_status", args[2] if len(args) > 2 else None)
    for request in ended:
        instant("request.ended", rid=request.request_id, reason=getattr(status, "name", ""))


def _begin(args, kwargs):
    begin_step(getattr(args[1] if len(args) > 1 else kwargs["scheduler_output"], _STEP, None))


def _begin_sampling(args, kwargs):
    begin_step(getattr(_running, "step", None))


def _executed(args, kwargs, output, _=None):
    decision = args[1] if len(args) > 1 else kwargs["scheduler_output"]
    step = getattr(decision, _STEP, None)
    if ACTIVE:
        end_step()
        _running.step = step
    return {"n": step, "tokens": dict(decision.num_scheduled_tokens)}


def _sampled(args, kwargs, output, _):
    end_step()
    return {"n": getattr(_running, "step", None)}
