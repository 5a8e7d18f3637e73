"""Switches of an engine that must only be turned where this interpreter has the package that they need.

vLLM imports ``nvtx`` at its first step when its scopes are on, and ``pythonjsonlogger`` and ``uvicorn`` when it sets up
its log so: without them it would not run. What is set already stays.
"""

import os
from importlib.util import find_spec


def switch_on():
    """Turn the switches that the recording process asked for, for this process and its children."""
    log = os.environ.get("TELLER_VLLM_LOG")
    if log and os.path.exists(log) and find_spec("pythonjsonlogger") and find_spec("uvicorn"):
        os.environ.setdefault("VLLM_LOGGING_CONFIG_PATH", log)
    if os.environ.get("TELLER_VLLM_SCOPES") and find_spec("nvtx"):
        os.environ.setdefault("VLLM_NVTX_SCOPES_FOR_PROFILING", "1")
