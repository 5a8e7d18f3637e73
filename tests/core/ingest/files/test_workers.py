"""Files read side by side are what they are when read one after the other, and no process outlives the reading."""

import errno
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller_core.data.trace import Trace
from teller_core.data.tree import Tree
from teller_core.errors import FormatError, OutOfRoom
from teller_core.ingest.files import room, workers
from teller_core.ingest.files.handover import pack, unpack
from teller_core.ingest.files.workers import Task, read_each
from teller_core.ingest.found import Place
from teller_core.ingest.reading import How, Reading, plan, read_trees
from teller_core.pipeline import import_paths
from teller_core.rebuild.nest import nest
from teller_core.store.store import Store

DATA = Path(__file__).parents[3] / "data"


def trace(path: Path, events: int, names: int = 7) -> Path:
    rows = [
        {
            "ph": "X", "name": f"op {at % names}\u00e9", "cat": "kernel" if at % 3 else "cuda_runtime", "pid": at % 2, "tid": 1,
            "ts": 1_700_000_000_000_000 + at * 10, "dur": 5, "args": {"correlation": at // 2, "a": at % 11},
        }
        for at in range(events)
    ]  # fmt: skip
    path.write_text(json.dumps({"traceEvents": rows, "distributedInfo": {"rank": len(path.stem), "world_size": 9}}))
    return path


def folder(tmp_path: Path) -> Path:
    """Four ranks, a recorded process, a caller and a log without years."""
    made = tmp_path / "run"
    made.mkdir()
    for at, events in enumerate((40, 900, 3, 0)):
        trace(made / f"rank{'x' * at}.json", events)
    shutil.copy(DATA / "host_records" / "vllm" / "input.jsonl", made / "host-10556.jsonl")
    shutil.copy(DATA / "client_records" / "vllm_metrics" / "input.jsonl", made / "client.jsonl")
    shutil.copy(DATA / "engine_log" / "vllm_v1" / "input.log", made / "a.log")
    shutil.copy(DATA / "engine_log" / "vllm_v0_with_prompt" / "input.log", made / "b.log")
    (made / "cut.json").write_text('{"traceEvents": [{"ph": "X", "ts": 1')
    return made


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal to the last column."""
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and np.array_equal(one, other))
    if is_dataclass(one) and not isinstance(one, type):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, Sequence) and not isinstance(one, str | bytes):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def read(path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch) -> Reading:
    monkeypatch.setattr("teller_core.ingest.reading.secrets.token_bytes", bytes)
    (group,) = plan([path])
    return read_trees(group, nest, None, How(jobs=jobs))


def test_what_is_read_side_by_side_is_what_is_read_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = folder(tmp_path)
    alone, beside = (read(made, jobs, monkeypatch) for jobs in (1, 3))
    assert len(alone.trees) == 5 and sum(len(tree) for tree in alone.trees) > 900
    assert same(alone, beside)
    assert [f.problems for f in beside.recording.files if f.name == "cut.json"] == [{"broken_file": 1}]
    assert all_have_ended()


def test_two_imports_of_it_say_the_same(tmp_path: Path) -> None:
    made = folder(tmp_path)
    said: list[Any] = []
    for jobs in (1, 2):
        with Store.open(tmp_path / f"{jobs}.db") as store:
            (report,) = import_paths([made], store, jobs=jobs).captures
        said.append(report.model_dump(exclude={"imported_at"}))
    assert said[0] == said[1]
    assert sorted(os.listdir(tmp_path)) == ["1.db", "2.db", "run"]


def test_a_refusal_is_that_of_the_first_file_in_order(tmp_path: Path) -> None:
    good = trace(tmp_path / "a.json", 2000)
    broken = [tmp_path / "b.json", tmp_path / "c.json"]
    for path in broken:
        path.write_text('{"traceEvents": [{"ph": "X", "ts": 1')
    for jobs in (1, 3):
        (group,) = plan([good, *broken])
        with pytest.raises(FormatError, match=r"^b\.json: "):
            read_trees(group, nest, None, How(tmp_path, jobs))
    assert all_have_ended()
    assert sorted(os.listdir(tmp_path)) == ["a.json", "b.json", "c.json"]


def all_have_ended() -> bool:
    """Whether the readers end by themselves: those that have sent their result do so a moment later."""
    for process in multiprocessing.active_children():
        process.join(100)
    return multiprocessing.active_children() == []


def tasks(tmp_path: Path, count: int, events: int = 50) -> list[Task]:
    paths = [trace(tmp_path / f"{at}.json", events) for at in range(count)]
    return [Task(path, "kineto", Place(file=at), path.stat().st_size, False) for at, path in enumerate(paths)]


def in_a_reader() -> bool:
    return multiprocessing.parent_process() is not None


def killing(trace: Trace) -> Tree:
    if in_a_reader():
        os.kill(os.getpid(), signal.SIGKILL)
    return nest(trace)


def failing(trace: Trace) -> Tree:
    if in_a_reader():
        raise ZeroDivisionError
    return nest(trace)


def signing(trace: Trace) -> Tree:
    return nest(replace(trace, problems={"read by": os.getpid()}))


def test_this_process_reads_too_while_its_readers_do(tmp_path: Path) -> None:
    reads = read_each(tasks(tmp_path, 3), signing, [lambda _: None] * 3, folder=tmp_path, jobs=2)
    by = [read.trees[0].trace.problems["read by"] for read in reads]
    assert by[0] != os.getpid()
    assert by[1] == os.getpid()
    assert all_have_ended()


def test_what_a_reader_sends_is_taken_while_this_process_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, long, last = tasks(tmp_path, 3)
    long = long._replace(path=trace(tmp_path / "long.json", 20_000))
    seen: list[bool] = []
    monkeypatch.setattr(workers, "LOOK_S", 0)

    def note(_: int) -> None:
        assert all_have_ended()  # so the first has been sent, and nobody asked for it
        monkeypatch.setattr(workers, "_take", taking)

    def taking(readers: Any, number: int) -> None:
        seen.append(bool(readers.here))
        take(readers, number)

    take = workers._take
    reads = list(read_each([first, long, last], nest, [lambda _: None, note, lambda _: None], folder=tmp_path, jobs=2))
    assert [len(read.trees[0]) for read in reads] == [50, 20_000, 50]
    assert seen[0]


def test_a_reader_that_is_killed_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    todo = tasks(tmp_path, 3)
    (tmp_path / "room").mkdir()
    workers._warm(nest, tmp_path / "room")  # what loads the compiled code is not what is killed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "_warm", lambda *_: None)
        with pytest.raises(OutOfRoom, match=r"^0\.json: the process that read it was killed"):
            list(read_each(todo, killing, [lambda _: None] * 3, folder=tmp_path / "room", jobs=2))
        with pytest.raises(RuntimeError, match="a reader of kineto failed"):
            list(read_each(todo, failing, [lambda _: None] * 3, folder=tmp_path / "room", jobs=2))
    assert all_have_ended()


def crowded(_: Trace) -> Tree:
    raise OSError(errno.ENOSPC, "no room")


def hungry(_: Trace) -> Tree:
    raise MemoryError


@pytest.mark.parametrize(("nesting", "said"), [(crowded, "there is no room on the disk"), (hungry, "memory ran out")])
def test_a_reader_that_runs_out_of_something_refuses_the_folder_and_accuses_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nesting: Callable[[Trace], Tree], said: str
) -> None:
    (tmp_path / "run").mkdir()
    for at in range(2):
        trace(tmp_path / "run" / f"{at}.json", 50)
    monkeypatch.setattr(workers, "_warm", lambda *_: None)
    with pytest.raises(OutOfRoom, match=rf"^[01]\.json: {said}"):
        read_trees(plan([tmp_path / "run"])[0], nesting, None, How(tmp_path, 2))
    assert all_have_ended()
    assert os.listdir(tmp_path) == ["run"]


def test_a_reader_that_ends_in_the_middle_of_what_it_sends_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(pipe: Any, *_: Any) -> None:
        os.write(pipe.fileno(), b"\0\0\1\0half")
        os.kill(os.getpid(), signal.SIGKILL)

    workers._warm(nest, tmp_path)
    monkeypatch.setattr(workers, "_send", half)
    with pytest.raises(OutOfRoom, match="the process that read it was killed"):
        list(read_each(tasks(tmp_path, 2), nest, [lambda _: None] * 2, folder=tmp_path, jobs=2))
    assert all_have_ended()


def test_a_reading_that_is_given_up_ends_its_readers(tmp_path: Path) -> None:
    def staying(trace: Trace) -> Tree:
        if in_a_reader() and len(trace) > 50:
            signal.pause()
        return nest(trace)

    first, *others = tasks(tmp_path, 4, 3000)
    first = first._replace(path=trace(tmp_path / "short.json", 50))
    (tmp_path / "room").mkdir()
    notes = [lambda _: None] * 4
    with closing(read_each([first, *others], staying, notes, folder=tmp_path / "room", jobs=3)) as reads:
        assert len(next(reads).trees[0]) == 50
        assert multiprocessing.active_children()
    assert all_have_ended()


def test_how_far_the_readers_are_reaches_the_end_of_every_file(tmp_path: Path) -> None:
    made = folder(tmp_path)
    told: list[tuple[str, int, int]] = []
    (group,) = plan([made])
    read_trees(group, nest, lambda name, done, total: told.append((name, done, total)), How(jobs=3))
    sizes = sum(path.stat().st_size for path in made.iterdir())
    assert {total for _, _, total in told} == {sizes}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1] == sizes


def test_few_or_small_files_are_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "cores", lambda: 8)
    large = int(workers.LEAST_S * workers.PACE["kineto"]) // workers.EXPANSION + 1
    task = Task(tmp_path, "kineto", Place(), large, True)
    assert workers.worth_apart([task, task._replace(size=9), task], None) == [0, 2]
    assert workers.worth_apart([task, task._replace(compressed=False)], None) == []
    assert workers.worth_apart([task._replace(format="engine_log", size=1 << 20, compressed=False)] * 2, None) == [0, 1]
    assert workers.worth_apart([task, task], 1) == []
    assert workers.worth_apart([task._replace(size=1)] * 3, 2) == [0, 1, 2]
    monkeypatch.setattr(workers, "cores", lambda: 1)
    assert workers.worth_apart([task, task], None) == []


def test_no_more_readers_run_at_once_than_memory_has_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    todo = tasks(tmp_path, 4)
    need = todo[0].expanded
    running: list[int] = []
    started = workers._start

    def counted(readers: Any) -> None:
        started(readers)
        running.append(len(readers.running))

    monkeypatch.setattr(workers, "_start", counted)
    for left, most in ((need // 2, 1), (int(need * 2.5 / workers.SHARE), 2)):
        running.clear()
        monkeypatch.setattr(workers, "memory", lambda left=left: left)
        (tmp_path / f"room{most}").mkdir()
        reads = list(read_each(todo, nest, [lambda _: None] * 4, folder=tmp_path / f"room{most}", jobs=4))
        assert [len(read.trees[0]) for read in reads] == [50] * 4
        assert max(running) == most


@pytest.mark.slow
def test_a_process_with_other_threads_is_not_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = folder(tmp_path)
    alone = read(made, 1, monkeypatch)

    def beside() -> None:
        assert workers._context().get_start_method() != "fork"
        assert same(alone, read(made, 2, monkeypatch))

    with ThreadPoolExecutor(1) as another:
        another.submit(beside).result()


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["a", "\u00e9\ud800", ""], ["a\0b", "c"], ["x"] * 5])
def test_a_tree_that_was_handed_over_is_the_same(tmp_path: Path, texts: list[str]) -> None:
    (task,) = tasks(tmp_path, 1, 30)
    (tree,) = workers.read_here(task, nest, None).trees
    one = Tree(**{**tree.__dict__, "trace": Trace(**{**tree.trace.__dict__, "args": texts})})
    trees = unpack(pack([one, tree], tmp_path / "columns"), tmp_path / "columns")
    assert same(trees, [one, tree])
    assert not (tmp_path / "columns").exists()
    assert not trees[0].trace.start.flags.writeable


def test_the_limits_of_control_groups_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").write_text("0::/a/b\n")
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 4000000 kB\n")
    (tmp_path / "groups" / "a" / "b").mkdir(parents=True)
    monkeypatch.setattr(room, "OWN", tmp_path / "own")
    monkeypatch.setattr(room, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(room, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert (room.cores(), room.memory()) == (8, 4_096_000_000)
    above = tmp_path / "groups" / "a"
    (above / "cpu.max").write_text("350000 100000\n")
    (above / "memory.max").write_text("1000000\n")
    (above / "memory.current").write_text("600000\n")
    (above / "memory.stat").write_text("anon 5\ninactive_file 100000\n")
    (above / "b" / "cpu.max").write_text("max 100000\n")
    (above / "b" / "memory.max").write_text("max\n")
    assert (room.cores(), room.memory()) == (3, 500_000)


def test_the_limits_of_the_older_control_groups_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").write_text("3:cpu,cpuacct:/x\n5:memory:/x\n1:name=systemd:/x\n")
    for name, text in {
        "cpu,cpuacct/x/cpu.cfs_quota_us": "150000\n",
        "cpu,cpuacct/x/cpu.cfs_period_us": "100000\n",
        "memory/x/memory.limit_in_bytes": "5000\n",
        "memory/x/memory.usage_in_bytes": "9000\n",
    }.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(room, "OWN", tmp_path / "own")
    monkeypatch.setattr(room, "GROUPS", tmp_path / "groups")
    assert (room.cores(), room.memory()) == (1, 0)


def test_this_machine_has_some_room() -> None:
    assert room.cores() >= 1
    assert room.memory() > 1 << 20
    command = "from teller_core.ingest.files.room import cores; print(cores())"
    taskset = shutil.which("taskset")
    if taskset:
        cpu = min(os.sched_getaffinity(0))
        done = subprocess.run([taskset, "-c", str(cpu), sys.executable, "-c", command], capture_output=True, check=True)
        assert done.stdout == b"1\n"
