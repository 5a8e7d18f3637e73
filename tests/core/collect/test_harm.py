"""Whatever happens to the recorder's disk, folder or processes, the command runs on and what was written can be read."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from teller_core.collect.environment import PLUGIN, SHIM
from teller_core.collect.ring import RESERVE
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.core.collect.children import CHILDREN, without_reason
from tests.waiting import GO, alive, until

TELLER = [sys.executable, "-m", "teller_core.cli", "capture", "--without", "nvtx", "--without", "cupti"]
WORK = f"""
import sys, time
{GO}
for number in range(600):
    if number == 50: wait_for(sys.argv[1])
    print("line", number, "-" * 200, flush=True)
    time.sleep(0.001)
print("done")
"""
"""Prints 50 lines, and the others once the file that it is given is there."""


def _begin(folder: Path, go: Path, options: Sequence[str] = ()) -> "subprocess.Popen[str]":
    command = [*TELLER, *options, "--to", str(folder), "--", sys.executable, "-c", WORK, str(go)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextlib.contextmanager
def _small_disk(folder: Path) -> Generator[Path]:
    """A file system in memory with room for little more than what is kept for the command's output."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_on_a_full_disk_the_command_prints_on(tmp_path: Path) -> None:
    with _small_disk(tmp_path / "disk") as disk:
        with _begin(disk / "b", tmp_path / "go") as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("line 0 ")
            log = disk / "b" / "server.log"
            until(lambda: log.stat().st_blocks * 512 > RESERVE // 2, process)  # room is kept at the first sweep
            with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
                while True:
                    filler.write(b"x" * 4096)
            (tmp_path / "go").touch()
            out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert out.splitlines()[-1] == "done"
        assert (disk / "b" / "server.log").read_text().count("\n") == 601


def test_a_folder_that_vanishes_costs_the_recording_and_nothing_else(tmp_path: Path) -> None:
    with _begin(tmp_path / "b", tmp_path / "go") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("line 0 ")
        until((tmp_path / "b" / "samples.jsonl").exists, process)
        shutil.rmtree(tmp_path / "b")
        (tmp_path / "go").touch()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.splitlines()[-1] == "done"
    assert err.splitlines()[-1].startswith("teller: next: ")


def test_a_bundle_of_a_killed_recorder_is_imported_and_says_so(tmp_path: Path) -> None:
    with _begin(tmp_path / "b", tmp_path / "go") as process:
        assert process.stdout is not None
        for _ in range(50):
            process.stdout.readline()
        pid = json.loads((tmp_path / "b" / "bundle.json").read_text())["pid"]
        process.kill()
        process.wait()
        (tmp_path / "go").touch()
        until(lambda: not alive(pid))
        process.stdout.read()
    assert (tmp_path / "b" / "server.log").read_text().endswith("done\n")
    with contextlib.closing(Store.open(tmp_path / "t.db")) as store:
        report = import_paths([tmp_path / "b"], store).captures[0]
    assert {name for file in report.files for name in file.problems} >= {"recording_open"}


def test_short_lived_children_leave_no_files(tmp_path: Path) -> None:
    command = [*TELLER, "--to", str(tmp_path / "b"), "--", sys.executable, "-c", CHILDREN]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert without_reason(tmp_path / "b" / "cap", done.stdout) == []


def test_nothing_of_the_recorder_remains_in_a_command_that_is_started_without_its_variable() -> None:
    code = "import os, sys, threading; print(threading.active_count(), [m for m in sys.modules if 'teller' in m])"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SHIM), str(PLUGIN)])}
    variables.pop("TELLER_CAPTURE_DIR", None)
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "1 []\n"
