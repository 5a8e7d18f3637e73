"""What is said of a recording afterwards: one thing that went wrong at a time, each with what to do."""

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from teller_core.collect.doctor.after import examine_recording
from teller_core.data.report_recording import DoctorCheck
from teller_core.errors import FormatError, InputError

S = 1_000_000_000
T = 1_795_991_000 * S
WHOLE: dict[str, Any] = {
    "schema": 2,
    "engine": "vllm",
    "pid": 2**22 + 5,
    "start_ns": T,
    "stop_ns": T + 60 * S,
    "exit": 0,
    "off": {},
    "windows": [],
    "lost": {"samples": 0, "bundle": 0},
    "ring": {"most_bytes": 512 << 20, "most_seconds": 3600, "dropped": {}},
}


def event(name: str, second: float, **fields: Any) -> str:
    return json.dumps({"ph": "I", "t": T + int(second * S), "tid": 7, "name": name, **fields}) + "\n"


SERVED = (
    event("request.received", 1, rid="a")
    + event("vllm.schedule", 2, ph="X", dur=5)
    + event("request.finished", 3, rid="a")
)


def made(folder: Path, events: str = SERVED, **about: Any) -> Path:
    (folder / "cap").mkdir()
    (folder / "bundle.json").write_text(json.dumps(WHOLE | about))
    if events:
        (folder / "cap" / "host-7-0000.jsonl").write_text(events)
    return folder


def checks(folder: Path) -> dict[str, DoctorCheck]:
    return {check.part: check for check in examine_recording(folder).checks}


def test_a_good_recording_has_nothing_to_complain_of(tmp_path: Path) -> None:
    found = checks(made(tmp_path))
    assert {check.state for check in found.values()} == {"yes"}
    assert found["requests"].found == "1 came, 1 of them ended"


def test_a_recording_without_a_request_says_whether_an_engine_ran(tmp_path: Path) -> None:
    assert "no request came" in checks(made(tmp_path, event("process", 0)))["requests"].found


def test_a_recording_of_no_known_engine_says_so(tmp_path: Path) -> None:
    assert "no engine" in checks(made(tmp_path, event("process", 0), engine=""))["requests"].found


def test_a_recording_that_no_process_heard_of_says_what_may_keep_them_from_it(tmp_path: Path) -> None:
    requests = checks(made(tmp_path, ""))["requests"]
    assert requests.state == "no"
    assert "PYTHONPATH" in (requests.next or "")


def test_one_whose_recorder_was_killed_can_still_be_imported(tmp_path: Path) -> None:
    end = checks(made(tmp_path, stop_ns=None))["end"]
    assert end.state == "partly"
    assert "import" in (end.next or "")


@pytest.mark.parametrize(("status", "words"), [(-9, "signal 9"), (3, "status 3")])
def test_how_the_command_ended_is_told(tmp_path: Path, status: int, words: str) -> None:
    assert words in checks(made(tmp_path, exit=status))["end"].found


def test_an_engine_that_made_no_step_while_requests_waited_was_stalled(tmp_path: Path) -> None:
    waiting = event("request.received", 1) * 3 + event("vllm.schedule", 2) + event("request.finished", 3)
    stall = checks(made(tmp_path, waiting))["stall"]
    assert stall.found == "the last 58 s held no step, while 2 requests had not ended"


def test_an_idle_engine_was_not_stalled(tmp_path: Path) -> None:
    assert "stall" not in checks(made(tmp_path))


def test_hooks_that_were_off_or_failed_are_named(tmp_path: Path) -> None:
    off = event("hooks_disabled", 0, package="vllm", version="0.99", tested=["0.32"])
    assert "vllm 0.99" in checks(made(tmp_path, SERVED + off))["hooks"].found


@pytest.mark.parametrize(
    ("package", "lacks"), [("torch", "over Gloo"), ("nvtx", "ranges"), ("uvicorn", "quarter second")]
)
def test_what_a_recording_lacks_where_the_hooks_of_a_library_were_off_is_told(
    tmp_path: Path, package: str, lacks: str
) -> None:
    off = event("hooks_disabled", 0, package=package, version="9.77.1", tested=["2.13"])
    hooks = checks(made(tmp_path, SERVED + off + off))["hooks"]
    assert (hooks.state, f"{package} 9.77.1" in hooks.found, lacks in hooks.found) == ("note", True, True)


def test_transformers_inside_vllm_is_no_engine_whose_hooks_are_missed(tmp_path: Path) -> None:
    off = event("hooks_disabled", 0, package="transformers", version="5.19.0", tested=["5.24"])
    assert "hooks" not in checks(made(tmp_path, SERVED + off))


def test_errors_of_hooks_are_counted_once_each(tmp_path: Path) -> None:
    failed = event("hook_error", 1, mod="vllm.schedule", err="KeyError", count=2)
    failed += event("hook_error", 2, mod="vllm.schedule", err="KeyError", count=5)
    assert "vllm.schedule KeyError (5)" in checks(made(tmp_path, SERVED + failed))["hooks"].found


def test_what_was_dropped_to_keep_the_bound_is_told(tmp_path: Path) -> None:
    dropped = {"cap/host-7.jsonl": {"pieces": 3, "bytes": 200 << 20, "until_ns": T}}
    bound = checks(made(tmp_path, ring={"most_bytes": 512 << 20, "dropped": dropped}))["bound"]
    assert bound.found == "the oldest 200 MB of 1 files were dropped, to keep within 512 MB"


def test_what_the_disk_refused_is_told(tmp_path: Path) -> None:
    (made(tmp_path, lost={"samples": 4, "bundle": 0}) / "cap" / "stats-7-0000.jsonl").write_text(
        '{"k":"P","name":"engine_stats"}\n{"k":"S","t":1}\n{"k":"C","t":2,"calls":1,"lost":9}\n'
    )
    assert checks(tmp_path)["disk"].found == "the disk refused 4 (samples), 9 (stat logger)"


def test_a_line_that_is_not_whole_tells_of_a_killed_process(tmp_path: Path) -> None:
    assert "host-7-0000.jsonl" in checks(made(tmp_path, SERVED + '{"ph": "I", "t"'))["last lines"].found


def test_windows_that_were_asked_for_and_never_made_are_missed(tmp_path: Path) -> None:
    assert checks(made(tmp_path, windows=[{"reason": "signal"}]))["windows"].state == "no"


def test_windows_that_were_made_are_counted(tmp_path: Path) -> None:
    (made(tmp_path, windows=[{"reason": "signal"}]) / "cap" / "torch-7-1.json.gz").write_bytes(b"")
    assert checks(tmp_path)["windows"].state == "yes"
    (tmp_path / "cap" / "torch-7-2.json.gz").write_bytes(b"")
    assert checks(tmp_path)["windows"].found == "2 traces of torch's profiler, from 1 window"


def test_windows_that_never_opened_are_told(tmp_path: Path) -> None:
    found = checks(made(tmp_path, windows_left=["500 requests", "slow"], windows_refused=0))["not opened"]
    assert (found.state, "500 requests, slow" in found.found) == ("note", True)
    assert "a minute" in (found.next or "")


def test_windows_that_were_due_beside_another_are_told(tmp_path: Path) -> None:
    assert checks(made(tmp_path, windows_refused=2, windows_left=[]))["not opened"].found.startswith("2 that were due")


def row(kind: str, second: int, **fields: Any) -> str:
    return json.dumps({"k": kind, "t": T + second * S, **fields}, separators=(",", ":")) + "\n"


@pytest.mark.parametrize(("fields", "state"), [({}, "no"), ({"step": 4}, "yes")])
def test_what_the_stat_logger_left_by_itself_is_a_recording_too(
    tmp_path: Path, fields: dict[str, Any], state: str
) -> None:
    (tmp_path / "stats-7-0000.jsonl").write_text(row("S", 1, e=0, **fields) + row("F", 2, id="a"))
    found = checks(tmp_path)
    assert (found["recorder"].state, found["requests"].state, found["steps"].state) == ("note", "yes", state)
    assert state == "yes" or "--enable-logging-iteration-details" in (found["steps"].next or "")


def _gpu_window(folder: Path, footer: dict[str, Any]) -> None:
    blocks = [(1, b"{}"), (4, json.dumps(footer).encode())]
    data = b"TLRCUPT1" + b"".join(struct.pack("<IIII", 0x4B4C4254, kind, 1, len(body)) + body for kind, body in blocks)
    (folder / "cap" / "cupti-7-1.bin").write_bytes(data)


@pytest.mark.parametrize(
    ("footer", "state"), [({"kernels": 0, "reason": "asked"}, "no"), ({"kernels": 5, "reason": "asked"}, "yes")]
)
def test_a_gpu_window_without_a_kernel_is_no_window(tmp_path: Path, footer: dict[str, Any], state: str) -> None:
    _gpu_window(made(tmp_path), footer)
    assert checks(tmp_path)["GPU windows"].state == state


@pytest.mark.parametrize(
    ("footer", "told"),
    [
        ({"kernels": 0, "reason": "other_client"}, "another client had CUPTI"),
        ({"kernels": 9, "reason": "gave_way"}, "the program started a profiler of its own"),
        ({"kernels": 0, "reason": "blinded"}, "CUPTI gives this process no kernels any more"),
    ],
)
def test_a_gpu_window_that_was_refused_says_why(tmp_path: Path, footer: dict[str, Any], told: str) -> None:
    _gpu_window(made(tmp_path), footer)
    found = checks(tmp_path)["GPU windows"]
    assert told in found.found and found.state in ("no", "partly")


@pytest.mark.parametrize(("slower", "told"), [(1.0, False), (1.3, True)])
@pytest.mark.parametrize("by", ["cupti", "torch"])
def test_a_service_that_stays_slower_after_a_window_is_told(tmp_path: Path, slower: float, told: bool, by: str) -> None:
    rng, at, lines = random.Random(4), 1.0, [SERVED]
    window = [0.0, 0.0]
    for step in range(140):
        if step in (60, 70):
            window[step == 70] = at
            lines += [event("profile_start" if step == 60 else "profile_stop", at, cost=1)] * (by == "torch")
        lines.append(event("vllm.schedule", at, ph="X", dur=5, n=step, tokens={"a": 1, "b": 3}))
        at += 0.01 * rng.uniform(0.9, 1.1) * (slower if step >= 70 else 1)
    folder = made(tmp_path, "".join(lines))
    if by == "cupti":
        first, last = (T + int(second * S) for second in window)
        _gpu_window(folder, {"kernels": 5, "reason": "steps", "open": [first, first + 5], "close": [last - 5, last]})
    found = checks(tmp_path).get("after windows")
    assert (found is not None and "longer" in found.found) is told


def test_a_gpu_window_that_was_cut_is_told(tmp_path: Path) -> None:
    (made(tmp_path) / "cap" / "cupti-7-1.bin").write_bytes(b"TLRCUPT1" + struct.pack("<IIII", 0x4B4C4254, 1, 1, 50))
    assert "1 of them cut" in checks(tmp_path)["GPU windows"].found


def test_samples_that_were_not_taken_are_told(tmp_path: Path) -> None:
    times = [T, T + S // 10, T + 8 * S]
    lines = "".join(json.dumps({"t": time, "pid": 0, "name": "x_ns", "value": 1}) + "\n" for time in times)
    (made(tmp_path) / "samples-0000.jsonl").write_text(lines)
    assert "7.9 s" in checks(tmp_path)["samples"].found


def test_a_folder_that_was_not_recorded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no recording"):
        examine_recording(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        examine_recording(tmp_path / "none")


def test_a_description_that_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text("{")
    with pytest.raises(FormatError):
        examine_recording(tmp_path)
