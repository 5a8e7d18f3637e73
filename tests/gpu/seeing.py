"""Checks of what windows see: every kernel, the steps they belong to, and what stands in their files."""

import json
import statistics
import time
from collections import Counter
from pathlib import Path

from asking import OUT, SMOKE, TOKENS, Answer, Worker, keep, kernels, took_ms

from teller_core.ingest.found import Place
from teller_core.ingest.recorder import cupti_records, nvtx_tsv
from teller_core.ingest.recorder.cupti_file import read_blocks


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
        "open_ms": [took_ms(ours.blocks(answer), "open") for answer in mine],
        "close_ms": [took_ms(ours.blocks(answer), "close") for answer in mine],
    }


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


def alive(ours: Worker, plain: Worker) -> Answer:
    """Whether a window still sees every kernel."""
    answer = ours.ask(do="window", work="generate", amount=TOKENS)
    return {
        "ok": sum(kernels(ours.blocks(answer))[0].values()) > 0,
        "kernels": sum(kernels(ours.blocks(answer))[0].values()),
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
