"""What transformers serves: continuous batching and its OpenAI-compatible server. Tested on transformers 5.24.

A batch is called by its count since the process began. With asynchronous batching two batches are under way, each with its own
list of requests, by which the outcome finds its batch.
"""

import threading

import teller_shim_loop as loop
from teller_shim_events import instant
from teller_shim_imports import known_version, when_imported
from teller_shim_steps import ACTIVE, begin_step, end_step
from teller_shim_wrap import after_await, before_call, record_call

TESTED = ("5.24",)
_step = threading.local()
_away = set()
"""Requests that were evicted and have not come back yet."""
UNDER_WAY = 4


def install():
    """Record requests as they arrive, every prepared batch with its tokens, its outcome, evictions and what reaches clients."""
    when_imported("transformers.generation.continuous_batching.continuous_api", _batching)
    when_imported("transformers.generation.continuous_batching.offloading_manager", _offloading)
    when_imported("transformers.cli.serving.utils", _streaming)
    for kind, handler in (("completion", "CompletionHandler"), ("chat_completion", "ChatCompletionHandler")):
        when_imported("transformers.cli.serving." + kind, lambda module, name=handler: _frontend(module, name))


def _batching(module):
    if not known_version("transformers", TESTED):
        return
    record_call(module.ContinuousBatchingManager, "add_request", "cb.add_request", _added)
    record_call(module.ContinuousBatchingManager, "_generation_step", "cb.step", _number, _begin)
    record_call(module.ContinuousBatchProcessor, "prepare_next_batch", "cb.prepare", _batch)
    record_call(module.ContinuousBatchProcessor, "update_batch", "cb.update", _updated, _before_update)


def _offloading(module):
    if known_version("transformers", TESTED):
        record_call(module.OffloadingManager, "offload_requests", "cb.offload", _evicted, _active)


def _streaming(module):
    if known_version("transformers", TESTED):
        before_call(module.CBStreamer, "put", _first_token)
        before_call(module.CBStreamer, "end", _end)
        before_call(module.CBStreamer, "cancel", _cancel)
        after_await(module.CBGenerateManager, "generate_non_streaming", _answered)


def _frontend(module, handler):
    if known_version("transformers", TESTED):
        before_call(getattr(module, handler), "handle_request", _received)


def _added(args, kwargs, result):
    prompt = args[1] if len(args) > 1 else kwargs["input_ids"]
    return {"rid": result, "prompt": len(prompt), "max_new": kwargs.get("max_new_tokens")}


def _requests(processor):
    """The list of the batch whose turn it is, in both modes."""
    batches = processor.inputs_and_outputs
    if processor.use_async_batching:
        batches = batches.io_pairs[batches.current_pair].host_io
    return batches.requests_in_batch


def _batch(args, kwargs, ready):
    """The requests of a batch: new tokens (1 for a decode), tokens already in the cache, and who gets an output token."""
    if not ready:
        return {"reqs": [], "ok": False}
    _step.number = getattr(_step, "number", -1) + 1
    processor = args[0]
    requests = _requests(processor)
    under_way = _step.__dict__.setdefault("under_way", {})
    under_way[id(requests)] = _step.number
    if len(under_way) > UNDER_WAY:
        under_way.pop(next(iter(under_way)))
    batch = [(future.state, future) for future in requests]
    return {
        "reqs": [state.request_id for state, _ in batch],
        "ok": True,
        "n": _step.number,
        "tokens": {state.request_id: future.query_length for state, future in batch},
        "computed": {state.request_id: state.position_offset - future.query_length for state, future in batch},
        "output": [state.request_id for state, future in batch if future.has_new_token],
        "running": len(processor.scheduler.active_requests),
        "waiting": len(processor.scheduler.waiting_requests),
        "resumed": _back(state.request_id for state, _ in batch),
    }


def _back(names):
    back = [name for name in names if name in _away] if _away else []
    _away.difference_update(back)
    return back


def _begin(args, kwargs):
    if ACTIVE:
        begin_step(getattr(_step, "number", None))


def _number(args, kwargs, result, _):
    if ACTIVE:
        end_step()
    return {"n": getattr(_step, "number", -1)}


def _before_update(args, kwargs):
    """Each request of the batch, how many tokens of the answer it has, and whether its outcome is unwanted."""
    requests = _requests(args[0])
    number = _step.__dict__.setdefault("under_way", {}).pop(id(requests), None)
    return number, [
        (future, len(future.state.generated_tokens), future.state.status.name in ("FINISHED", "PENDING"))
        for future in requests
    ]


def _updated(args, kwargs, result, before):
    if before is None:
        return {}
    number, requests = before
    got, done, unused = {}, {}, {}
    for future, had, unwanted in requests:
        state = future.state
        got[state.request_id] = len(state.generated_tokens) - had
        if unwanted:
            unused[state.request_id] = future.query_length
        elif state.status.name == "FINISHED":
            ends = state.generated_tokens[-1:] and state.generated_tokens[-1] in state._eos_token_ids
            done[state.request_id] = "stop" if ends else "length"
    said = {"n": number, "got": got, "done": done, "unused": unused}
    return {key: value for key, value in said.items() if key in ("n", "got") or value}


def _active(args, kwargs):
    return dict(args[0].scheduler.active_requests)


def _evicted(args, kwargs, result, before):
    """Those that were active and wait now: with ``computed`` tokens in the cache, which are lost or were moved away."""
    scheduler = args[0].scheduler
    gone = [
        name for name in before or () if name in scheduler.waiting_requests and name not in scheduler.active_requests
    ]
    for name in gone:
        instant("request.preempted", rid=name, computed=before[name].position_offset)
    _away.update(gone)
    return {"evicted": len(gone)}


def _received(args, kwargs):
    loop.watch()
    instant("request.received", rid=args[2] if len(args) > 2 else kwargs["request_id"])


def _first_token(args, kwargs):
    streamer, output = args
    if streamer.total_tokens == 0 and output.generated_tokens:
        instant("request.first_token", rid=streamer._request_id)


def _end(args, kwargs):
    instant("request.finished", rid=args[0]._request_id, tokens=args[0].total_tokens)


def _answered(args, kwargs, result):
    instant("request.finished", rid=kwargs["request_id"], tokens=len(result[2]))


def _cancel(args, kwargs):
    instant("request.aborted", rid=args[0]._request_id, tokens=args[0].total_tokens)
