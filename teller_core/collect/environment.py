"""What of the recorder is switched on in a command, through its environment alone, and what is not and why.

Nothing that the user has set is changed. What depends on the packages of the command's own interpreter is decided there, by
``shim/teller_shim_switches.py``.
"""

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from teller_core.collect.cupti.windows import LAYOUT_FILE
from teller_core.collect.native.variables import injection

HERE = Path(__file__).parent
SHIM = HERE / "shim"
PLUGIN = HERE / "plugin"
PARTS = ("hooks", "plugin", "nvtx", "cupti", "scopes", "log", "collectives", "samples")
"""hooks: scheduler decisions, requests, pauses. plugin: vLLM's own statistics. nvtx, cupti: ranges and GPU records. scopes, log:
vLLM's NVTX scopes and its log as JSON. collectives: the flight recorder of torch. samples: counters, from outside.
"""
LOG_CONFIG = PLUGIN / "teller-logging.json"
"""vLLM's log as one JSON object a line, with microseconds. vLLM hands the file to uvicorn as well, which gets what it says of its
own accord.
"""
LOG_WRITTEN = "vllm-logging.json"
"""The same for one capture."""
OF_LOG = re.compile(r"--(?:(?:log|logging|uvicorn-log)[-_.]|logging$|disable[-_][\w-]*access[-_]log)")
"""Options of vLLM that a configuration of its log would overrule: it takes uvicorn's, too, from the file."""
NOT_TOLD = "only vLLM has it, which the command does not name"
FLIGHT_RECORDER = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
COLLECTIVES_KEPT = "2000"
"""Entries a process: some 20 steps of a model of 50 layers, and under 2 MB of memory."""


class Environment(NamedTuple):
    """``variables``: the whole environment of the command. ``on``: parts that it switches on. ``off``: other parts, and why."""

    variables: Mapping[str, str]
    on: Sequence[str]
    off: Mapping[str, str]


def environment(
    cap: Path,
    inherited: Mapping[str, str],
    engine: str,
    bounds: tuple[int, int],
    *,
    import_first: Sequence[Path] = (),
    without: Collection[str] = (),
    words: Sequence[str] = (),
) -> Environment:
    """The environment in which a command of ``engine`` records into ``cap``.

    ``bounds``: the most bytes that one writer in one process keeps, and seconds. ``import_first`` folders go before ours on
    PYTHONPATH. ``without`` are parts that are not wanted. ``words``: the command, of which options about the log hold.
    """
    cap = cap.resolve()
    most_bytes, most_seconds = bounds
    added = {
        "TELLER_CAPTURE_DIR": str(cap),
        "TELLER_CAPTURE_BYTES": str(most_bytes),
        "TELLER_CAPTURE_SECONDS": str(most_seconds),
    }
    off = dict.fromkeys(without, "it was declined")
    folders = [*import_first]
    if "hooks" not in off:
        folders.append(SHIM)
    if engine == "vllm" and (option := next(filter(OF_LOG.match, words), "")):
        off.setdefault("log", f"{option.partition('=')[0]} is among the options: the log stays as it is")
    _vllm(cap, inherited, engine, added, off)
    if "plugin" not in off:
        folders.append(PLUGIN)
    _native(cap, inherited, added, off)
    if "collectives" not in off:
        if taken := next((name for name in FLIGHT_RECORDER if name in inherited), None):
            off["collectives"] = f"{taken} is set already: what it says holds"
        else:
            added[FLIGHT_RECORDER[0]] = COLLECTIVES_KEPT
    path = os.pathsep.join(filter(None, [*map(str, folders), inherited.get("PYTHONPATH", "")]))
    if path:
        added["PYTHONPATH"] = path
    return Environment({**inherited, **added}, [part for part in PARTS if part not in off], off)


def _vllm(cap: Path, inherited: Mapping[str, str], engine: str, added: dict[str, str], off: dict[str, str]) -> None:
    """The switches of vLLM. They are handed to the shim, which knows whether the packages that they need are there."""
    if engine != "vllm":
        off.setdefault("log", "only vLLM has it" if engine else NOT_TOLD)
    if engine not in ("vllm", ""):  # a script may start vLLM: then its words do not tell
        for part in ("plugin", "scopes"):
            off.setdefault(part, "only vLLM has it")
    for part in ("scopes", "log"):
        if "hooks" in off:
            off.setdefault(part, "it needs the hooks")
    if "scopes" not in off:
        if "VLLM_NVTX_SCOPES_FOR_PROFILING" in inherited:
            off["scopes"] = "VLLM_NVTX_SCOPES_FOR_PROFILING is set already: what it says holds"
        else:
            added["TELLER_VLLM_SCOPES"] = "1"
    if "log" not in off:
        taken = ("VLLM_LOGGING_CONFIG_PATH", "VLLM_CONFIGURE_LOGGING")
        if name := next((name for name in taken if name in inherited), None):
            off["log"] = f"{name} is set already: the log stays as it is"
        else:
            (cap / LOG_WRITTEN).write_text(json.dumps(_log_config(inherited), indent=1) + "\n")
            added["TELLER_VLLM_LOG"] = str(cap / LOG_WRITTEN)


def _log_config(inherited: Mapping[str, str]) -> dict[str, Any]:
    """LOG_CONFIG, to where the log would have gone and as much of it."""
    config = json.loads(LOG_CONFIG.read_text("utf-8"))
    level = inherited.get("VLLM_LOGGING_LEVEL") or "INFO"
    config["handlers"]["out"]["level"] = config["loggers"]["vllm"]["level"] = level
    config["handlers"]["out"]["stream"] = inherited.get("VLLM_LOGGING_STREAM") or "ext://sys.stdout"
    return config


def _native(cap: Path, inherited: Mapping[str, str], added: dict[str, str], off: dict[str, str]) -> None:
    if {"nvtx", "cupti"} <= off.keys():
        return
    library = injection(cap, inherited)
    for part, variable in (("nvtx", "NVTX_INJECTION64_PATH"), ("cupti", "CUDA_INJECTION64_PATH")):
        if part in off:
            continue
        if part in library.missing:
            off[part] = library.missing[part]
        elif variable in library.variables:
            added[variable] = library.variables[variable]
    added |= {name: value for name, value in library.variables.items() if name.startswith("TELLER_")}
    if "cupti" in off:
        added.pop("TELLER_INJECT_LAYOUT", None)
        (cap / LAYOUT_FILE).unlink(missing_ok=True)
