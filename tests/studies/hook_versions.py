"""On which versions do the hooks of libraries do what they should? A small real program each, under the recorder.

TESTED in ``teller_core/collect/shim`` holds versions of which this printed ``ok``, and no other.

Run: python tests/studies/hook_versions.py FOLDER [PACKAGE ...] [--versions VERSION,...]. PACKAGE: uvicorn, nvtx, torch; all
of them by default. An environment for each version is made in FOLDER, and stays there; a package index is needed. uvicorn
serves a request and is ended by SIGTERM: the last thing that it did has to be recorded, and beside it stands whether it is
without the hook. nvtx makes ranges in each way. torch is not installed, but that of ``--python`` (by default the one that
runs this) is taken: every function of CALLS is called on a group of Gloo.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core.collect.environment import SHIM
from tests.studies.engines import free_port, say

WAIT_S = 60.0
SERVED = """
import sys
import teller_shim_events as events, teller_shim_process as process
if sys.argv[2] == "off": process.TESTED = ()
import uvicorn

async def app(scope, receive, send):
    if scope["type"] == "http":
        events.instant("answered")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"yes"})
        return
    while True:
        what = (await receive())["type"]
        events.instant(what)
        await send({"type": what + ".complete"})
        if what == "lifespan.shutdown": return

uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
"""
RANGES = """
import nvtx
@nvtx.annotate("decorated", color="red", domain="d")
def work(): return 5
@nvtx.annotate()
def called(): return work()
with nvtx.annotate("outer", domain="d"):
    nvtx.push_range("inner", domain="d")
    nvtx.pop_range(domain="d")
    nvtx.mark("here", color="red", domain="d")
try:
    with nvtx.annotate(message="broken", color="blue"): raise KeyError
except KeyError: print(called())
"""
COLLECTIVES = """
import sys, torch, torch.distributed as dist
print(torch.__version__)
import teller_shim_collectives
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
group, one, out = dist.new_group([0]), torch.ones(4), torch.zeros(4)
calls = {
    "all_reduce": (one,), "broadcast": (one, 0), "reduce": (one, 0), "all_gather": ([out], one),
    "all_gather_single": (out, one), "gather": (one, [out], 0), "scatter": (out, [one], 0),
    "reduce_scatter": (out, [one]), "reduce_scatter_single": (out, one),
    "all_to_all": ([out], [one]), "all_to_all_single": (out, one), "barrier": (),
}
assert calls.keys() == teller_shim_collectives.CALLS.keys()
for name, given in calls.items():
    try: getattr(dist, name)(*given, group=group)
    except (RuntimeError, ValueError) as error: print(name, type(error).__name__, "here: the backend has none", file=sys.stderr)
dist.destroy_process_group()
"""
Events = Sequence[Mapping[str, Any]]


class Run(NamedTuple):
    """What a program did under the recorder."""

    status: int
    out: str
    events: Events

    def named(self, name: str) -> Events:
        """Its events of that name."""
        return [event for event in self.events if event["name"] == name]


def main() -> None:
    """Run what is asked for, print a line each, and end with 1 where one was not ok."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", choices=[[], *PACKAGES], default=[])
    parser.add_argument("--versions", type=lambda words: words.split(","))
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    asked = parser.parse_args()
    say("package | version | what was wrong | seen")
    wrong = False
    for package in asked.packages or PACKAGES:
        versions, check = PACKAGES[package]
        for version in asked.versions or versions:
            folder = asked.folder.resolve() / f"{package}-{version}"
            python = _python(folder, package, version) if versions != HERE else asked.python
            failed, seen = check(folder, python, version)
            wrong |= bool(failed)
            say(f"{package} | {version} | {', '.join(failed) or 'ok'} | {seen}")
    raise SystemExit(int(wrong))


def _python(folder: Path, package: str, version: str) -> Path:
    """The interpreter of an environment that holds this version and nothing else. Raises SystemExit where it cannot be had."""
    python = folder / "bin" / "python"
    if not list(folder.glob(f"lib/python3*/site-packages/{package}-*.dist-info")):
        venv.create(folder, clear=folder.exists())
        # Of a minor version the newest: who installs it gets that one.
        wanted = f"{package}=={version}" + (".*" if version.count(".") == 1 else "")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "-qq",
            "--only-binary",
            ":all:",
            wanted,
        ]
        if subprocess.run(pip, check=False).returncode:
            raise SystemExit(f"{wanted} cannot be installed here")
    return python


def _start(python: Path, cap: Path, code: str, *words: str) -> "subprocess.Popen[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TELLER_", "NVTX_", "PYTHON"))}
    variables = kept | {"PYTHONPATH": str(SHIM), "TELLER_CAPTURE_DIR": str(cap)}
    return subprocess.Popen(
        [python, "-W", "ignore", "-c", code, *words], env=variables, stdout=subprocess.PIPE, text=True
    )


def _ended(process: "subprocess.Popen[str]", cap: Path) -> Run:
    out, _ = process.communicate(timeout=WAIT_S)
    lines = [line for file in sorted(cap.glob("host-*.jsonl")) for line in file.read_text().splitlines()]
    events: Events = [json.loads(line) for line in lines]
    return Run(process.returncode, out, events)


def _wrong(run: Run, holds: Mapping[str, bool]) -> list[str]:
    """What does not hold, of what must hold of every hook and of this one."""
    every = {"a hook failed": not run.named("hook_error"), "a hook was off": not run.named("hooks_disabled")}
    return [name for name, held in {**every, **holds}.items() if not held]


def _of_uvicorn(folder: Path, python: Path, version: str) -> tuple[list[str], str]:
    with_hook, without = (_answered(folder, python, f"{word}-{time.time_ns()}", word) for word in ("on", "off"))
    names = [event["name"] for event in with_hook.events]
    kept = "process_end" in names and "lifespan.shutdown" in names[: names.index("process_end")]
    holds = {
        "it was not ended by the signal": with_hook.status == without.status == -signal.SIGTERM,
        "the answer is missing": "answered" in names,
        "what it did last is missing": kept,
    }
    seen = "kept" if without.named("lifespan.shutdown") else "lost"
    return _wrong(with_hook, holds), f"{_version(folder, 'uvicorn')}, {seen} without the hook"


def _answered(folder: Path, python: Path, name: str, hook: str) -> Run:
    """A server that answers one request and is told to end as soon as it has."""
    port, cap = free_port(), folder / name
    with _start(python, cap, SERVED, str(port), hook) as process:
        try:
            late = time.monotonic() + WAIT_S
            while _asked(port) != b"yes":
                if process.poll() is not None or time.monotonic() > late:
                    raise SystemExit(f"uvicorn in {folder.name} did not come up")
                time.sleep(0.02)
            process.terminate()
            return _ended(process, cap)
        finally:
            process.kill()


def _asked(port: int) -> bytes:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        connection.request("GET", "/", headers={"Connection": "close"})
        return connection.getresponse().read()
    except ConnectionRefusedError:
        return b""


def _of_nvtx(folder: Path, python: Path, version: str) -> tuple[list[str], str]:
    cap = folder / f"on-{time.time_ns()}"
    run = _ended(_start(python, cap, RANGES), cap)
    ranges = [(event["name"], event["domain"]) for event in run.events if event["ph"] == "N"]
    marks = [event["name"] for event in run.events if event["ph"] == "M"]
    made = [("inner", "d"), ("outer", "d"), ("broken", None), ("decorated", "d"), ("called", None)]
    holds = {"the program": (run.status, run.out) == (0, "5\n"), "ranges": ranges == made, "marks": marks == ["here"]}
    return _wrong(run, holds), f"{_version(folder, 'nvtx')}, {len(ranges)} ranges, {len(marks)} mark"


def _of_torch(folder: Path, python: Path, version: str) -> tuple[list[str], str]:
    folder.mkdir(parents=True, exist_ok=True)
    cap = folder / f"on-{time.time_ns()}"
    run = _ended(_start(python, cap, COLLECTIVES, f"{cap}-store"), cap)
    calls = [event for event in run.events if event["ph"] == "K"]
    told = [(event["name"], event["n"], event.get("elems")) for event in calls]
    lists = ("all_gather", "all_to_all", "reduce_scatter", "barrier")
    holds = {
        "the program": run.status == 0,
        "calls": len({name for name, _, _ in told}) == len(told) == 12,
        "numbers": [n for _, n, _ in told] == list(range(len(told))),
        "tensors": all(elems == 4 for name, _, elems in told if name not in lists),
        "one group": len({event["group"] for event in calls}) == 1,
    }
    return _wrong(run, holds), f"{run.out.strip()}, {len(told)} calls of 12 functions"


def _version(folder: Path, package: str) -> str:
    """Which one was installed, to its last number."""
    (found,) = folder.glob(f"lib/python3*/site-packages/{package}-*.dist-info")
    return found.name.removeprefix(f"{package}-").removesuffix(".dist-info")


HERE = ("here",)
Check = Callable[[Path, Path, str], tuple[list[str], str]]
PACKAGES: Mapping[str, tuple[Sequence[str], Check]] = {
    "uvicorn": ([f"0.{minor}" for minor in range(30, 55)], _of_uvicorn),
    "nvtx": (["0.2.8", *(f"0.2.{patch}" for patch in range(10, 18))], _of_nvtx),
    "torch": (HERE, _of_torch),
}
"""Versions that are tried, and what runs with each: what was wrong, and what was seen."""


if __name__ == "__main__":
    main()
