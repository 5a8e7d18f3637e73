"""Whatever ends an import, the store is whole, nothing is left on the disk and no process runs on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.waiting import alive, until

WAITING = """
import json, os, signal, sys, time
from pathlib import Path
from teller_core import cli, pipeline
from teller_core.rebuild.nest import nest
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may have had it ignored, as nohup does
here, where, importing = Path(sys.argv[1]), sys.argv[2], os.getpid()
def waiting(trace):
    if len(trace) > 1 and (where == "reader" or os.getpid() != importing):
        (here / f"pid-{os.getpid()}").touch()
        time.sleep(600)
    return nest(trace)
def held(*given):
    (here / f"pid-{os.getpid()}").touch()
    time.sleep(600)
changed = {"rebuild": {"rebuild": held}, "judge": {"assess": held}}.get(where, {"nest": waiting})
import dataclasses
pipeline.import_paths.__kwdefaults__["stages"] = dataclasses.replace(pipeline.STAGES, **changed)
sys.argv = ["teller", *sys.argv[3:]]
sys.exit(cli.main())
"""
ONE_LINE = "teller: interrupted. What is stored is whole; run it again.\n"


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in range(2):
        rows = [
            {"ph": "X", "name": "a", "cat": "cpu_op", "pid": rank, "tid": 1, "ts": at, "dur": 1} for at in range(99)
        ]
        (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": rows}))
    return folder


def started(ranks: Path, where: str) -> "subprocess.Popen[str]":
    """An import that waits at a stage: wherever files are read, in processes of their own alone, or later."""
    here = ranks.parent / "here"
    here.mkdir(exist_ok=True)
    (ranks.parent / "kept").mkdir(exist_ok=True)
    words = ["import", str(ranks), "--jobs", "2", "--db", str(ranks.parent / "kept" / "t.db")]
    command = [sys.executable, "-c", WAITING, str(here), where, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def waited(ranks: Path, count: int) -> list[int]:
    """The processes that have reached the stage, when ``count`` have."""
    until(lambda: len(list((ranks.parent / "here").iterdir())) >= count)
    found = list((ranks.parent / "here").iterdir())
    return [int(path.name.partition("-")[2]) for path in found]


def gone(pids: Sequence[int]) -> bool:
    """Whether all processes have ended, or do so soon."""
    until(lambda: not any(map(alive, pids)))
    return True


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")


@pytest.mark.slow
@pytest.mark.parametrize(("where", "count"), [("reader", 2), ("rebuild", 1), ("judge", 1)])
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_an_import_with_130_one_line_and_nothing_left(
    ranks: Path, where: str, count: int, times: int
) -> None:
    with started(ranks, where) as process:
        pids = waited(ranks, count)
        for _ in range(times):
            os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all of them
        out, err = process.communicate(timeout=200)
    assert (process.returncode, out, err) == (130, "", ONE_LINE)
    assert gone(pids)
    assert os.listdir(ranks.parent / "kept") == ["t.db"]
    with Store.open(ranks.parent / "kept" / "t.db") as store:
        assert store.captures() == []
        (report,) = import_paths([ranks], store).captures
    assert not report.already_known


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_told_to_end_leaves_as_little_as_ctrl_c(ranks: Path, number: signal.Signals) -> None:
    with started(ranks, "reader") as process:
        pids = waited(ranks, 2)
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=200)
    assert (process.returncode, out, err) == (128 + number, "", ONE_LINE)
    assert gone(pids)
    assert os.listdir(ranks.parent / "kept") == ["t.db"]


@pytest.mark.slow
@pytest.mark.parametrize(("where", "count"), [("reader", 2), ("judge", 1)])
def test_after_a_kill_the_store_opens_and_the_next_import_tidies_up(ranks: Path, where: str, count: int) -> None:
    with started(ranks, where) as process:
        pids = waited(ranks, count)
        process.kill()
        process.communicate(timeout=200)
    assert gone(pids)
    with Store.open(ranks.parent / "kept" / "t.db") as store:
        assert store.captures() == []
        (report,) = import_paths([ranks], store).captures
    assert not report.already_known
    assert os.listdir(ranks.parent / "kept") == ["t.db"]


@pytest.mark.slow
def test_a_reader_that_is_killed_ends_the_import_in_one_line_and_leaves_nothing(ranks: Path) -> None:
    with started(ranks, "reader apart") as process:
        pids = waited(ranks, 1)
        os.kill(pids[0], signal.SIGKILL)
        out, err = process.communicate(timeout=200)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert "the process that read it was killed" in err and "--jobs 1" in err
    assert gone(pids)
    assert os.listdir(ranks.parent / "kept") == ["t.db"]
