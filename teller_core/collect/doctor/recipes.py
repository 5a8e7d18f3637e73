"""How an engine is started so that it leaves what tiers T1 and T2 need, without a process of ours around it.

vLLM's arguments and variables are those of its 0.32, as its parser knows them; SGLang's are those of its documentation
(server arguments, production request tracing) and of its ``environ`` module in November 2026.
"""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from teller_core.collect.doctor.engines import tested
from teller_core.collect.doctor.helm import RECORDS as INSIDE
from teller_core.collect.doctor.helm import values
from teller_core.collect.environment import LOG_CONFIG, PLUGIN
from teller_core.collect.ring import MOST_MB
from teller_core.data.report_recording import DoctorReport, RecipeFile, RecipeReport
from teller_core.errors import InputError

Door = Literal["plugin", "flags"]
TIERS = {"T1": 1, "T2": 2}
RECORDS = Path("teller-records")
COLLECTOR = "http://127.0.0.1:4318/v1/traces"
_COLLECTOR_FILE = """receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:4318
exporters:
  file:
    path: {folder}/spans.json
service:
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [file]
"""


def recipe(engine: str, tier: str, door: Door, folder: Path, *, helm: bool = False) -> DoctorReport:
    """How to start ``engine`` for ``tier`` (T1 or T2), what it leaves going to ``folder``.

    Errors: InputError for what there is no recipe for.
    """
    made = _MAKERS[engine](TIERS[tier], door, folder.absolute())
    if helm and engine != "vllm":
        raise InputError("A Helm recipe", f"only vLLM's chart is known, not one for {engine}", "Leave out --helm")
    if helm:
        log = "kubectl logs POD > teller-records/server.log"
        got = (
            [f"kubectl cp POD:{INSIDE} teller-records", log]
            if made.door == "plugin"
            else ["mkdir -p teller-records", log]
        )
        then = [*got, _read(RECORDS)]
        made = made.model_copy(update={"helm": values(made), "then": then})
    return DoctorReport(subject="recipe", name=engine, checks=[], recipe=made)


def _vllm(tier: int, door: Door, folder: Path) -> RecipeReport:
    return _vllm_plugin(tier, folder) if door == "plugin" else _vllm_flags(tier, folder)


def _vllm_plugin(tier: int, folder: Path) -> RecipeReport:
    gives = [
        "a row for each finished request: when it came, how long it waited, computed and took; tokens; preemptions"
    ]
    notes = [
        "vLLM loads every plugin on its path, unless VLLM_PLUGINS is set: then add teller to it",
        "With a plugin of this kind vLLM counts even where --disable-log-stats is given",
        "Requests that their callers gave up, and vLLM's offline LLM class, leave no rows",
        "Where vLLM runs in another container, copy the folder on PYTHONPATH there: it needs nothing else",
        f"Each process of the service keeps its last {MOST_MB} MB (TELLER_CAPTURE_BYTES); server.log grows as it always would",
    ]
    if tier == 2:
        gives.append(
            "a row for each step: its requests and tokens, how long it took, who runs and waits, KV cache in use"
        )
        notes.append("--enable-logging-iteration-details also writes a line a step to vLLM's log")
    return RecipeReport(
        engine="vllm",
        door="plugin",
        tier=tier,
        tested=", ".join(tested(PLUGIN / "teller_stats.py")),
        environment=_plugin_variables(folder),
        arguments=["--enable-logging-iteration-details"] if tier == 2 else [],
        files=[],
        gives=gives,
        then=[
            *_output(folder / "server.log"),
            _read(folder),
        ],
        notes=notes,
    )


def _output(log: Path) -> list[str]:
    """Where the engine's output goes: beside the rest, for what only the log tells. Lines that can be pasted."""
    kept = f"COMMAND > {shlex.quote(str(log))} 2>&1    # your own command, its output kept"
    return [f"mkdir -p {shlex.quote(str(log.parent))}", kept]


def _read(folder: Path) -> str:
    return f"teller import --together {shlex.quote(str(folder))}"


def _plugin_variables(folder: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": str(PLUGIN),
        "TELLER_CAPTURE_DIR": str(folder),
        "TELLER_CAPTURE_BYTES": str(MOST_MB << 20),
    }


def _vllm_flags(tier: int, folder: Path) -> RecipeReport:
    gives = ["an OpenTelemetry span for each request, with what it waited, computed and took, and its tokens"]
    if tier == 2:
        gives.append(
            "a line for each step, with its requests and tokens and how long it took, stamped to the microsecond"
        )
    return RecipeReport(
        engine="vllm",
        door="flags",
        tier=tier,
        tested=", ".join(tested(PLUGIN / "teller_stats.py")),
        environment={
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": "vllm",
            "VLLM_LOGGING_CONFIG_PATH": str(LOG_CONFIG),  # as text its lines name no time zone
        },
        arguments=[
            "--otlp-traces-endpoint",
            COLLECTOR,
            *(["--enable-logging-iteration-details", "--enable-log-requests"] if tier == 2 else []),
        ],
        files=[
            RecipeFile(
                name="collector.yaml",
                about="for an OpenTelemetry Collector that has the file exporter, where none runs yet",
                content=_COLLECTOR_FILE.format(folder=folder),
            )
        ],
        gives=gives,
        then=[*_output(folder / "server.jsonl"), _read(folder)],
        notes=[
            "It needs the packages opentelemetry-sdk and opentelemetry-exporter-otlp where vLLM runs",
            "--enable-log-requests writes the parameters of each request to the log, at INFO no prompts",
            "--enable-per-request-metrics puts a request's times into its response, for callers that keep them",
        ],
    )


def _sglang(tier: int, door: Door, folder: Path) -> RecipeReport:
    arguments = [
        "--enable-request-time-stats-logging",
        "--log-requests",
        "--log-requests-level",
        "0",
        "--enable-metrics",
    ]
    gives = ["a line for each finished request: its id, how long it waited and ran, its tokens"]
    if tier == 2:
        arguments += ["--decode-log-interval", "1"]
        gives.append("a line for each prefill batch and each decode step")
    return RecipeReport(
        engine="sglang",
        door="flags",
        tier=tier,
        tested=None,
        environment={"SGLANG_LOG_MS": "1"},
        arguments=arguments,
        files=[],
        gives=gives,
        then=[*_output(folder / "server.log"), _read(folder)],
        notes=[
            "These switches are those of SGLang's documentation: none was run by us",
            "Spans of requests with all their phases: --enable-trace --otlp-traces-endpoint 127.0.0.1:4317",
        ],
    )


def _transformers(tier: int, door: Door, folder: Path) -> RecipeReport:
    return RecipeReport(
        engine="transformers",
        door="capture",
        tier=3,
        tested=", ".join(tested(PLUGIN.parent / "shim" / "teller_shim_transformers.py")),
        environment={},
        arguments=["--continuous-batching"],
        files=[],
        gives=["every request, every batch with its requests and tokens, pauses, counters of its processes"],
        then=[f"teller capture --to {shlex.quote(str(folder))} -- transformers serve MODEL --continuous-batching"],
        notes=[
            "transformers has no door of its own: its log holds no ids, no times and no steps, at any level",
            "A proxy before it that logs durations gives T1: teller formats lists which are read",
        ],
    )


_MAKERS: Mapping[str, Callable[[int, Door, Path], RecipeReport]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "transformers": _transformers,
}
ENGINES = tuple(_MAKERS)
