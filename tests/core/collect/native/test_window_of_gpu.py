"""Who records a window: the library where it has the GPU, torch's profiler where not; never both at CUPTI."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import teller_core.collect
from teller_core.collect.bundle import record
from teller_core.collect.cupti.footers import outcomes
from teller_core.collect.doctor.after import examine_recording
from teller_core.collect.windows.control import Window, ask, close
from teller_core.collect.windows.triggers import Plan
from tests.core.collect.native.fake_runs import HERE, Run, found_in

pytest.importorskip("cupti", reason="cupti-python is not installed")
SHIM = Path(teller_core.collect.__file__).parent / "shim"
PATH = f"{SHIM}:{HERE.parents[3]}"
TORCH = """
import json, threading
import torch
from teller_core.collect.windows.control import Window, ask, close
def seen(name):
    return [json.loads(line) for path in cap.glob("host-*.jsonl") for line in path.open() if '"name": "%s"' % name in line]
def operators():
    (torch.ones(16, 16) @ torch.ones(16, 16)).sum()
"""


def _operators(folder: Path) -> set[str]:
    found: set[str] = set()
    for path in folder.glob("cap/torch-*.json*"):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        found |= {event["name"] for event in json.loads(text)["traceEvents"] if "name" in event}
    return found


def test_asking_for_a_window_asks_the_library_too_where_the_capture_has_it(tmp_path: Path) -> None:
    ask(tmp_path, Window(2.5, 7, 900))
    assert not (tmp_path / "CUPTI").exists()
    (tmp_path / ".cupti-layout").write_text("")
    ask(tmp_path, Window(2.5, 7, 900, host=True))
    assert (tmp_path / "CUPTI").read_text() == "2500 900 steps=7"
    ask(tmp_path, Window(2.5, 7, 900, at=17))
    assert (tmp_path / "CUPTI").read_text() == "2500 900 steps=7 at=17"
    ask(tmp_path, Window(2.5, 7, 900, host=True))
    assert (tmp_path / "PROFILE").read_text() == "2.5 steps=7 events=900 reason=call host"
    close(tmp_path)
    assert not (tmp_path / "CUPTI").exists()


@pytest.mark.slow
@pytest.mark.parametrize("host", [False, True])
def test_where_the_library_has_the_gpu_the_profiler_runs_for_the_host_alone(
    run: Run, tmp_path: Path, host: bool
) -> None:
    done = run(
        TORCH
        + f"""
ask(cap, Window(600, host={host}))
until(ours.teller_recording)
until(lambda: seen("profile_start") if {host} else seen("profile_gpu"))
feed(fake, step_of_two_launches(time.time_ns(), 1, 3, 9))
operators()
close(cap)
until(ours.teller_windows_ended)
until(lambda: seen("profile_stop") if {host} else True)
""",
        PYTHONPATH=PATH,
    )
    assert done.returncode == 0, done.stderr
    assert found_in(tmp_path).kept == 4
    assert ("aten::mm" in _operators(tmp_path)) is host


@pytest.mark.slow
def test_where_the_library_refuses_the_profiler_takes_the_window(run: Run, tmp_path: Path) -> None:
    done = run(
        TORCH
        + """
ask(cap, Window(600))
until(lambda: seen("profile_start"))
operators()
close(cap)
until(lambda: seen("profile_stop"))
""",
        PYTHONPATH=PATH,
        FAKE_CUPTI_TAKEN="1",
    )
    assert done.returncode == 0, done.stderr
    assert found_in(tmp_path).problems == {"cupti_other_client": 1}
    assert "aten::mm" in _operators(tmp_path)


@pytest.mark.slow
def test_where_cuda_was_never_used_the_profiler_takes_the_window(run: Run, tmp_path: Path) -> None:
    done = run(
        TORCH + 'ask(cap, Window(600))\nuntil(lambda: seen("profile_start"))\noperators()\nclose(cap)\n'
        'until(lambda: seen("profile_stop"))\n',
        begin=False,
        PYTHONPATH=PATH,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.glob("cap/cupti-*"))
    assert "aten::mm" in _operators(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("host", [False, True])
def test_a_profiler_of_the_program_s_own_gets_cupti_for_itself(run: Run, tmp_path: Path, host: bool) -> None:
    done = run(
        TORCH
        + f"""
ask(cap, Window(600, host={host}))
until(lambda: seen("profile_start") if {host} else seen("profile_gpu"))
until(ours.teller_recording)
time.sleep(0.1)
with torch.profiler.profile() as profiler:
    print(ours.teller_windows_ended(), [k for k in range(60) if fake.fake_enabled(k)])
    operators()
print(any(event.key == "aten::mm" for event in profiler.key_averages()))
""",
        PYTHONPATH=PATH,
    )
    assert done.stdout.splitlines() == ["1 []", "True"], done.stderr
    assert found_in(tmp_path).problems == {"cupti_gave_way": 1}


def test_a_window_ends_after_its_steps_and_says_so(run: Run, tmp_path: Path) -> None:
    done = run("""
print(ours.teller_has_cuda(), ours.teller_window(ctypes.c_uint64(5)))
open_now(steps=3)
asked = ctypes.c_uint64((cap / "CUPTI").stat().st_mtime_ns)
print(ours.teller_window(asked))
for step in (4, 4, 5, 6, 7):
    ours.teller_step(ctypes.c_uint64(step)); print(fake.fake_step() == step); ours.teller_step_end()
until(lambda: ours.teller_windows_ended() == 1)
until(lambda: ours.teller_window(asked) == 3)
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "-1", "1", *["True"] * 4, "False"]
    found = found_in(tmp_path)
    assert found.problems == {"no_kernels": 1}
    (outcome,) = outcomes(tmp_path / "cap")
    assert (outcome["reason"], outcome["kernels"]) == ("steps", 0)


def test_a_window_opens_at_the_time_that_was_asked_for_if_it_is_still_asked(run: Run, tmp_path: Path) -> None:
    done = run("""
open_window(cap, 600, at=time.time_ns() + 30_000_000_000)
asked = ctypes.c_uint64((cap / "CUPTI").stat().st_mtime_ns)
until(lambda: ours.teller_window(asked) == 0)
close_window(cap)
until(lambda: ours.teller_window(asked) == 2)
at = time.time_ns() + 400_000_000
open_now(at=at)
close_now()
print(at)
""")
    assert done.returncode == 0, done.stderr
    found = found_in(tmp_path)
    (window,) = found.windows
    assert 0 <= window.start - int(done.stdout) < 200_000_000


def test_what_the_window_held_up_is_a_stop_of_the_recorder_s_own(run: Run, tmp_path: Path) -> None:
    done = run("open_now(); feed(fake, step_of_two_launches(time.time_ns(), 1, 3, 9)); time.sleep(0.3); close_now()")
    assert done.returncode == 0, done.stderr
    found = found_in(tmp_path)
    (window,) = found.windows
    assert window.kind == "cupti"
    assert {pause.kind for pause in found.pauses} == {"profiler_stop"}
    # Not the time in which it only waits: 0.3 s of ours, and 0.05 s in which what runs at its end may end too.
    assert window.stop - window.start - sum(pause.dur for pause in found.pauses) > 350_000_000
    assert all(window.start <= pause.start and pause.start + pause.dur <= window.stop for pause in found.pauses)


@pytest.mark.parametrize(
    ("footer", "pauses"),
    [
        ({"stalls": [[5, 7], [9, 9], [20, 30]]}, [(5, 2), (20, 10)]),
        ({"open": [5, 7], "close": [20, 90]}, [(5, 2)]),
        ({"stalls": [[7, 5], [1], "x", [1, 1 << 63], [-1, 4], [True, 3], None]}, []),
        ({"stalls": 7}, [(3, 1)]),
    ],
)
def test_stalls_are_read_from_the_footer_and_nonsense_is_none(
    run: Run, tmp_path: Path, footer: dict[str, Any], pauses: list[tuple[int, int]]
) -> None:
    done = run("open_now(); close_now()")
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("cap/cupti-*-1.bin")
    data = path.read_bytes()
    at = data.rindex(b'{"reason"')
    text = json.dumps({"reason": "asked", "kernels": 1, "open": [3, 4], **footer}).encode()
    head = data[: at - 4] + len(text).to_bytes(4, "little")
    path.write_bytes(head + text)
    assert [(pause.start, pause.dur) for pause in found_in(tmp_path).pauses] == pauses


def test_a_capture_opens_windows_on_the_gpu_by_its_plan_and_tells_what_came_of_them(fake: Path, tmp_path: Path) -> None:
    program = """
import ctypes, os, sys, time
fake, ours = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
from tests.core.collect.native.records import feed, sizes, step_of_two_launches
sizes(fake)
ours.InitializeInjection()
end, step = time.monotonic() + 90, 0
while ours.teller_windows_ended() < 1 and time.monotonic() < end:
    step += 1
    ours.teller_step(ctypes.c_uint64(step))
    feed(fake, step_of_two_launches(time.time_ns(), 2 * step, step, 9))
    ours.teller_step_end()
    time.sleep(0.01)
"""
    plan = Plan(at_seconds=(0.2,), window=Window(600, 4))
    bundle = tmp_path / "bundle"
    variables = {"PYTHONPATH": str(HERE.parents[3])}
    command = [sys.executable, "-c", program, str(fake)]
    with record(command, bundle, variables, plan=plan, without=["hooks", "plugin", "samples"]) as service:
        service.process.wait(100)
    about = json.loads((bundle / "bundle.json").read_text())
    assert [(row["reason"], row["steps"]) for row in about["windows"]] == [("time", 4)]
    (window,) = about["gpu_windows"]
    assert window["reason"] == "steps" and window["kernels"] >= 8 and window["file"].endswith("-1.bin")
    assert "GPU windows" in {check.part for check in examine_recording(bundle).checks if check.state == "yes"}
