"""Which of the engine's doors and hooks are open for the versions that are installed."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from teller_core.collect.doctor.checks import no, partly, yes
from teller_core.collect.doctor.served import Served
from teller_core.collect.environment import PLUGIN
from teller_core.data.report_recording import DoctorCheck

COLLECT = Path(__file__).parent.parent
TESTED_IN = {
    "vllm": COLLECT / "shim" / "teller_shim_vllm.py",
    "transformers": COLLECT / "shim" / "teller_shim_transformers.py",
    "torch": COLLECT / "shim" / "teller_shim_collectives.py",
    "nvtx": COLLECT / "shim" / "teller_shim_nvtx.py",
    "uvicorn": COLLECT / "shim" / "teller_shim_process.py",
}
"""Where the recorder names the versions that its hooks of a package were tested on."""
MOST_NAMED = 4
"""Where more versions were tested, it was each from the first to the last."""
OLDEST_PYTHON = (3, 9)


def tested(path: Path) -> tuple[str, ...]:
    """The ``major.minor`` versions that a module of the recorder names in TESTED, read without running it."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["TESTED"]:
            words = [word.value for word in ast.walk(node.value) if isinstance(word, ast.Constant)]
            return tuple(word for word in words if isinstance(word, str))
    return ()


def untested(package: str, here: Served) -> str:
    """What to say of an installed package whose hooks were not tested on its version; nothing where they were."""
    known = tested(TESTED_IN[package])
    if here.minor(package) in known:
        return ""
    named = ", ".join(known) if len(known) < MOST_NAMED else f"{known[0]} to {known[-1]}"
    return f"{package} {here.packages[package]} is none that its hooks were tested on ({named})"


_KNOWN = "Use one of these, or expect it so"


def engine_checks(here: Served, environment: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """The interpreter, then each engine that is installed; what none of them gives."""
    if tuple(int(part) for part in here.version.split(".")[:2] if part.isdigit()) < OLDEST_PYTHON:
        yield no("Python", f"{here.version} at {here.python}: the recorder needs 3.9", "Serve with a newer Python")
    else:
        yield yes("Python", f"{here.version} at {here.python}")
    engines = [name for name in ("vllm", "sglang", "transformers") if name in here.packages]
    if not engines:
        told = "no engine that is known is installed there: vllm, sglang or transformers"
        yield no("engine", told, "Name the interpreter of the served program with --python PATH")
    if "vllm" in engines:
        yield from _vllm(here, environment)
    if "sglang" in engines:
        told = f"sglang {here.packages['sglang']}: no hook was tried on it; its log, traces and /metrics are read"
        yield partly("sglang", told, "See teller doctor --print sglang for its switches")
    if engines == ["transformers"]:  # beside another engine it is a part of that one
        yield _hooks("transformers", here, "requests and batches of `transformers serve`")


def _vllm(here: Served, environment: Mapping[str, str]) -> Iterator[DoctorCheck]:
    version = here.packages["vllm"]
    known = tested(PLUGIN / "teller_stats.py")
    allowed = environment.get("VLLM_PLUGINS")
    if allowed is not None and "teller" not in allowed.split(","):
        told = "VLLM_PLUGINS is set and does not name it, so vLLM will not load it"
        yield no("vLLM stat logger", told, "Add teller to VLLM_PLUGINS")
    elif here.minor("vllm") in known:
        yield yes("vLLM stat logger", f"vllm {version}, tested: steps and finished requests, without patching")
    else:
        told = (
            f"vllm {version}, tested on {', '.join(known)} alone: it writes what fields there are and names the others"
        )
        yield partly("vLLM stat logger", told)
    yield _hooks("vllm", here, "scheduler decisions, request ids and tokens of each step")


def _hooks(package: str, here: Served, gives: str) -> DoctorCheck:
    unknown = untested(package, here)
    if not unknown:
        return yes(f"{package} hooks", f"{package} {here.packages[package]}, tested: {gives}")
    told = f"{unknown}, so they stay off"
    instead = "Use the stat logger, or a version that was tested" if package == "vllm" else "Serve with one of these"
    return no(f"{package} hooks", told, instead)


def switch_checks(here: Served, environment: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """What the environment says that bears on recording, and the packages that the engines' own switches need."""
    if "torch" in here.packages:
        yield yes("profiler windows", f"torch {here.packages['torch']}: operators in short windows, on request")
        taken = next(
            (name for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE") if name in environment), None
        )
        told = f"{taken} is set: it holds" if taken else "torch's flight recorder is switched on while recording"
        if unknown := untested("torch", here):
            yield partly("collectives", f"{told}; calls over Gloo are not recorded: {unknown}", _KNOWN)
        else:
            yield yes("collectives", f"{told}, and calls over Gloo are recorded")
    else:
        yield no("profiler windows", "torch is not installed there", "Expect no operators")
    if "uvicorn" in here.packages:
        unknown = untested("uvicorn", here)
        told = f"up to a quarter second before a signal ends it may be missing: {unknown}"
        kept = f"uvicorn {here.packages['uvicorn']}, tested: what it did until a signal ends it is recorded"
        yield partly("end of a server", told, _KNOWN) if unknown else yes("end of a server", kept)
    if "vllm" in here.packages:
        for part, package in (
            ("request spans (OTLP)", "opentelemetry-exporter-otlp"),
            ("log as JSON", "python-json-logger"),
        ):
            there = package in here.packages
            told = f"{package} {here.packages[package]}" if there else f"{package} is not installed there"
            yield (yes if there else no)(part, told, None if there else f"Install {package} where vLLM runs")
