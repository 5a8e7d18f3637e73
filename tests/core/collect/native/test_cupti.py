"""The CUPTI half of the library, with a libcupti of our own in a process of its own: no driver is needed."""

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from teller_core.data.trace import Layer
from teller_core.ingest.found import Place
from teller_core.ingest.recorder import cupti_records
from tests.core.collect.native.fake_runs import Run, footer, found_in

pytest.importorskip("cupti", reason="cupti-python is not installed")


def test_records_fed_to_a_window_are_read_back_with_their_steps(run: Run, tmp_path: Path) -> None:
    done = run("""
open_now()
feed(fake, [r for s in range(40) for r in step_of_two_launches(time.time_ns(), 2 * s + 1, s + 7, 4242)])
close_now()
""")
    assert done.returncode == 0, done.stderr
    found = found_in(tmp_path)
    (trace,) = found.traces
    names = Counter(trace.names[name] for name in trace.name.tolist())
    assert names == {"cudaLaunchKernel": 80, "gemm_kernel": 40, "void at::native::reduce_kernel<512>(512)": 40}
    arguments = [json.loads(text) for text in trace.args]
    rows = zip(trace.layer.tolist(), trace.link.tolist(), trace.arg.tolist(), strict=True)
    calls = {link: arguments[arg]["step"] for layer, link, arg in rows if layer == Layer.RUNTIME}
    kernels = trace.link[trace.layer == Layer.KERNEL].tolist()
    assert Counter(calls[link] for link in kernels) == dict.fromkeys(range(7, 47), 2)
    assert found.problems == {}
    assert found.events == found.kept + sum(found.other.values())


@pytest.mark.parametrize("older", ["activity_kernel9_dtype", "activity_kernel11_dtype", "activity_kernel13_dtype"])
def test_kernels_of_every_version_of_cupti_are_read_alike(run: Run, tmp_path: Path, older: str) -> None:
    done = run(f"""
fake.fake_size(ctypes.c_uint32(10), ctypes.c_size_t(size(10, {older!r})))
open_now()
now = time.time_ns()
feed(fake, [record(10, {older!r}, start=now + i, end=now + i + 5, name="k", device_id=1, stream_id=9, correlation_id=i + 1,
                   grid_x=i, grid_y=1, grid_z=1, block_x=32, block_y=1, block_z=1, graph_id=3, graph_node_id=i)
            for i in range(5)])
close_now()
""")
    assert done.returncode == 0, done.stderr
    (trace,) = found_in(tmp_path).traces
    assert trace.dur.tolist() == [5] * 5
    assert trace.lanes == [("1", "9", True)]
    said = [json.loads(trace.args[int(arg)]) for arg in trace.arg]
    assert said == [{"grid": [i, 1, 1], "block": [32, 1, 1], "graph": 3, "graph_node": i} for i in range(5)]


def test_a_window_enables_what_it_needs_and_leaves_nothing_enabled(run: Run) -> None:
    done = run("""
kinds = [k for k in range(60) if fake.fake_enabled(k)]
open_now()
print([k for k in range(60) if fake.fake_enabled(k)], fake.fake_thread_ids(), fake.fake_subscribed())
close_now()
print(kinds, [k for k in range(60) if fake.fake_enabled(k)], fake.fake_thread_ids(), fake.fake_subscribed())
open_now(whole=True)
print([k for k in range(60) if fake.fake_enabled(k)])
close_now(1)
""")
    assert done.stdout.splitlines() == [
        "[1, 2, 4, 5, 10, 17, 38, 39] 1 1",
        "[] [] 0 0",
        "[1, 2, 4, 5, 10, 17, 38, 39, 51]",
    ], done.stderr


def test_steps_are_marked_inside_windows_only(run: Run) -> None:
    done = run("""
ours.teller_step(ctypes.c_uint64(4)); print(fake.fake_step() == 2**64 - 1); ours.teller_step_end()
open_now()
ours.teller_step(ctypes.c_uint64(5)); print(fake.fake_step()); ours.teller_step_end(); print(fake.fake_step() == 2**64 - 1)
ours.teller_step(ctypes.c_uint64(6))
close_now()
ours.teller_step_end(); print(fake.fake_step() == 2**64 - 1)
""")
    assert done.stdout.split() == ["True", "5", "True", "True"], done.stderr


def test_a_step_that_began_before_the_window_is_not_marked_by_its_later_part(run: Run) -> None:
    done = run("""
ours.teller_step(ctypes.c_uint64(4)); ours.teller_step_end()
open_now()
for step in (4, 5, 5):
    ours.teller_step(ctypes.c_uint64(step)); print(fake.fake_step() == step); ours.teller_step_end()
close_now()
""")
    assert done.stdout.split() == ["False", "True", "True"], done.stderr


def test_a_thousand_windows_under_load_end_and_never_hang(run: Run, tmp_path: Path) -> None:
    done = run(
        """
records = b"".join(step_of_two_launches(time.time_ns(), 1, 1, 1))
fake.fake_load(records, 6, 3)
def is_over(i):
    asked = ctypes.c_uint64((cap / "CUPTI").stat().st_mtime_ns)
    if ours.teller_windows_ended() == i and ours.teller_window(asked) == 2:  # it was a second old when it was seen
        open_window(cap, 0.001)
    return ours.teller_windows_ended() > i
for i in range(1000):
    open_window(cap, 0.001)
    until(lambda: is_over(i))
    if i % 100: next(cap.glob(f"cupti-*-{i + 1}.bin")).unlink()
print(ours.teller_windows_ended())
os._exit(0)
""",
        TELLER_INJECT_WINDOWS="1000",
    )
    assert done.stdout.strip() == "1000", done.stderr
    kept = [found_in(tmp_path, number) for number in range(1, 1001, 100)]
    assert sum(found.kept for found in kept) > 0
    assert all(set(found.problems) <= {"no_kernels", "dropped_records"} for found in kept)


def test_a_flood_is_bounded_and_what_was_let_go_is_counted(run: Run, tmp_path: Path) -> None:
    done = run("""
records = step_of_two_launches(time.time_ns(), 1, 1, 1) * 3000
open_now(most=5000)
feed(fake, records)
until(lambda: ours.teller_windows_ended() == 1)
""")
    assert done.returncode == 0, done.stderr
    found = found_in(tmp_path)
    assert found.kept + found.other["external"] == 5000
    assert found.problems == {"cut_records": 13000}
    assert footer(tmp_path)["reason"] == "max_records"


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"FAKE_CUPTI_TAKEN": "1"}, "other_client"),
        ({"FAKE_CUPTI_VERSION": "22"}, "unknown_version"),
        ({"FAKE_CUPTI_VERSION": "140000"}, "unknown_version"),
        ({"TELLER_INJECT_LAYOUT": ""}, "layout_unreadable"),
    ],
)
def test_what_cannot_work_is_refused_by_name(run: Run, tmp_path: Path, variables: dict[str, str], reason: str) -> None:
    done = run("open_window(cap, 60); until(lambda: ours.teller_windows_ended() == 1)", **variables)
    assert done.returncode == 0, done.stderr
    found = found_in(tmp_path)
    assert (found.kept, found.problems) == (0, {f"cupti_{reason}": 1})


def test_a_process_has_so_many_windows_and_no_more(run: Run, tmp_path: Path) -> None:
    done = run(
        """
for i in range(4):
    open_window(cap, 0.001)
    until(lambda: ours.teller_windows_ended() > i)
""",
        TELLER_INJECT_WINDOWS="3",
    )
    assert done.returncode == 0, done.stderr
    assert [found_in(tmp_path, i).problems for i in (3, 4)] == [{"no_kernels": 1}, {"cupti_too_many_windows": 1}]


def test_windows_end_for_good_once_launches_bring_no_kernels(run: Run, tmp_path: Path) -> None:
    done = run("""
launches = [record(5, cbid=211, start=5, end=6, correlation_id=i + 1) for i in range(30)]
open_now(); feed(fake, launches); close_now()
open_window(cap, 60); until(lambda: ours.teller_windows_ended() == 2)
""")
    assert done.returncode == 0, done.stderr
    assert [found_in(tmp_path, i).problems for i in (1, 2)] == [{"no_kernels": 1}, {"cupti_blinded": 1}]


def test_calls_that_say_nothing_are_left_out(run: Run, tmp_path: Path) -> None:
    done = run("""
open_now()
calls = [(5, 211), (5, 17), (5, 10), (4, 307), (4, 1), (4, 10)]
feed(fake, [record(kind, cbid=cbid, start=5, end=6, thread_id=1, correlation_id=9) for kind, cbid in calls])
close_now()
""")
    assert done.returncode == 0, done.stderr
    (trace,) = found_in(tmp_path).traces
    assert sorted(trace.names) == ["cuLaunchKernel", "cudaLaunchKernel"]
    assert footer(tmp_path)["unwanted"] == 4


def test_another_client_is_no_hindrance_where_that_was_asked_for(run: Run, tmp_path: Path) -> None:
    done = run(
        """
open_now(shared=True)
feed(fake, step_of_two_launches(time.time_ns(), 1, 3, 9))
close_now()
""",
        FAKE_CUPTI_TAKEN="1",
    )
    assert done.returncode == 0, done.stderr
    assert found_in(tmp_path).kept == 4


def test_files_of_windows_keep_to_the_bytes_of_a_process(run: Run, tmp_path: Path) -> None:
    done = run(
        """
for i in range(11):
    open_now()
    feed(fake, step_of_two_launches(time.time_ns(), 1, 3, 9) * (3000 if i == 10 else 1))
    close_now(i)
""",
        TELLER_CAPTURE_BYTES="800000",
    )
    assert done.returncode == 0, done.stderr
    numbers = sorted(int(path.stem.rpartition("-")[2]) for path in tmp_path.glob("cap/cupti-*.bin"))
    assert numbers == list(range(4, 12))
    assert sum(path.stat().st_size for path in tmp_path.glob("cap/cupti-*.bin")) < 1_100_000
    assert footer(tmp_path, 11)["cut"] > 0


def test_a_killed_process_leaves_what_it_had_written(run: Run, tmp_path: Path) -> None:
    done = run("""
import struct
open_now()
feed(fake, step_of_two_launches(time.time_ns(), 1, 3, 9))
until(lambda: struct.pack("<II", 0x4B4C4254, 256 + 39) in next(cap.glob("cupti-*.bin")).read_bytes())  # the last kind's rows
time.sleep(0.3)
os.kill(os.getpid(), 9)
""")
    assert done.returncode == -signal.SIGKILL
    found = found_in(tmp_path)
    assert (found.kept, found.problems) == (4, {"cut_file": 1})


def test_a_window_ends_with_its_program(run: Run, tmp_path: Path) -> None:
    done = run("open_now(); feed(fake, step_of_two_launches(time.time_ns(), 1, 3, 9))")
    assert done.returncode == 0, done.stderr
    assert found_in(tmp_path).kept == 4
    assert footer(tmp_path)["reason"] == "exit"


def test_a_forked_child_records_its_own_windows(run: Run, tmp_path: Path) -> None:
    done = run("""
open_now()
child = os.fork()
if not child:
    assert not ours.teller_recording()
    close_window(cap)
    ours.InitializeInjection()
    open_now()
    feed(fake, step_of_two_launches(time.time_ns(), 1, 3, 9))
    close_now()
    os._exit(0)
until(lambda: os.waitpid(child, os.WNOHANG)[0])
until(ours.teller_windows_ended)
print(child)
""")
    assert done.returncode == 0, done.stderr
    assert cupti_records.read(tmp_path / "cap" / f"cupti-{done.stdout.strip()}-1.bin", Place()).kept == 4


def test_without_a_folder_nothing_is_done(run: Run, tmp_path: Path) -> None:
    program = """
before = len(os.listdir("/proc/self/task"))
print(ours.InitializeInjection(), len(os.listdir("/proc/self/task")) - before)
"""
    done = run(program, begin=False, TELLER_CAPTURE_DIR="")
    assert done.stdout.split() == ["1", "0"], done.stderr
    assert list(tmp_path.glob("cap/cupti-*")) == []


def test_a_folder_that_is_gone_harms_nothing(run: Run) -> None:
    done = run("""
import shutil
open_now()
shutil.rmtree(cap)
until(ours.teller_windows_ended)
cap.mkdir(0o500); open_window(cap, 60)
until(ours.teller_recording)
cap.joinpath("CUPTI").unlink(); cap.joinpath("cupti-%d-2.bin" % os.getpid()).unlink(); cap.rmdir(); cap.write_text("")
until(lambda: ours.teller_windows_ended() == 2)
print("well")
""")
    assert done.stdout.strip() == "well", done.stderr


def test_a_full_disk_ends_the_window_and_leaves_what_fitted(run: Run, tmp_path: Path) -> None:
    done = run("""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
open_now()
feed(fake, [r for s in range(2000) for r in step_of_two_launches(time.time_ns(), 2 * s + 1, s, 9)])
fake.cuptiActivityFlushAll(0)
until(ours.teller_windows_ended)
print("well")
""")
    assert done.stdout.strip() == "well", done.stderr
    found = found_in(tmp_path)
    assert found.problems == {"cut_file": 1}
    assert found.kept < 8000


def test_a_step_that_the_window_s_end_cut_is_not_told(run: Run, tmp_path: Path) -> None:
    done = run("""
open_now()
for step in (3, 4):
    ours.teller_step(ctypes.c_uint64(step))
    feed(fake, step_of_two_launches(time.time_ns(), 10 * step, step, 9))
    if step == 3: ours.teller_step_end()
close_now()
""")
    assert done.returncode == 0, done.stderr
    (trace,) = found_in(tmp_path).traces
    assert footer(tmp_path)["in_step"] == 1
    assert {json.loads(text).get("step") for text in trace.args} == {3, None}
    assert len(trace) == 8
