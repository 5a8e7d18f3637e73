"""What is switched on through the environment, and that nothing the user has set is changed."""

import json
import logging
import logging.config
import os
import subprocess
import sys
from pathlib import Path

import pytest

from teller_core.calls.recording import PARTS as CALLED
from teller_core.collect.environment import LOG_WRITTEN, PARTS, PLUGIN, SHIM, environment
from teller_core.collect.output import log_line

BOUNDS = (1000, 60)
NATIVE = ("nvtx", "cupti")


def test_the_command_line_knows_the_same_parts() -> None:
    assert CALLED == PARTS


def test_ours_come_between_folders_that_go_first_and_the_users_own(tmp_path: Path) -> None:
    made = environment(tmp_path, {"PYTHONPATH": "/theirs"}, "vllm", BOUNDS, import_first=[tmp_path], without=NATIVE)
    assert made.variables["PYTHONPATH"].split(os.pathsep) == [str(tmp_path), str(SHIM), str(PLUGIN), "/theirs"]
    assert made.variables["TELLER_CAPTURE_DIR"] == str(tmp_path)
    assert (made.variables["TELLER_CAPTURE_BYTES"], made.variables["TELLER_CAPTURE_SECONDS"]) == ("1000", "60")


def test_all_that_vllm_has_is_on_for_vllm_and_off_with_a_reason_for_others(tmp_path: Path) -> None:
    assert environment(tmp_path, {}, "vllm", BOUNDS, without=NATIVE).on == [
        *("hooks", "plugin", "scopes", "log", "collectives", "samples")
    ]
    other = environment(tmp_path, {}, "transformers", BOUNDS, without=NATIVE)
    assert {part: other.off[part] for part in ("plugin", "scopes", "log")} == dict.fromkeys(
        ("plugin", "scopes", "log"), "only vLLM has it"
    )
    assert str(PLUGIN) not in other.variables["PYTHONPATH"]
    script = environment(tmp_path, {}, "", BOUNDS, without=NATIVE)  # which may start vLLM
    assert set(script.off) == {*NATIVE, "log"}
    assert str(PLUGIN) in script.variables["PYTHONPATH"]


@pytest.mark.parametrize(
    ("variable", "part"),
    [
        ("VLLM_LOGGING_CONFIG_PATH", "log"),
        ("VLLM_CONFIGURE_LOGGING", "log"),
        ("VLLM_NVTX_SCOPES_FOR_PROFILING", "scopes"),
        ("TORCH_FR_BUFFER_SIZE", "collectives"),
        ("TORCH_NCCL_TRACE_BUFFER_SIZE", "collectives"),
        ("NVTX_INJECTION64_PATH", "nvtx"),
        ("CUDA_INJECTION64_PATH", "cupti"),
    ],
)
def test_what_the_user_has_set_stays_and_is_said(tmp_path: Path, variable: str, part: str) -> None:
    made = environment(tmp_path, {variable: "mine"}, "vllm", BOUNDS)
    assert made.variables[variable] == "mine"
    assert part in made.off and part not in made.on


@pytest.mark.parametrize(
    ("word", "off"),
    [
        ("--log-config-file", True),
        ("--log-level=debug", True),
        ("--uvicorn-log-level", True),
        ("--disable-access-log-for-endpoints", True),
        ("--disable-uvicorn-access-log", True),
        ("--logits-processors", False),
        ("--enable-log-requests", False),
    ],
)
def test_options_about_the_log_hold(tmp_path: Path, word: str, off: bool) -> None:
    made = environment(tmp_path, {}, "vllm", BOUNDS, without=NATIVE, words=["vllm", "serve", "m", word, "x"])
    assert ("log" in made.off) == off


def test_what_is_declined_leaves_nothing(tmp_path: Path) -> None:
    made = environment(tmp_path, {"HOME": "/h"}, "vllm", BOUNDS, without=PARTS)
    assert made.on == []
    assert made.variables.keys() == {*("HOME", "TELLER_CAPTURE_DIR", "TELLER_CAPTURE_BYTES", "TELLER_CAPTURE_SECONDS")}


@pytest.mark.parametrize("there", [True, False])
def test_switches_of_vllm_are_turned_only_where_the_packages_are_that_they_need(tmp_path: Path, there: bool) -> None:
    made = environment(tmp_path / "cap", _folder(tmp_path / "cap"), "vllm", BOUNDS, without=NATIVE)
    packages = tmp_path / "packages"
    packages.mkdir()
    if there:
        for name in ("nvtx", "pythonjsonlogger", "uvicorn"):
            (packages / f"{name}.py").write_text("")
    code = "import os; print([os.environ.get('VLLM_' + name) for name in ('LOGGING_CONFIG_PATH', 'NVTX_SCOPES_FOR_PROFILING')])"
    path = os.pathsep.join([made.variables["PYTHONPATH"], str(packages)])
    command = [sys.executable, "-S", "-c", f"import sitecustomize; {code}"]
    done = subprocess.run(
        command, env={**made.variables, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    expected = [str(tmp_path / "cap" / LOG_WRITTEN), "1"] if there else [None, None]
    assert done.stdout == f"{expected}\n"


def _folder(cap: Path) -> dict[str, str]:
    cap.mkdir()
    return {}


def test_the_configuration_of_the_log_is_one_that_python_takes(tmp_path: Path) -> None:
    environment(tmp_path, {"VLLM_LOGGING_LEVEL": "DEBUG"}, "vllm", BOUNDS, without=NATIVE)
    config = json.loads((tmp_path / LOG_WRITTEN).read_text())
    assert config["formatters"]["json"].pop("class") == "pythonjsonlogger.jsonlogger.JsonFormatter"
    uvicorns = {name: config["loggers"].pop(name) for name in ("uvicorn", "uvicorn.error", "uvicorn.access")}
    own = pytest.importorskip("uvicorn.config").LOGGING_CONFIG
    assert uvicorns == own["loggers"]
    for name in ("default", "access"):
        handler, formatter = config["handlers"].pop(name), config["formatters"].pop(name)
        assert handler == own["handlers"][name] | {"class": "logging.StreamHandler"}
        assert formatter.items() <= own["formatters"][name].items()
    logging.config.dictConfig(config)
    logger = logging.getLogger("vllm")
    try:
        assert (logger.level, logger.propagate, len(logger.handlers)) == (logging.DEBUG, False, 1)
    finally:
        logger.handlers.clear()


def test_a_line_of_the_log_reads_as_the_engine_writes_it_and_no_text_commands_the_terminal() -> None:
    row = {"created": 1795992391.5, "process": 7, "processName": "MainProcess", "levelname": "INFO"}
    row |= {"filename": "api.py", "lineno": 3, "message": "up\x1b[31m and\trunning", "vllm_process_name": "APIServer"}
    shown = log_line(json.dumps(row).encode()).decode()
    assert shown.startswith("(APIServer pid=7) INFO ")
    assert shown.endswith("[api.py:3] up[31m and\trunning")
    for other in (b'{"created": 1, "mess', b'{"a": 1}', b"{}", b'{"created": "x", "message": ""}', b"plain"):
        assert log_line(other) == other
