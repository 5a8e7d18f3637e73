"""What can be recorded here is told from metadata, variables and files, without importing an engine."""

import os
import stat
import sys
from pathlib import Path

import pytest

from teller_core.collect.doctor import devices, engines, machine, served
from teller_core.collect.doctor.here import examine_here
from teller_core.collect.native.build import Library
from teller_core.data.report_recording import DoctorCheck
from teller_core.errors import InputError


def environment(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return kept | more


def with_packages(folder: Path, **packages: str) -> Path:
    """A folder for PYTHONPATH in which these distributions are found."""
    for name, version in packages.items():
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder


def checks(tmp_path: Path, python: str = sys.executable, **more: str) -> dict[str, DoctorCheck]:
    return {one.part: one for one in examine_here(Path(python), tmp_path, environment(**more)).checks}


@pytest.fixture(autouse=True)
def _no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a compiler."""
    monkeypatch.setattr(devices, "find", lambda: Library(None, "there is no C compiler here"))


def test_an_engine_of_a_tested_version_has_its_doors_open(tmp_path: Path) -> None:
    found = checks(tmp_path, PYTHONPATH=str(with_packages(tmp_path, vllm="0.32.1")))
    assert (found["vLLM stat logger"].state, found["vllm hooks"].state) == ("yes", "yes")


def test_an_engine_of_another_version_has_no_hooks_and_part_of_the_door(tmp_path: Path) -> None:
    found = checks(tmp_path, PYTHONPATH=str(with_packages(tmp_path, vllm="0.99.0")))
    assert (found["vLLM stat logger"].state, found["vllm hooks"].state) == ("partly", "no")
    assert "0.32" in found["vllm hooks"].found


def test_a_list_of_plugins_that_leaves_ours_out_closes_the_door(tmp_path: Path) -> None:
    path = str(with_packages(tmp_path, vllm="0.32.0"))
    assert checks(tmp_path, PYTHONPATH=path, VLLM_PLUGINS="other")["vLLM stat logger"].state == "no"
    assert checks(tmp_path, PYTHONPATH=path, VLLM_PLUGINS="other,teller")["vLLM stat logger"].state == "yes"


def test_the_tested_versions_are_those_that_the_recorder_itself_names() -> None:
    assert engines.tested(engines.PLUGIN / "teller_stats.py") == ("0.32",)
    assert all(engines.tested(path) for path in engines.TESTED_IN.values())
    assert engines.tested(engines.TESTED_IN["uvicorn"]) == tuple(f"0.{minor}" for minor in range(30, 55))


def test_what_the_user_has_set_is_said_to_hold(tmp_path: Path) -> None:
    found = checks(tmp_path, NVTX_INJECTION64_PATH="x.so", TORCH_FR_BUFFER_SIZE="5")
    assert found["NVTX ranges"].state == "no"
    if "collectives" in found:
        assert "TORCH_FR_BUFFER_SIZE is set" in found["collectives"].found


@pytest.mark.parametrize(
    ("package", "part", "versions", "words"),
    [
        ("torch", "collectives", ("2.13.1+cpu", "yes", "partly"), "calls over Gloo are not recorded: torch 2.9.1"),
        ("uvicorn", "end of a server", ("0.34.3", "yes", "partly"), "its hooks were tested on (0.30 to 0.54)"),
        ("nvtx", "NVTX ranges", ("0.2.17", "partly", "no"), "nvtx 2.9.1 is none that its hooks were tested on (0.2)"),
    ],
)
def test_a_library_of_another_version_is_told_with_those_that_are_known(
    tmp_path: Path, package: str, part: str, versions: tuple[str, str, str], words: str
) -> None:
    known, on, off = versions
    for version, state in ((known, on), ("2.9.1", off)):
        found = checks(tmp_path, PYTHONPATH=str(with_packages(tmp_path / version, **{package: version})))[part]
        assert (found.state, words in found.found) == (state, version == "2.9.1"), found.found


def test_without_a_library_the_package_nvtx_stands_in(tmp_path: Path) -> None:
    assert checks(tmp_path, PYTHONPATH=str(with_packages(tmp_path, nvtx="0.2.17")))["NVTX ranges"].state == "partly"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build", 580),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19", 535),
        ("nothing", None),
    ],
)
def test_the_driver_tells_its_version(
    text: str, version: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "version").write_text(text)
    monkeypatch.setattr(devices, "DRIVER", tmp_path / "version")
    assert devices.driver_version() == version


@pytest.mark.parametrize(
    ("driver", "more", "words"),
    [
        ("535.1.2", {}, "before 12.6"),
        ("580.1.2", {}, "no device"),
        ("580.1.2", {"CUDA_INJECTION64_PATH": "other.so"}, "CUPTI has another client"),
        ("580.1.2", {}, "no C compiler"),
    ],
)
def test_what_stands_in_the_way_of_gpu_records_is_named(
    driver: str, more: dict[str, str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "version").write_text(f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  x")
    monkeypatch.setattr(devices, "DRIVER", tmp_path / "version")
    monkeypatch.setattr(devices, "NODES", tmp_path)
    if words != "no device":
        (tmp_path / "nvidia0").touch()
    check = checks(tmp_path, **more)["GPU records (CUPTI)"]
    assert check.state == "no"
    assert words in check.found


def test_the_interpreter_is_that_of_the_engines_command(tmp_path: Path) -> None:
    script = tmp_path / "vllm"
    script.write_text("#!/opt/engine/bin/python3.12\nimport sys\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    assert served.interpreter(str(tmp_path)) == Path("/opt/engine/bin/python3.12")
    script.write_text("#!/bin/sh\n'''exec' \"/opt/a b/bin/python\" \"$0\" \"$@\"\n' '''\n")
    assert served.interpreter(str(tmp_path)) == Path("/opt/a b/bin/python")


@pytest.mark.parametrize("text", ["#!/bin/sh\necho 5\n", "#!/bin/sh\nexit 3\n", None])
def test_an_interpreter_that_is_none_is_refused(text: str | None, tmp_path: Path) -> None:
    named = tmp_path / "python"
    if text is not None:
        named.write_text(text)
        named.chmod(0o755)
    with pytest.raises(InputError, match="--python"):
        examine_here(named, tmp_path, environment())


def test_a_folder_with_little_room_says_what_would_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_MB", 1 << 40)
    found = machine.room(tmp_path / "not" / "yet")
    assert found.state == "partly"
    assert "--most-mb" in (found.next or "")


def test_what_the_system_does_not_tell_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.proc, "PROC", tmp_path)
    states = {check.part: check.state for check in machine.machine_checks(tmp_path)}
    assert {states[name] for name in ("waiting for a processor", "pressure", "storage I/O")} == {"no"}
