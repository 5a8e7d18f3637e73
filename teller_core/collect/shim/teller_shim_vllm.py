"""Which functions of vLLM are recorded, and for which versions. Tested on vLLM 0.32 (V1 engine, CPU build)."""

from teller_shim_imports import known_version, when_imported
from teller_shim_vllm_engine import hook_profiler, hook_scheduler, hook_worker
from teller_shim_vllm_front import hook_end, hook_front_end, hook_handlers, hook_outputs, hook_renderer

TESTED = ("0.32",)
PLACES = (
    ("vllm.v1.core.sched.scheduler", hook_scheduler),
    ("vllm.v1.worker.gpu_worker", hook_worker),
    ("vllm.profiler.wrapper", hook_profiler),
    ("vllm.v1.utils", hook_end),
    ("vllm.v1.engine.async_llm", hook_front_end),
    ("vllm.v1.engine.output_processor", hook_outputs),
    ("vllm.renderers.base", hook_renderer),
    ("vllm.entrypoints.openai.completion.serving", hook_handlers),
    ("vllm.entrypoints.openai.chat_completion.serving", hook_handlers),
    ("vllm.entrypoints.openai.responses.serving", hook_handlers),
    ("vllm.entrypoints.anthropic.serving", hook_handlers),
)
"""Modules and what is done once each has been imported."""


def install():
    """Record what the scheduler decides, what comes out, what workers run, and requests in the front end."""
    for module, hook in PLACES:
        when_imported(module, _where_known(hook))


def _where_known(hook):
    def hook_if_known(module):
        if known_version("vllm", TESTED):
            hook(module)

    return hook_if_known
