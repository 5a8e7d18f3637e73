"""What transformers serves: continuous batching and its OpenAI-compatible server. Tested on transformers 5.24."""

import threading

from teller_shim_events import instant
from teller_shim_imports import known_version, when_imported
from teller_shim_wrap import before_call, record_call

TESTED = ("5.24",)
_step = threading.local()


def install():
    """Record requests as they arrive, every prepared batch with its tokens, every step and what reaches the client."""
    when_imported("transformers.generation.continuous_batching.continuous_api", _batching)
    when_imported("transformers.cli.serving.utils", _streaming)
    for kind, handler in (("completion", "CompletionHandler"), ("chat_completion", "ChatCompletionHandler")):
        when_imported("transformers.cli.serving." + kind, lambda module, name=handler: _frontend(module, name))


def _batching(module):
    if not known_version("transformers", TESTED):
        return
    record_call(module.ContinuousBatchingManager, "add_request", "cb.add_request", _added)
    record_call(module.ContinuousBatchingManager, "_generation_step", "cb.step", _number)
    record_call(module.ContinuousBatchProcessor, "prepare_next_batch", "cb.prepare", _batch)
    record_call(module.ContinuousBatchProcessor, "update_batch", "cb.update", _updated)


def _streaming(module):
    if known_version("transformers", TESTED):
        before_call(module.CBStreamer, "put", _first_token)
        before_call(module.CBStreamer, "end", _end)
        before_call(module.CBStreamer, "cancel", _cancel)


def _frontend(module, handler):
    if known_version("transformers", TESTED):
        before_call(getattr(module, handler), "handle_request", _received)


def _added(args, kwargs, result):
    prompt = args[1] if len(args) > 1 else kwargs["input_ids"]
    return {"rid": result, "prompt": len(prompt), "max_new": kwargs.get("max_new_tokens")}


def _batch(args, kwargs, ready):
    """The requests of a batch: new tokens (1 for a decode), tokens already in the cache, and who gets an output token."""
    if not ready:
        return {"reqs": [], "ok": False}
    _step.number = getattr(_step, "number", -1) + 1
    processor = args[0]
    batch = [(future.state, future) for future in processor.inputs_and_outputs.requests_in_batch]
    return {
        "reqs": [state.request_id for state, _ in batch],
        "ok": True,
        "n": _step.number,
        "tokens": {state.request_id: future.query_length for state, future in batch},
        "computed": {state.request_id: state.position_offset - future.query_length for state, future in batch},
        "output": [state.request_id for state, future in batch if future.has_new_token],
        "waiting": len(processor.scheduler.waiting_requests),
    }


def _number(args, kwargs, result):
    return {"n": getattr(_step, "number", -1)}


def _updated(args, kwargs, result):
    """The batch just prepared, except under asynchronous batching, where the update belongs to an earlier one."""
    return {} if args[0].use_async_batching else _number(args, kwargs, result)


def _received(args, kwargs):
    instant("request.received", rid=args[2] if len(args) > 2 else kwargs["request_id"])


def _first_token(args, kwargs):
    streamer, output = args
    if streamer.total_tokens == 0 and output.generated_tokens:
        instant("request.first_token", rid=streamer._request_id)


def _end(args, kwargs):
    instant("request.finished", rid=args[0]._request_id, tokens=args[0].total_tokens)


def _cancel(args, kwargs):
    instant("request.aborted", rid=args[0]._request_id, tokens=args[0].total_tokens)
