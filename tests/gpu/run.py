"""What only a GPU can tell of the injection library: one command, under five minutes, a JSON line a check and a table.

    python tests/gpu/run.py [--smoke]

It needs numpy, torch with CUDA, transformers and cupti-python, and a C compiler. Three processes stay up: one under the
library, one without it, and one under it in which torch's profiler is used first. With OUT set, the files of some windows
and ``results.json`` are left there. Nothing stops at a check that fails; the exit status is 1 if one did.
``--smoke FAKE`` runs it without a GPU on the libcupti of the tests: its checks fail then, and only its own mistakes show.
"""

import json
import os
import platform
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from teller_core.collect.native.variables import injection  # noqa: E402
from teller_core.ingest.found import Place  # noqa: E402
from teller_core.ingest.recorder import cupti_records, nvtx_tsv  # noqa: E402
from teller_core.ingest.recorder.cupti_file import Blocks, read_blocks  # noqa: E402

Answer = dict[str, Any]
RESULTS: list[Answer] = []
OUT = os.environ.get("OUT")
SMOKE = "--smoke" in sys.argv
TOKENS = 4 if SMOKE else 16
PAIRS = 2 if SMOKE else 12


class Worker:
    """A process of ``worker.py``: one question, one answer. One that does not answer in time is killed and started anew."""

    def __init__(self, folder: Path, injected: bool) -> None:
        self.cap, self.injected = folder, injected
        folder.mkdir(parents=True)
        self.start()

    @staticmethod
    def variables(cap: Path, built: Path) -> dict[str, str]:
        """What puts the library into a process. LAYOUT may name a layout made elsewhere, where cupti-python is missing."""
        added = injection(cap, {}, built)
        if added.missing:
            print(json.dumps({"missing": dict(added.missing)}), flush=True)  # noqa: T201
        found = {
            **added.variables,
            "TELLER_CAPTURE_DIR": str(cap),
            "TELLER_INJECT_LOOK_MS": "5",
            "TELLER_INJECT_WINDOWS": "5000",
        }
        if "cupti" in added.missing and "NVTX_INJECTION64_PATH" in added.variables and os.environ.get("LAYOUT"):
            found |= {
                "CUDA_INJECTION64_PATH": found["NVTX_INJECTION64_PATH"],
                "TELLER_INJECT_LAYOUT": os.environ["LAYOUT"],
            }
        return found

    def start(self) -> None:
        variables = dict(os.environ, OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
        for name in ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "TELLER_CAPTURE_DIR"):
            variables.pop(name, None)
        if self.injected:
            variables |= self.variables(self.cap, self.cap.parent / "built")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), *sys.argv[2:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=variables,
        )

    def ask(self, timeout: float = 60, **question: Any) -> Answer:
        """The answer. Raises RuntimeError for an error of the worker's and TimeoutError where none comes."""
        if self.process.poll() is not None:
            self.start()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            self.process.send_signal(signal.SIGUSR1)  # shows where its threads stand
            time.sleep(1)
            self.process.kill()
            self.process.wait()
            raise TimeoutError(f"no answer to {question['do']} in {timeout} s")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"it ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def blocks(self, answer: Answer) -> Blocks:
        """The file of the window of ``answer``."""
        return read_blocks(self.cap / answer["file"])


def kernels(blocks: Blocks) -> tuple[Counter[str], int]:
    """Counts by name, and summed ns, straight from the records."""
    rows = blocks.rows.get("kernel")
    if rows is None:
        return Counter(), 0
    names = [blocks.texts[text] for text in rows["name"].tolist()]
    return Counter(names), int((rows["end"] - rows["start"]).sum())


def check(name: str, function: Callable[..., Answer], *workers: Any) -> None:
    """Run one check and print what it found."""
    start = time.perf_counter()
    try:
        found = function(*workers)
    except (RuntimeError, TimeoutError, OSError, ValueError, KeyError, AssertionError) as error:
        found = {"ok": False, "error": f"{type(error).__name__}: {error}"[:300]}
    found = {"check": name, **found, "took_s": round(time.perf_counter() - start, 2)}
    RESULTS.append(found)
    print(json.dumps(found), flush=True)  # noqa: T201


def keep(worker: Worker, answer: Answer, name: str) -> None:
    """Leave the file of a window among the artifacts."""
    if OUT:
        shutil.copy(worker.cap / answer["file"], Path(OUT) / name)


def same_kernels(ours: Worker, plain: Worker) -> Answer:
    """Kernels by name of the same work: ours and the profiler's, twice each."""
    mine = [ours.ask(do="window", work="generate", amount=TOKENS, marked=True) for _ in range(2)]
    theirs = [plain.ask(do="profile", work="generate", amount=TOKENS) for _ in range(2)]
    keep(ours, mine[0], "generate.bin")
    counted = [kernels(ours.blocks(answer)) for answer in mine]
    wanted = [Counter(answer["kernels"]) for answer in theirs]
    differ = {
        name: [counted[0][0][name], wanted[0][name]]
        for name in counted[0][0] | wanted[0]
        if counted[0][0][name] != wanted[0][name]
    }
    footer = ours.blocks(mine[0]).footer or {}
    return {
        "ok": counted[0][0] == counted[1][0] == wanted[0] == wanted[1] and sum(wanted[0].values()) > 0,
        "kernels": [sum(count.values()) for count, _ in counted],
        "profiler": [sum(count.values()) for count in wanted],
        "names": len(wanted[0]),
        "differ": dict(list(differ.items())[:5]),
        "kernel_ms": [round(total / 1e6, 3) for _, total in counted],
        "profiler_ms": [round(answer["kernel_ns"] / 1e6, 3) for answer in theirs],
        "other": theirs[0]["other"],
        "counts": [(ours.blocks(answer).footer or {}).get("counts") for answer in mine],
        "lost": {
            key: footer.get(key) for key in ("dropped", "starved", "foreign", "late", "cut", "unknown", "not_enabled")
        },
        "cupti": ours.blocks(mine[0]).header["cupti"],
        "open_ms": [_ms(ours.blocks(answer), "open") for answer in mine],
        "close_ms": [_ms(ours.blocks(answer), "close") for answer in mine],
    }


def _ms(blocks: Blocks, what: str) -> float:
    begin, end = (blocks.footer or {}).get(what, [0, 0])
    return round((end - begin) / 1e6, 2)


def steps(ours: Worker) -> Answer:
    """Every kernel launched inside step k carries k, through its call's correlation; NVTX has the ranges too."""
    answer = ours.ask(do="window", work="generate", amount=TOKENS, marked=True)
    blocks = ours.blocks(answer)
    external, launches = blocks.rows["external"], blocks.rows["kernel"]
    step_of = dict(zip(external["correlation_id"].tolist(), external["external_id"].tolist(), strict=True))
    first, last = answer["steps"]
    found = Counter(step_of.get(link) for link in launches["correlation_id"].tolist())
    inside = {step: count for step, count in found.items() if step is not None}
    time.sleep(0.5)
    ranges = nvtx_tsv.read(ours.cap / f"nvtx-{ours.process.pid}.tsv", Place())
    named = [name for trace in ranges.traces for name in trace.names if name.startswith("step ")]
    middle = [inside.get(step, 0) for step in range(first + 1, last + 1)]
    return {
        "ok": sorted(inside) == list(range(first, last + 1)) and last - first + 1 == TOKENS,
        "steps": [first, last],
        "kernels_in_steps": sum(inside.values()),
        "kernels_outside": found[None],
        "kernels_a_step": sorted(set(middle)),
        "nvtx_steps": len(set(named)),
    }


def host_beside(ours: Worker, plain: Worker) -> Answer:
    """torch's profiler on the CPU alone beside a window: the window sees every kernel, and the next one is not refused."""
    wanted = plain.ask(do="profile", work="generate", amount=TOKENS)
    beside = ours.ask(do="window", work="generate", amount=TOKENS, host=True)
    after = ours.ask(do="window", work="generate", amount=TOKENS)
    footers = [ours.blocks(answer).footer or {} for answer in (beside, after)]
    return {
        "ok": all(kernels(ours.blocks(answer))[0] == Counter(wanted["kernels"]) for answer in (beside, after))
        and beside["operators"] > 0
        and bool(wanted["kernels"]),
        "kernels": [footer.get("kernels") for footer in footers],
        "reasons": [footer.get("reason") for footer in footers],
        "profiler": sum(wanted["kernels"].values()),
        "operators": beside["operators"],
    }


def bounded_by_steps(ours: Worker) -> Answer:
    """A window of three steps: it ends by itself, and three steps are marked, each with as many kernels as the others."""
    answer = ours.ask(do="window", work="generate", amount=40, marked=True, most_steps=3)
    blocks = ours.blocks(answer)
    external, launches = blocks.rows["external"], blocks.rows["kernel"]
    step_of = dict(zip(external["correlation_id"].tolist(), external["external_id"].tolist(), strict=True))
    found = Counter(step_of.get(link) for link in launches["correlation_id"].tolist())
    footer = blocks.footer or {}
    inside = {step: count for step, count in found.items() if step is not None}
    return {
        "ok": footer.get("reason") == "steps" and len(inside) == 3,
        "reason": footer.get("reason"),
        "kernels_by_step": [inside[step] for step in sorted(inside)],
        "kernels_outside": found[None],
        "stalls_ms": [round((stop - start) / 1e6, 2) for start, stop in footer.get("stalls", [])],
    }


def graphs(ours: Worker, plain: Worker) -> Answer:
    """Fifty replays of a graph that was made before the first window: every kernel of its nodes, twice."""
    mine = [ours.ask(do="window", work="replay", amount=50) for _ in range(2)]
    profile = plain.ask(do="profile", work="replay", amount=50)
    keep(ours, mine[0], "graph_nodes.bin")
    counted = [kernels(ours.blocks(answer))[0] for answer in mine]
    rows = ours.blocks(mine[0]).rows.get("kernel")
    return {
        "ok": counted[0] == counted[1] == Counter(profile["kernels"]) and sum(counted[0].values()) > 0,
        "nodes": [sum(count.values()) for count in counted],
        "profiler": sum(profile["kernels"].values()),
        "with_graph_id": int((rows["graph_id"] > 0).sum()) if rows is not None else 0,
    }


def many_windows(ours: Worker) -> Answer:
    """A thousand windows while the model works in another thread: opened, closed and flushed."""
    answer = ours.ask(90, do="many", windows=1000, most_seconds=5 if SMOKE else 55)
    took = sorted(answer["took"])
    return {
        "ok": len(took) >= 1000,
        "windows": len(took),
        "median_ms": round(1000 * statistics.median(took), 2),
        "p99_ms": round(1000 * took[int(0.99 * len(took))], 2),
        "max_ms": round(1000 * took[-1], 2),
        "tokens": answer["tokens"],
    }


def _pairs(one: Callable[[], Answer], other: Callable[[], Answer], count: int) -> Answer:
    """Medians of (one / other - 1) in percent over alternated pairs, and the spread of the wall times."""
    wall: list[float] = []
    cpu: list[float] = []
    rate: list[float] = []
    for i in range(count):
        a, b = (one(), other()) if i % 2 else tuple(reversed((other(), one())))
        wall.append(100 * (a["wall"] / b["wall"] - 1))
        cpu.append(100 * (a["cpu"] / b["cpu"] - 1))
        rate.append(4 * TOKENS / b["wall"])
    spread = [round(value, 2) for value in statistics.quantiles(wall, n=4)]
    return {
        "wall_percent": round(statistics.median(wall), 2),
        "cpu_percent": round(statistics.median(cpu), 2),
        "wall_quartiles": spread,
        "tokens_per_s": round(statistics.median(rate)),
        "pairs": count,
    }


def idle_overhead(*workers: Worker) -> Answer:
    """The library loaded and idle in two processes, against two processes without it, in turn: median and its 95 % interval."""
    question = {"do": "time", "work": "generate", "amount": 8}
    rounds: list[list[Answer]] = []
    for i in range(4 if SMOKE else 40):
        order = list(range(len(workers)))[:: 1 if i % 2 else -1]
        answers = {k: workers[k].ask(**question) for k in order}
        rounds.append([answers[k] for k in range(len(workers))])
    found: Answer = {}
    for what in ("wall", "cpu"):
        ratios = sorted(100 * ((a[what] + b[what]) / (c[what] + d[what]) - 1) for a, b, c, d in rounds)
        half = round(0.98 * len(ratios) ** 0.5)  # ranks about the middle that hold the median 95 times of 100
        middle = len(ratios) // 2
        found[f"{what}_percent"] = round(statistics.median(ratios), 2)
        found[f"{what}_interval"] = [
            round(ratios[max(0, middle - half)], 2),
            round(ratios[min(middle + half, len(ratios) - 1)], 2),
        ]
        found[f"{what}_ms"] = [
            round(1000 * statistics.median(answer[k][what] for answer in rounds), 1) for k in range(len(workers))
        ]
    return {"ok": found["cpu_interval"][0] < 5, **found, "rounds": len(rounds)}


def alive(ours: Worker, plain: Worker) -> Answer:
    """Whether a window still sees every kernel."""
    answer = ours.ask(do="window", work="generate", amount=TOKENS)
    return {
        "ok": sum(kernels(ours.blocks(answer))[0].values()) > 0,
        "kernels": sum(kernels(ours.blocks(answer))[0].values()),
    }


def window_overhead(ours: Worker) -> Answer:
    """An open window, against the same process between windows; the window's opening and closing are not in the time."""
    question = {"work": "generate", "amount": TOKENS}
    found = _pairs(
        lambda: ours.ask(do="window", marked=True, **question), lambda: ours.ask(do="time", **question), PAIRS
    )
    return {"ok": found["wall_percent"] <= 25, **found}


def profiler_overhead(plain: Worker) -> Answer:
    """The same for torch's profiler, to compare."""
    question = {"work": "generate", "amount": TOKENS}
    return {
        "ok": True,
        **_pairs(lambda: plain.ask(do="profile", **question), lambda: plain.ask(do="time", **question), 6),
    }


def stalls(ours: Worker, plain: Worker) -> Answer:
    """The longest gap between two steps as a window opens, as it closes, and otherwise; and the profiler's stop and export."""
    answer = ours.ask(do="stall", seconds=0.5)
    footer = ours.blocks(answer).footer or {}
    times = answer["times"]
    gaps = [(after - before, before, after) for before, after in pairwise(times)]

    def longest(begin: int, end: int) -> float:
        return round(max((gap for gap, before, after in gaps if before < end and after > begin), default=0) / 1e6, 2)

    profile = plain.ask(do="profile", work="burn", amount=0.5)
    return {
        "ok": longest(*footer["close"]) < 300,
        "median_ms": round(statistics.median(gap for gap, _, _ in gaps) / 1e6, 3),
        "longest_at_open_ms": longest(*footer["open"]),
        "longest_in_window_ms": longest(footer["open"][1], footer["close"][0]),
        "longest_at_close_ms": longest(*footer["close"]),
        "longest_before_ms": longest(times[0], footer["open"][0] - 1),
        "close_took_ms": _ms(ours.blocks(answer), "close"),
        "kernels": footer.get("kernels"),
        "profiler_stop_ms": round(1000 * profile["stop"], 1),
        "profiler_export_ms": round(1000 * profile["export"], 1),
        "profiler_events": profile["events"],
    }


def profiler_after(ours: Worker, plain: Worker) -> Answer:
    """torch's profiler in a process that has had our windows, and what it counts."""
    profile = ours.ask(do="profile", work="generate", amount=TOKENS)
    wanted = plain.ask(do="profile", work="generate", amount=TOKENS)
    answer = ours.ask(do="window", work="generate", amount=TOKENS)
    shared = ours.ask(do="window", work="generate", amount=TOKENS, shared=True)
    once_more = ours.ask(do="profile", work="generate", amount=TOKENS)
    return {
        "ok": profile["kernels"] == wanted["kernels"] == once_more["kernels"],
        "profiler": [sum(found["kernels"].values()) for found in (profile, once_more)],
        "plain": sum(wanted["kernels"].values()),
        "other": profile["other"],
        "other_plain": wanted["other"],
        **_windows_after(ours, answer, shared),
    }


def profiler_first(other: Worker) -> Answer:
    """A process under the idle library in which torch's profiler comes first, then windows, then the profiler again."""
    before = other.ask(do="profile", work="generate", amount=TOKENS)
    answer = other.ask(do="window", work="generate", amount=TOKENS)
    shared = other.ask(do="window", work="generate", amount=TOKENS, shared=True)
    after = other.ask(do="profile", work="generate", amount=TOKENS)
    return {
        "ok": before["kernels"] == after["kernels"] and sum(before["kernels"].values()) > 0,
        "profiler": [sum(found["kernels"].values()) for found in (before, after)],
        **_windows_after(other, answer, shared),
    }


def _windows_after(worker: Worker, answer: Answer, shared: Answer) -> Answer:
    return {
        "window": [(worker.blocks(found).footer or {}).get("reason") for found in (answer, shared)],
        "window_kernels": [sum(kernels(worker.blocks(found))[0].values()) for found in (answer, shared)],
        "foreign": [(worker.blocks(found).footer or {}).get("foreign") for found in (answer, shared)],
    }


def reading(ours: Worker) -> Answer:
    """Our reader on a real file: it counts what the library counted, and a kernel lies between the clock's two readings."""
    answer = ours.ask(do="window", work="generate", amount=2, marked=True)
    keep(ours, answer, "small.bin")
    path = ours.cap / answer["file"]
    found = cupti_records.read(path, Place())
    blocks = read_blocks(path)
    counts = (blocks.footer or {})["counts"]
    (trace,) = found.traces
    trace.check()
    one = ours.ask(do="one_kernel")
    (long,) = cupti_records.read(ours.cap / one["file"], Place()).traces
    mine = [i for i in range(len(long)) if long.categories[long.category[i]] == "kernel"]
    begin, end = min(int(long.start[i]) for i in mine), max(int(long.end[i]) for i in mine)
    if OUT:
        said = {
            "counts": counts,
            "kernels": dict(kernels(blocks)[0]),
            "kept": found.kept,
            "problems": dict(found.problems),
        }
        (Path(OUT) / "small.json").write_text(json.dumps(said, indent=1))
    return {
        "ok": found.kept == sum(counts.values()) - counts.get("39", 0)
        and one["between"][0] <= begin <= end <= one["between"][1],
        "kept": found.kept,
        "counts": counts,
        "problems": dict(found.problems),
        "bytes": path.stat().st_size,
        "kernel_after_begin_us": round((begin - one["between"][0]) / 1000, 1),
        "end_after_kernel_us": round((one["between"][1] - end) / 1000, 1),
        "anchor_offset_ns": [real - cupti for cupti, real, _, _ in blocks.anchors],
        "anchor_width_ns": [width for _, _, _, width in blocks.anchors],
    }


KINDS = "TELLER_GPU_KINDS"
"""Of a case: the kinds of records that its layout is cut down to; ``-39`` is all but one."""
CASES: tuple[tuple[str, dict[str, str]], ...] = (
    ("before_nodes", {}),
    ("after_nodes", {}),
    ("profiler_graph", {}),
    ("after_whole", {}),
    ("before_whole", {}),
    ("before_whole", {KINDS: "10 51"}),
    ("one_window", {}),
    ("many", {}),
    ("many_loaded", {}),
    ("many_loaded", {KINDS: "10"}),
    ("many_loaded", {KINDS: "-39"}),
    ("many_loaded", {KINDS: "-4"}),
)
MAY_DIE = ("before_whole", "after_whole")
"""Cases that are here to tell what happens: nothing of ours asks for a whole replay by itself."""
AT_ONCE = 6


def _layout(path: Path, kept: str) -> None:
    lines = path.read_text().splitlines()
    wanted = {*kept.split()} if "-" not in kept else {str(i) for i in range(64)} - {kept.strip("-")}
    lines = [
        line for line in lines if line.split()[0] in ("teller-layout", "versions", "json") or line.split()[1] in wanted
    ]
    path.write_text("\n".join(lines) + "\n")


def cases(folder: Path) -> Answer:
    """What may crash or blind CUPTI, each in a process of its own, some at once."""
    crash = folder / "crash.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(crash), str(HERE / "crash.c")], check=True)
    ok = True
    for first in range(0, len(CASES), AT_ONCE):
        started: list[tuple[str, subprocess.Popen[bytes], Path]] = []
        for i, (name, more) in enumerate(CASES[first : first + AT_ONCE], first):
            cap = folder / f"case-{i}"
            cap.mkdir()
            variables = {**os.environ, **Worker.variables(cap, cap.parent / "built"), **more, "OMP_NUM_THREADS": "1"}
            if KINDS in more:
                _layout(Path(variables["TELLER_INJECT_LAYOUT"]), more[KINDS])
            command = [sys.executable, str(HERE / "cases.py"), name, str(crash)]
            process = subprocess.Popen(
                command, env=variables, stdout=subprocess.PIPE, stderr=(cap / "errors").open("wb")
            )
            started.append((" ".join([name, *(f"{key[7:]}={value}" for key, value in more.items())]), process, cap))
        held = [_case(*one) for one in started]  # all of them, also after one that failed
        ok &= all(held)
    return {"ok": ok}


def _case(name: str, process: "subprocess.Popen[bytes]", cap: Path) -> bool:
    try:
        output, _ = process.communicate(timeout=40)
        status: int | str = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        output, status = b"", "no end"
    lines = (cap / "errors").read_text(errors="replace").strip().splitlines()
    told: Answer = {}
    for line in lines:
        if line.startswith("TOLD "):
            told |= json.loads(line[5:])
    told |= json.loads(output) if output.strip() else {}
    crash = lines[lines.index("CRASH in C:") :][:20] if "CRASH in C:" in lines else lines[-3:] if status else []
    print(json.dumps({"case": name, "status": status, **told, "crash": crash}), flush=True)  # noqa: T201
    return name.startswith(MAY_DIE) or (status == 0 and "error" not in told)


def about(ours: Worker) -> Answer:
    """What this ran on."""
    found = ours.ask(150, do="about")
    return {"ok": found["device"] != "cpu", **found, "python": platform.python_version(), "cpus": os.cpu_count()}


def main() -> int:
    """Run everything. Returns the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("ours", "other", "plain", "plain_too")
        workers = ours, other, plain, plain_too = [Worker(Path(folder) / name, "plain" not in name) for name in names]
        try:
            check("about", about, ours)
            if RESULTS[0].get("device") == "cpu" and not SMOKE:
                print("no CUDA device here: nothing was checked")  # noqa: T201
                return 0
            check("idle_overhead_before_any_window", idle_overhead, ours, other, plain, plain_too)
            check("same_kernels", same_kernels, ours, plain)
            check("steps", steps, ours)
            check("bounded_by_steps", bounded_by_steps, ours)
            check("host_beside", host_beside, ours, plain)
            check("alive_after_host", alive, ours, plain)
            check("reading", reading, ours)
            check("stalls", stalls, ours, plain)
            check("alive_after_stalls", alive, ours, plain)
            check("window_overhead", window_overhead, ours)
            check("alive_after_window_overhead", alive, ours, plain)
            check("idle_overhead_after_windows", idle_overhead, ours, other, plain, plain_too)
            check("profiler_overhead", profiler_overhead, plain)
            check("profiler_first", profiler_first, other)
            check("many_windows", many_windows, ours)
            check("alive_after_many", alive, ours, plain)
            check("profiler_after_windows", profiler_after, ours, plain)
            check("graphs", graphs, ours, plain)
            check("cases", cases, Path(folder))
        finally:
            for worker in workers:
                worker.process.kill()
                worker.process.wait()
    print(f"\n{'check':34}{'ok':5}{'s':>7}")  # noqa: T201
    for found in RESULTS:
        print(f"{found['check']:34}{'yes' if found['ok'] else 'NO':5}{found['took_s']:7}")  # noqa: T201
    if OUT:
        (Path(OUT) / "results.json").write_text(json.dumps(RESULTS, indent=1))
    return 0 if all(found["ok"] for found in RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
