"""Checks of what windows cost: the library at rest, a window that is open, and the gaps as it opens and closes."""

import statistics
from collections.abc import Callable
from itertools import pairwise

from asking import SMOKE, TOKENS, Answer, Worker, took_ms

PAIRS = 2 if SMOKE else 12


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
        "close_took_ms": took_ms(ours.blocks(answer), "close"),
        "kernels": footer.get("kernels"),
        "profiler_stop_ms": round(1000 * profile["stop"], 1),
        "profiler_export_ms": round(1000 * profile["export"], 1),
        "profiler_events": profile["events"],
    }
