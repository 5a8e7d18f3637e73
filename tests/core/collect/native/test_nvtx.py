"""The NVTX half of the library, under programs that use NVTX in every way, that fork, that die, that find no room."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from teller_core.collect.native.build import find
from teller_core.data.trace import Trace
from teller_core.ingest.found import Found, Place
from teller_core.ingest.recorder import nvtx_tsv

ROOT = Path(__file__).parents[4]
BEGIN = """
import os, struct, sys, threading, time
from tests.core.collect.native.nvtx_client import Client, attributes
nvtx = Client(os.environ["NVTX_INJECTION64_PATH"])
def until(true):
    while not true(): time.sleep(0.01)
def written():
    files = [entry.path for entry in os.scandir(os.environ["TELLER_CAPTURE_DIR"]) if str(os.getpid()) in entry.name]
    return b"".join(open(path, "rb").read() for path in files)
def bits(code, value): return int.from_bytes(struct.pack("<" + code, value).ljust(8, b"\\0"), "little")
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library, built."""
    found = find(tmp_path_factory.mktemp("built"))
    if found.path is None:
        pytest.skip(found.reason)
    return str(found.path)


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(library: str, tmp_path: Path) -> Run:
    """Runs a program under the library; ``tmp_path / "cap"`` is where it records."""

    def runs(program: str, begin: str = BEGIN, **variables: str) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "cap").mkdir(exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TELLER_")}
        environment |= {
            "NVTX_INJECTION64_PATH": library,
            "TELLER_CAPTURE_DIR": str(tmp_path / "cap"),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-c", begin + program]
        return subprocess.run(
            command, env=environment | variables, capture_output=True, text=True, timeout=60, check=False
        )

    return runs


def read_all(folder: Path) -> list[Found]:
    """What every file holds, in the order of their names."""
    return [nvtx_tsv.read(path, Place()) for path in sorted(folder.glob("cap/nvtx-*.tsv"))]


def only(folder: Path) -> tuple[Found, Trace]:
    """What the only file holds."""
    (found,) = read_all(folder)
    (trace,) = found.traces
    return found, trace


def said(trace: Trace, name: str) -> dict[str, Any]:
    """The arguments of the one row called ``name``."""
    (row,) = [i for i in range(len(trace)) if trace.names[trace.name[i]] == name]
    said = int(trace.arg[row])
    return json.loads(trace.args[said]) if said >= 0 else {}


def test_ranges_of_several_domains_nest_each_on_its_own(run: Run, tmp_path: Path) -> None:
    done = run("""
a, b = nvtx.domain(b"a"), nvtx.domain("b\\u00fc")
print(nvtx.push(b"outer"), nvtx.push(attributes(b"in a"), a), nvtx.push(attributes(b"in b"), b), nvtx.push(b"inner"))
print(nvtx.pop(a), nvtx.pop(), nvtx.pop(), nvtx.pop(b), nvtx.pop())
""")
    assert done.stdout.split() == ["0", "0", "0", "1", "0", "1", "0", "0", "-1"], done.stderr
    found, trace = only(tmp_path)
    assert sorted(trace.names) == ["in a", "in b", "inner", "outer"]
    assert (said(trace, "in a"), said(trace, "in b")) == ({"domain": "a"}, {"domain": "bü"})
    assert found.problems == {"unmatched_pop": 1}


@pytest.mark.parametrize(
    ("kind", "bits", "text"),
    [
        (1, "bits('Q', 2**64 - 1)", "18446744073709551615"),
        (2, "bits('q', -5)", "-5"),
        (3, "bits('d', 0.25)", "0.25"),
        (4, "bits('I', 7)", "7"),
        (5, "bits('i', -7)", "-7"),
        (6, "bits('f', 1.5)", "1.5"),
    ],
)
def test_payloads_of_every_type_are_kept(run: Run, tmp_path: Path, kind: int, bits: str, text: str) -> None:
    done = run(f"nvtx.mark(attributes(b'here', payload_type={kind}, payload={bits}))")
    assert done.returncode == 0, done.stderr
    assert said(only(tmp_path)[1], "here") == {"payload": text}


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (r"'\u00e9\u4e16\U0001f600'", "é世😀"),
        (r"b'tab\there\nline\r'", "tab here line "),
        (r"b'\xff\xfe not utf-8'", "�� not utf-8"),
        (r"b'x' * 1000", "x" * 240),
        (r"('\u00e9' * 1000).encode()", "é" * 120),
        (r"b''", ""),
    ],
)
def test_names_stay_one_field_of_one_line(run: Run, tmp_path: Path, message: str, name: str) -> None:
    done = run(f"nvtx.mark({message}); nvtx.mark(attributes({message}))")
    assert done.returncode == 0, done.stderr
    found, trace = only(tmp_path)
    assert [text.rstrip() for text in trace.names] == [name.rstrip()]
    assert (len(trace), dict(found.problems)) == (2, {})


def test_registered_strings_categories_and_threads_have_their_names(run: Run, tmp_path: Path) -> None:
    done = run("""
d = nvtx.domain(b"d")
handle = nvtx.register(d, b"known"); assert handle == nvtx.register(d, "known")
nvtx.call(5, 8, d, 3, b"copies"); nvtx.call(1, 14, threading.get_native_id(), b"main")
nvtx.push(attributes(handle, category=3), d); nvtx.pop(d)
nvtx.push(attributes(None)); nvtx.pop()
""")
    assert done.returncode == 0, done.stderr
    trace = only(tmp_path)[1]
    assert said(trace, "known") == {"category": "copies", "domain": "d", "thread": "main"}


def test_a_range_may_end_on_another_thread(run: Run, tmp_path: Path) -> None:
    done = run("""
import ctypes
d = nvtx.domain(b"d")
first = nvtx.call(5, 2, d, attributes(b"across"), result=ctypes.c_uint64)
second = nvtx.call(1, 5, b"plain", result=ctypes.c_uint64)
thread = threading.Thread(target=lambda: (nvtx.call(5, 3, d, first), nvtx.call(1, 7, second)))
thread.start(); thread.join()
""")
    assert done.returncode == 0, done.stderr
    found, trace = only(tmp_path)
    assert (sorted(trace.names), dict(found.problems)) == (["across", "plain"], {})


def test_threads_at_once_lose_and_mix_nothing(run: Run, tmp_path: Path) -> None:
    done = run("""
def work(k):
    for i in range(3000):
        nvtx.push(b"%d-%d" % (k, i)); nvtx.pop()
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
for t in threads: t.start()
for t in threads: t.join()
""")
    assert done.returncode == 0, done.stderr
    found, trace = only(tmp_path)
    assert (len(trace), len(trace.names), dict(found.problems)) == (24000, 24000, {})


def test_children_have_files_of_their_own(run: Run, tmp_path: Path) -> None:
    done = run("""
nvtx.push(b"parent"); nvtx.pop()
children = []
for i in range(20):
    pid = os.fork()
    if not pid:
        nvtx.push(b"child"); nvtx.pop()
        if i % 2:
            nvtx.mark(b"last")
            until(lambda: b"last" in written())
        os._exit(0)
    children.append(pid)
    if i % 2: print(pid)
for pid in children: os.waitpid(pid, 0)
nvtx.push(b"parent"); nvtx.pop()
""")
    assert done.returncode == 0, done.stderr
    waited = [nvtx_tsv.read(tmp_path / "cap" / f"nvtx-{pid}.tsv", Place()) for pid in done.stdout.split()]
    assert [[trace.names for trace in one.traces] for one in waited] == [[["child", "last"]]] * 10
    assert all(one.problems == {} for one in read_all(tmp_path))


def test_children_that_say_nothing_leave_no_files(run: Run, tmp_path: Path) -> None:
    done = run("""
import subprocess
nvtx.mark(b"parent")
for _ in range(100):
    if not (pid := os.fork()): os._exit(0)
    os.waitpid(pid, 0)
subprocess.run(["true"])
""")
    assert done.returncode == 0, done.stderr
    assert len(read_all(tmp_path)) == 1


def test_a_killed_process_leaves_all_but_its_last_moments(run: Run, tmp_path: Path) -> None:
    done = run("""
nvtx.push(b"before"); nvtx.pop()
nvtx.mark(b"last")
until(lambda: b"last" in written())
os.kill(os.getpid(), 9)
""")
    assert done.returncode == -signal.SIGKILL
    assert only(tmp_path)[1].names == ["before", "last"]


def test_a_ring_keeps_to_its_bytes_and_each_segment_is_whole(run: Run, tmp_path: Path) -> None:
    done = run(
        """
nvtx.call(1, 14, threading.get_native_id(), b"main")
for i in range(60):
    for _ in range(400): nvtx.push(b"range %d" % i); nvtx.pop()
    time.sleep(0.02)
""",
        TELLER_CAPTURE_BYTES="800000",
    )
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "cap").iterdir())
    assert 2 <= len(files) <= 8
    assert sum(path.stat().st_size for path in files) <= 800_000
    found = read_all(tmp_path)
    assert all(set(one.problems) <= {"unmatched_pop", "unmatched_push"} for one in found)
    last = found[-1].traces[-1]
    assert "range 59" in last.names
    assert json.loads(str(last.args[0]))["thread"] == "main"


def test_old_segments_go_by_their_age(run: Run, tmp_path: Path) -> None:
    done = run(
        """
while not any("-0012" in name for name in os.listdir(os.environ["TELLER_CAPTURE_DIR"])):
    nvtx.mark(b"m")
    time.sleep(0.05)
""",
        TELLER_CAPTURE_SECONDS="1",
    )
    assert done.returncode == 0, done.stderr
    numbers = sorted(int(path.stem.rpartition("-")[2]) for path in (tmp_path / "cap").iterdir())
    assert numbers == list(range(numbers[-1] - 7, numbers[-1] + 1))


def test_a_full_disk_costs_events_that_are_counted_and_nothing_else(run: Run, tmp_path: Path) -> None:
    done = run("""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, -1))
for _ in range(2000): nvtx.push(b"lost sooner or later"); nvtx.pop()
until(lambda: len(written()) == 20_000)
time.sleep(0.5)
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
nvtx.mark(b"well"); time.sleep(0.5)
""")
    assert done.returncode == 0, done.stderr
    found, trace = only(tmp_path)
    assert "well" in trace.names
    assert found.problems["recorder_lost"] > 0


@pytest.mark.parametrize("folder", ["/proc/nothing", "/dev/null/x", ""])
def test_a_folder_that_cannot_be_written_harms_nothing(run: Run, folder: str) -> None:
    done = run(
        "for _ in range(1000): nvtx.slots[1][9] and (nvtx.push(b'x'), nvtx.pop())\ntime.sleep(0.4)\nprint('well')",
        TELLER_CAPTURE_DIR=folder,
    )
    assert (done.stdout.strip(), done.returncode) == ("well", 0), done.stderr


def test_events_while_the_program_ends_do_not_bring_it_down(run: Run, tmp_path: Path) -> None:
    done = run("""
def for_ever():
    while True: nvtx.push(b"x"); nvtx.pop()
for _ in range(4): threading.Thread(target=for_ever, daemon=True).start()
time.sleep(0.5)
""")
    assert done.returncode == 0, done.stderr
    assert len(only(tmp_path)[1]) > 0


def test_the_nvtx_package_is_recorded_unchanged(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("nvtx", reason="the nvtx package is not installed")
    done = run(
        """
import nvtx
@nvtx.annotate("decorated", domain="mine", category="work", payload=2.5)
def f(): pass
f()
with nvtx.annotate("with"): nvtx.mark("mark")
nvtx.end_range(nvtx.start_range("started"))
""",
        begin="",
    )
    assert done.returncode == 0, done.stderr
    trace = only(tmp_path)[1]
    assert sorted(trace.names) == ["decorated", "mark", "started", "with"]
    assert said(trace, "decorated") == {"category": "work", "domain": "mine", "payload": "2.5"}


def test_a_program_that_closes_every_file_and_opens_its_own_finds_nothing_of_ours_in_them(
    run: Run, tmp_path: Path
) -> None:
    done = run(f"""
nvtx.mark(b"before")
until(lambda: b"before" in written())
os.closerange(3, 1024)
own = [os.open({str(tmp_path)!r} + "/own" + str(n), os.O_CREAT | os.O_RDWR) for n in range(300)]
nvtx.mark(b"after")
if os.fork():
    os.wait()
    nvtx.mark(b"later")
    assert all(os.fstat(each) for each in own)
else:
    nvtx.mark(b"in the child")
    assert all(os.fstat(each) for each in own)
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert not any(path.stat().st_size for path in tmp_path.glob("own*"))
    names = {name for found in read_all(tmp_path) for trace in found.traces for name in trace.names}
    assert names == {"before", "after", "later", "in the child"}
