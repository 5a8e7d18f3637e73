"""vLLM's front end: requests as they come, are tokenized, are handed over, send their first token and end.

What is known before a request has its engine id travels with the task that runs its handler (a context variable); from
the handler's call of ``generate`` on, which another task goes through, it is found by the id that the handler gave.
"""

import contextvars
import time

import teller_shim_loop as loop
from teller_shim_events import instant
from teller_shim_wrap import after_await, after_call, before_call, record_call

_serving = contextvars.ContextVar("teller_serving", default=None)
_handed = {}
"""By the handler's id: what was known of a request when it called ``generate``. The oldest go where too many stay."""
MOST_HANDED = 16_384
WRITTEN_S = 0.4
"""In so long every process has written what it held: they do four times a second."""
_ended = []
HANDLERS = (
    ("OpenAIServingCompletion", "create_completion", "cmpl-"),
    ("OpenAIServingChat", "create_chat_completion", "chatcmpl-"),
    ("OpenAIServingResponses", "create_responses", ""),
    ("AnthropicServingMessages", "create_messages", ""),
)


def hook_handlers(module):
    """Note when a request's handler begins, under the id that its answer will have."""
    for owner, function, prefix in HANDLERS:
        if hasattr(module, owner) and function in vars(getattr(module, owner)):
            before_call(getattr(module, owner), function, _arrived(prefix))


def hook_renderer(module):
    """Note when a request's prompt is tokens, the wait for others in the same pool over, and what tokenizing took."""
    after_await(module.BaseRenderer, "tokenize_prompt_async", _tokenized)
    record_call(module.BaseRenderer, "_tokenize_prompt", "vllm.tokenizer")


def hook_front_end(module):
    """Watch the event loop once it serves, and note requests that come by another way than a known handler."""
    before_call(module.AsyncLLM, "generate", _handing)
    before_call(module.AsyncLLM, "add_request", _adding)
    before_call(module.AsyncLLM, "_run_output_handler", lambda args, kwargs: loop.watch())


def hook_end(module):
    """Let the processes that are ended write what they hold: by a front end, by the parent of several, on a node without one."""
    before_call(module, "shutdown", _ending)


def hook_outputs(module):
    """Note requests handed to the engine, what a portion of outputs costs, first tokens, ends and aborts."""
    owner = module.OutputProcessor
    after_call(owner, "add_request", _added)
    record_call(owner, "process_outputs", "vllm.outputs", _outputs)
    before_call(owner, "_update_stats_from_finished", _finished)
    after_call(owner, "abort_requests", _aborted)


def _arrived(prefix):
    def arrived(args, kwargs):
        current = _serving.get()
        if current is not None and not current.get("added"):
            return  # one handler calls another one
        body = args[1] if len(args) > 1 else kwargs.get("request")
        raw = args[2] if len(args) > 2 else kwargs.get("raw_request")
        header = raw.headers.get("X-Request-Id") if raw is not None and prefix else None
        name = header or getattr(body, "request_id", None)
        _serving.set({"at": time.time_ns(), "front": prefix + name if name else ""})
        if name:
            instant("request.arrived", rid=prefix + name)

    return arrived


def _tokenized(args, kwargs, result):
    current = _serving.get()
    if current is not None:
        current["tokenized"] = time.time_ns()


def _handing(args, kwargs):
    current = _serving.get()
    if current is not None:
        _hand(args[3] if len(args) > 3 else kwargs["request_id"], current)


def _adding(args, kwargs):
    name = args[1] if len(args) > 1 else kwargs["request_id"]
    if name not in _handed:
        _hand(name, {"at": time.time_ns(), "front": ""})


def _hand(name, known):
    _handed[name] = known
    if len(_handed) > MOST_HANDED:
        _handed.pop(next(iter(_handed)), None)


def _ending(args, kwargs):
    """Without a time for its shutdown, or when that is over, vLLM kills its processes (-9) as soon as they are told to end. All
    of them write meanwhile, whichever are ended first: so once is enough.
    """
    processes, patience = (kwargs.get(name, (*args, None, None)[at]) for at, name in enumerate(("procs", "timeout")))
    if processes and patience == 0 and not _ended:
        _ended.append(True)
        time.sleep(WRITTEN_S)


def _added(args, kwargs, result):
    request = args[1] if len(args) > 1 else kwargs["request"]
    said = {"rid": request.request_id, "ext": request.external_req_id}
    ids = request.prompt_token_ids
    if ids is not None:
        said["prompt"] = len(ids)
    current = _handed.get(request.external_req_id)
    if current is not None:
        current["added"] = True
        said.update(front=current["front"], at=current["at"], tokenized=current.get("tokenized"))
    instant("request.added", **said)


def _outputs(args, kwargs, result):
    """The engine tells of a request's prefill once, with its first output."""
    outputs = args[1] if len(args) > 1 else kwargs["engine_core_outputs"]
    for one in outputs:
        if one.prefill_stats is not None and one.new_token_ids:
            instant("request.first_token", rid=one.request_id)
    return {"outputs": len(outputs)}


def _finished(args, kwargs):
    state, reason = args[1], args[2]
    said = {"rid": state.request_id, "reason": getattr(reason, "name", str(reason)).lower()}
    if state.detokenizer is not None:
        said["tokens"] = state.detokenizer.num_output_tokens()
    said["cached"] = state.num_cached_tokens
    instant("request.finished", **said)
    if state.parent_req is None:
        _handed.pop(state.external_req_id, None)


def _aborted(args, kwargs, result):
    for request in result:
        instant("request.aborted", rid=request)
