"""What reading several ranks at once is worth: wall time, side by side against one after the other, paired and alternated.

    python tests/bench/ranks_bench.py --traces DIR --work DIR [--events 500000] [--ranks 2] [--rounds 5]

``--traces`` holds the base trace (an SGLang prefill), ``--work`` gets the generated ranks. The first table is of reading and
nesting inside a process that has the compiled code loaded; the second of whole commands, start-up included: ``teller import``
of the ranks, and of the same content again, as files and as an archive. Its first line is the most that the machine allows: two
processes that read and nest a rank each and hand nothing over, neither start nor end counted.
"""

import argparse
import gzip
import multiprocessing
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from teller_core.ingest.reading import How, plan, read_trees  # noqa: E402 - the checkout is put on the path first
from teller_core.rebuild.nest import nest  # noqa: E402
from tests.bench.generate_kineto import generate  # noqa: E402

BASE = "sglang_rocm_qwen3_8b_extend/extend.json.gz"


def ranks(work: Path, base: Path, events: int, count: int) -> list[Path]:
    """The files of ``count`` ranks, made once. They end in different numbers of newlines, so that no two are one."""
    found: list[Path] = []
    for rank in range(count):
        path = work / f"rank{rank}_{events}.json.gz"
        if not path.exists():
            generate(base, path, events)
            with gzip.open(path, "at") as file:
                file.write("\n" * rank)
        found.append(path)
    return found


def wall(work: Callable[[], object]) -> float:
    """Seconds that ``work`` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def reading(files: list[Path], jobs: int) -> Callable[[], object]:
    """Reading and nesting of ``files``."""
    return lambda: read_trees(plan(files)[0], nest, None, How(jobs=jobs))


def importing(files: list[Path], store: Path, *words: str) -> Callable[[], object]:
    """``teller import`` of ``files`` in a new process."""
    command = [sys.executable, "-m", "teller_core.cli", "import", *map(str, files), "--db", str(store), *words]
    return lambda: subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def most(files: list[Path], rounds: int) -> None:
    """Print how many times as much two processes do that know nothing of each other as one alone does."""
    ratios: list[float] = []
    for _ in range(rounds):
        alone = statistics.median(wall(reading(files[:1], 1)) for _ in range(3))
        other = multiprocessing.get_context("fork").Process(target=_on_and_on, args=(files[1:2],))
        other.start()
        reading(files[:1], 1)()  # by now the other one reads as well
        beside = statistics.median(wall(reading(files[:1], 1)) for _ in range(3))
        other.kill()
        other.join()
        ratios.append(2 * alone / beside)
    print(f"two readers apart / one: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def _on_and_on(files: list[Path]) -> None:
    while True:
        reading(files, 1)()


def paired(what: str, one: Callable[[], object], other: Callable[[], object], rounds: int) -> None:
    """Run two in turn and print how many times as long the first takes."""
    times = [(wall(one), wall(other)) for _ in range(rounds)]
    ratios = [a / b for a, b in times]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{what}: {first:.2f} s and {second:.2f} s, ratio {statistics.median(ratios):.2f} ", end="")
    print(f"({min(ratios):.2f} to {max(ratios):.2f})")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    files = ranks(chosen.work, chosen.traces / BASE, chosen.events, chosen.ranks)
    reading(files, 1)()  # loads the compiled code
    most(files, chosen.rounds)
    beside = max(2, chosen.ranks)
    paired("read + nest, in turn and side by side", reading(files, 1), reading(files, beside), chosen.rounds)
    with tempfile.TemporaryDirectory() as room:
        store = Path(room) / "t.db"

        def empty() -> None:
            for path in Path(room).glob("t.db*"):
                path.unlink()

        def fresh(*words: str) -> Callable[[], object]:
            def run() -> None:
                empty()
                importing(files, store, *words)()

            return run

        paired("teller import, in turn and side by side", fresh("--jobs", "1"), fresh(), chosen.rounds)

        def apart() -> None:
            empty()
            for path in files:
                importing([path], store)()

        paired("a command a rank, and one for all", apart, fresh(), chosen.rounds)
        packed = Path(room) / "ranks.tar"
        with tarfile.open(packed, "w") as archive:
            for path in files:
                archive.add(path, arcname=path.name)
        paired("again, files and archive", importing(files, store), importing([packed], store), chosen.rounds)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
