"""``teller capture``: the command ends, hears and prints as it would without us, and the bundle is whole."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.core.collect.test_ring import can_punch
from tests.waiting import until

TELLER = [sys.executable, "-m", "teller_core.cli"]
WAIT_S = 60


def _begin(folder: Path, code: str, *options: str, **how: Any) -> "subprocess.Popen[str]":
    command = [*TELLER, "capture", "--to", str(folder), "--without", "nvtx", "--without", "cupti", *options]
    return subprocess.Popen(
        [*command, "--", sys.executable, "-u", "-c", code],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **how},
    )


def _run(folder: Path, code: str, *options: str, **how: Any) -> tuple[int, str, str]:
    with _begin(folder, code, *options, **how) as process:
        out, err = process.communicate(timeout=WAIT_S)
    return process.returncode, out, err


def _about(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "bundle.json").read_text())


def test_output_errors_and_exit_code_are_the_commands_own(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
    status, out, err = _run(tmp_path / "b", code)
    assert (status, out) == (7, "out\n")
    first, *rest = err.splitlines()
    assert first.startswith("teller: recording hooks") and rest[0] == "err"
    assert rest[-1] == f"teller: next: teller import {tmp_path / 'b'}"
    assert (tmp_path / "b" / "server.log").read_text() == "out\n"
    assert (tmp_path / "b" / "server-errors.log").read_text() == "err\n"
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "b").glob("server*.log")} == {0o600}
    about = _about(tmp_path / "b")
    assert (about["schema"], about["exit"]) == (2, 7)
    assert about["start_ns"] < about["stop_ns"]


def test_a_command_that_a_signal_ends_gives_the_code_that_a_shell_would(tmp_path: Path) -> None:
    status, _, err = _run(tmp_path / "b", "import os; os.kill(os.getpid(), 9)")
    assert status == 128 + 9
    assert "ended by signal 9" in err
    assert _about(tmp_path / "b")["exit"] == -9


def test_quiet_shows_nothing_of_the_command_and_json_leaves_its_output_to_the_errors(tmp_path: Path) -> None:
    assert _run(tmp_path / "q", "print('out')", "--quiet")[1] == ""
    status, out, err = _run(tmp_path / "j", "print('out')", "--json")
    report = json.loads(out)
    assert (status, report["exit"], report["next_call"]) == (0, 0, f"teller import {tmp_path / 'j'}")
    assert "out\n" in err
    assert {part["part"] for part in report["off"]} == {"nvtx", "cupti", "log"}


def test_a_command_with_options_like_ours_keeps_them(tmp_path: Path) -> None:
    command = [*TELLER, "capture", "--to", str(tmp_path / "b"), "--", "echo", "--json", "--", "--debug"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "--json -- --debug\n"
    refused = subprocess.run(
        [*TELLER, "capture", "--", "no-such-program", "--json"], capture_output=True, text=True, check=False
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux tells the signals of each thread")
def test_no_thread_takes_the_signal_that_says_that_the_command_has_ended(tmp_path: Path) -> None:
    code = """
import os, pathlib, time
tasks = pathlib.Path(f"/proc/{os.getppid()}/task")
while len(os.listdir(tasks)) < 4: time.sleep(0.01)  # the first, who records, and one for each of our outputs
states = [(task / "status").read_text() for task in tasks.iterdir()]
print(*[line.split()[1] for state in states for line in state.splitlines() if line.startswith("SigBlk")])
"""
    several = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    _, out, _ = _run(tmp_path / "b", code, env={**several, "OPENBLAS_NUM_THREADS": "4"})
    child = 1 << signal.SIGCHLD - 1
    taking = [mask for mask in out.split() if not int(mask, 16) & child]
    assert len(out.split()) >= 4 and len(taking) <= 1  # who waits for it


def test_a_signal_that_comes_before_the_command_runs_ends_the_recorder(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from teller_core.collect import run\n"
        "prepare = run.prepare\n"
        "def signaled(folder):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return prepare(folder)\n"
        "run.prepare = signaled\n"
        "from teller_core.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ["capture", "--without", "nvtx", "--without", "cupti", "--to", str(tmp_path / "b"), "--", "echo", "ran"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert "interrupted" in done.stderr


def test_standard_input_reaches_the_command(tmp_path: Path) -> None:
    with _begin(tmp_path / "b", "print(input().upper())", stdin=subprocess.PIPE) as process:
        assert process.communicate("hello\n", timeout=WAIT_S)[0] == "HELLO\n"


COUNTS = """
import signal, sys, time
heard = []
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2): signal.signal(each, lambda number, _: heard.append(number))
end, last = time.monotonic() + 100, time.monotonic()
print("ready")
while time.monotonic() < end and not (heard and time.monotonic() > last + 0.7):
    before = len(heard); time.sleep(0.05)
    if len(heard) > before or not heard: last = time.monotonic()
print(heard)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR2])
def test_a_signal_that_was_sent_to_us_is_handed_on_once(tmp_path: Path, number: int) -> None:
    with _begin(tmp_path / "b", COUNTS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, _ = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (0, f"[{int(number)}]\n")
    assert _about(tmp_path / "b")["exit"] == 0


def test_ctrl_c_on_a_terminal_reaches_the_command_once_and_the_bundle_is_closed(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if not pid:
        command = [*TELLER, "capture", "--to", str(tmp_path / "b"), "--without", "nvtx", "--without", "cupti"]
        os.execv(command[0], [*command, "--", sys.executable, "-u", "-c", COUNTS])
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:  # the other end is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    assert b"[2]" in shown
    assert _about(tmp_path / "b")["exit"] == 0
    assert not (tmp_path / "b" / "server-errors.log").exists()  # one terminal, one log


def test_a_capture_that_was_stopped_and_goes_on_hears_what_it_did_before(tmp_path: Path) -> None:
    with _begin(tmp_path / "b", COUNTS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (0, f"[{int(signal.SIGTERM)}]\n")


def test_signals_that_were_ignored_when_we_were_started_stay_so_for_the_command(tmp_path: Path) -> None:
    code = "import signal; print([signal.getsignal(number) is signal.SIG_IGN for number in (1, 2, 15)])"
    ignoring = "import os, signal, sys\nfor number in (1, 2): signal.signal(number, signal.SIG_IGN)\n"
    ignoring += "os.execv(sys.argv[1], sys.argv[1:])"
    command = [*TELLER, "capture", "--to", str(tmp_path / "b"), "--", sys.executable, "-c", code]
    done = subprocess.run([sys.executable, "-c", ignoring, *command], capture_output=True, text=True, check=True)
    assert done.stdout == "[True, True, False]\n"


def test_the_command_has_no_signal_held_back_and_none_of_our_files(tmp_path: Path) -> None:
    code = "import os, signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []), len(os.listdir('/proc/self/fd')))"
    assert _run(tmp_path / "b", code)[1] == "set() 4\n"  # three streams, and the folder that it looks into


def test_sigusr1_asks_for_a_window(tmp_path: Path) -> None:
    asked = "os.path.exists(os.environ['TELLER_CAPTURE_DIR'] + '/PROFILE')"
    code = f"import os, time\nprint('ready')\nwhile not {asked}: time.sleep(0.01)"
    with _begin(tmp_path / "b", code) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert [window["reason"] for window in _about(tmp_path / "b")["windows"]] == ["signal"]


def test_the_killed_recorder_leaves_the_command_running_and_the_bundle_as_it_was(tmp_path: Path) -> None:
    code = "import time\nfor number in range(10_000):\n    print('line', number)\n    time.sleep(0.02)"
    with _begin(tmp_path / "b", code) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "line 0\n"
        pid = _about(tmp_path / "b")["pid"]
        until(lambda: "line 40" in (tmp_path / "b" / "server.log").read_text(), process)
        samples = tmp_path / "b" / "samples.jsonl"
        until(lambda: samples.exists() and f'"pid":{pid},' in samples.read_text(), process)
        process.kill()
        process.wait()
        before = (tmp_path / "b" / "server.log").read_text()
        until(lambda: (tmp_path / "b" / "server.log").read_text().count("\n") >= before.count("\n") + 50)
        os.kill(pid, signal.SIGKILL)
        assert process.stderr is not None
        process.stderr.read()
    about = _about(tmp_path / "b")
    assert "stop_ns" not in about and about["start_ns"]
    rows = [json.loads(row) for row in samples.read_text().splitlines()]
    assert {row["pid"] for row in rows} == {0, pid}


def test_a_capture_inside_a_capture_is_refused(tmp_path: Path) -> None:
    inner = [*TELLER, "capture", "--to", str(tmp_path / "inner"), "--", "true"]
    code = f"import subprocess, sys; sys.exit(subprocess.run({inner!r}).returncode)"
    status, _, err = _run(tmp_path / "b", code)
    assert status == 2
    assert "it is part of a capture already" in err
    assert not (tmp_path / "inner").exists()


def test_a_folder_that_cannot_be_used_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    for folder in (tmp_path, tmp_path / "kept", Path("/proc/nowhere")):
        status, out, err = _run(folder, "print('ran')")
        assert (status, out) == (2, "")
        assert err.startswith("teller: The folder to record into: ") and err.count("\n") == 1


def test_what_nobody_reads_any_more_does_not_stop_the_command(tmp_path: Path) -> None:
    code = "import time\nfor number in range(40):\n    print('x' * 70000)\n    time.sleep(0.02)"
    with _begin(tmp_path / "b", code) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(WAIT_S) == 0
        assert process.stderr is not None
        process.stderr.read()
    assert (tmp_path / "b" / "server.log").stat().st_size == 40 * 70001


def _shell(folder: Path, script: str, behind: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """The shell ``script`` under the recorder, its output piped into the shell command ``behind``."""
    command = [*TELLER, "capture", "--to", str(folder), "--without", "nvtx", "--without", "cupti", *options, "--", "sh"]
    line = f"({shlex.join([*command, '-c', script])} 2>/dev/null; echo $? >&2) | ({behind})"
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=WAIT_S, check=False)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exec sh -c 'while :; do echo y; done'", 141),
        ("sh -c 'while :; do echo y; done'; exit 7", 7),
        ("while :; do echo y; sleep 0.05; done", 141),
    ],
)
def test_who_prints_though_nobody_reads_ends_as_at_a_pipe(tmp_path: Path, script: str, status: int) -> None:
    done = _shell(tmp_path / "b", script, "head -1")
    assert (done.stdout, done.stderr) == ("y\n", f"{status}\n")


def test_a_slow_reader_gets_all_though_the_bundle_keeps_less(tmp_path: Path) -> None:
    if not can_punch(tmp_path):
        pytest.skip("this file system cannot give back the beginning of a file")
    reads_late = f"""{shlex.quote(sys.executable)} -c "
import os, sys, time
late = time.monotonic() + 30
while time.monotonic() < late:
    try: begins = os.lseek(os.open(sys.argv[1], os.O_RDONLY), 0, os.SEEK_DATA)
    except OSError: begins = 0
    if begins: break
    time.sleep(0.1)
" {shlex.quote(str(tmp_path / "b" / "server.log"))}; cksum"""
    done = _shell(tmp_path / "b", "yes abcdefg | head -c 12000000", reads_late, "--most-mb", "16")
    plain = subprocess.run(
        ["sh", "-c", "yes abcdefg | head -c 12000000 | cksum"], capture_output=True, text=True, check=True
    )
    assert done.stdout == plain.stdout
    assert _about(tmp_path / "b")["ring"]["dropped"]["server.log"]["bytes"]


def test_a_reader_that_never_reads_is_waited_for_until_we_are_told_to_end(tmp_path: Path) -> None:
    with _begin(tmp_path / "b", "print('x' * 1_000_000)", stderr=subprocess.DEVNULL) as process:
        until((tmp_path / "b" / "bundle.json").exists, process)
        pid = _about(tmp_path / "b")["pid"]
        until(lambda: not Path(f"/proc/{pid}").exists(), process)
        time.sleep(3)
        assert process.poll() is None
        process.terminate()
        process.wait(WAIT_S)
        assert _about(tmp_path / "b")["exit"] == process.returncode == 0


def test_lines_of_a_shell_that_opens_its_output_by_name_are_shown(tmp_path: Path) -> None:
    here = shlex.quote(str(tmp_path))
    shown = f"until [ -e {here}/line$n ]; do sleep 0.05; done"
    script = f"for n in 1 2 3; do echo line$n > /dev/stdout; {shown}; done"
    done = _shell(tmp_path / "b", script, f"while read -r line; do echo $line; touch {here}/$line; done")
    assert (done.stdout, done.stderr) == ("line1\nline2\nline3\n", "0\n")


def test_a_command_that_could_not_be_started_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("no program\n")
    (tmp_path / "none").chmod(0o755)
    (tmp_path / "kept").mkdir()
    for folder in ("new", "kept"):
        command = [*TELLER, "capture", "--to", str(tmp_path / folder), "--", str(tmp_path / "none")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr == (
            "teller: The command to record: exec format error. Check its name and that it runs alone.\n"
        )
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["kept", "none"]


def test_the_folders_name_is_made_of_the_commands_without_what_a_terminal_or_a_shell_would_obey(tmp_path: Path) -> None:
    odd = tmp_path / "a%Y b\x1b[31m\n;c"
    odd.symlink_to("/bin/true")
    command = [*TELLER, "capture", "--", str(odd)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=_importing())
    (made,) = (path.name for path in tmp_path.iterdir() if path != odd)
    assert re.fullmatch(r"teller-a-Y-b-31m-c-\d{8}-\d{6}", made)
    assert "\x1b" not in done.stdout + done.stderr


def _importing() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}


def test_pipes_among_the_files_of_a_recording_are_not_waited_for(tmp_path: Path) -> None:
    names = "host-7-0000.jsonl stats-7.jsonl torch-7-1.json cupti-7-1.bin PROFILE"
    code = (
        f"import os\nfor name in {names!r}.split(): os.mkfifo(os.environ['TELLER_CAPTURE_DIR'] + '/' + name)\ninput()"
    )
    with _begin(tmp_path / "b", code, "--window", "start", stdin=subprocess.PIPE) as process:
        until((tmp_path / "b" / "cap" / "PROFILE").exists, process)
        until((tmp_path / "b" / "samples.jsonl").exists, process)
        _, err = process.communicate("\n", timeout=WAIT_S)
    assert process.returncode == 0
    assert err.splitlines()[-1] == f"teller: next: teller import {tmp_path / 'b'}"
    done = subprocess.run(
        [*TELLER, "doctor", str(tmp_path / "b")], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0
