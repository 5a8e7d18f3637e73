"""What reading an Nsight Systems export costs: whole processes, in CPU time and peak memory, paired and alternated with nsys-ai.

    python tests/bench/nsight_bench.py --work DIR [--peers DIR] [--rounds 3] [--kernels 1000000]

``--work`` gets the generated export and is asked for it first; ``--peers`` gets a virtual environment with nsys-ai.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.generate_nsight import generate  # noqa: E402 - the checkout is put on the path first
from tests.bench.peer_nsys_ai import warm  # noqa: E402

READ = (
    "import sys; from pathlib import Path; from teller_core.ingest.found import Place; "
    "from teller_core.ingest.nsight.reader import read; from teller_core.rebuild.nest import nest; "
    "found = read(Path(sys.argv[1]), Place()); print([len(nest(found.traces.pop())) for _ in list(found.traces)])"
)


def commands(export: Path, peers: Path | None) -> dict[str, list[str]]:
    """What is run in turn."""
    store, teller = tempfile.mkdtemp(), shutil.which("teller", path=str(Path(sys.executable).parent))
    found = {"read + nest": [sys.executable, "-c", READ, str(export)]}
    if teller:
        run = 'rm -f "$1" "$1"-*; exec "$0" import "$2" --db "$1"'
        found["import"] = ["sh", "-c", run, teller, f"{store}/s.db", str(export)]
    if peers is None:
        print("no --peers DIR: nsys-ai is left out")
    else:
        found["nsys-ai warm"] = warm(peers, export)
    return found


def cost(command: list[str]) -> tuple[float, float] | None:
    """(CPU seconds, peak MB) of a process and its children, start-up included; None where it failed."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    pid = os.posix_spawnp(command[0], command, {**os.environ, **threads}, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status):
        return None
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    export = chosen.work / f"nsight_{chosen.kernels}.sqlite"
    if not export.exists():
        print(generate(export, chosen.kernels))
    spent: dict[str, list[float]] = {}
    peak: dict[str, float] = {}
    for number in range(chosen.rounds + 1):
        for what, command in commands(export, chosen.peers).items():
            used = cost(command)
            if used is None:
                print(f"{what} failed")
            elif number:  # the first round fills the caches of files and of compiled code
                spent.setdefault(what, []).append(used[0])
                peak[what] = max(peak.get(what, 0), used[1])
    for what, seconds in spent.items():
        print(f"{what:16} {statistics.median(seconds):7.2f} CPU s  peak {peak[what]:6.0f} MB")
    theirs = spent.pop("nsys-ai warm", [])
    for what, seconds in spent.items():
        if pairs := [b / a for a, b in zip(seconds, theirs, strict=False)]:
            print(f"nsys-ai warm / {what}: median {statistics.median(pairs):.2f}, {min(pairs):.2f} to {max(pairs):.2f}")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
