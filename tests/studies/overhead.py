"""What the recorder costs: two servers of one kind side by side, one plain, one under ``teller capture``, asked in turns.

Each pair sends the same requests to both, one after the other, in an order that is drawn. What is compared is the CPU of a
server's processes for one token: on a machine that others use as well, tokens a second say less. Then windows of the
profiler: steps inside against steps just before, the time that stopping holds the interpreter lock, what clients feel.

Run: python tests/studies/overhead.py --vllm FOLDER/bin/vllm (what environment.py made), or --transformers. ``--pairs 40``
takes about ten minutes. Several connections batch now so, now so, which spreads what a token costs; ``--connections 1`` makes all
loads alike, with one request a step, where a step's recording weighs most. The machine should do nothing else.
"""

import argparse
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core.collect.windows.control import Window, ask, close
from teller_core.lab.model import tiny_model
from tests.studies.engines import say
from tests.studies.side_by_side import CONNECTIONS, Run, Server, busy, cpu, events, inside, run, serve, wait_until_up

LONG_WINDOW_PAIRS, SHORT_WINDOWS = 6, 12
BOOTSTRAPS = 20_000
INSIDE_S = 30.0
STEPS = ("vllm.execute_model", "cb.step")
AROUND_NS = 300_000_000
"""Before the end of a window, and after it: it has been opened and written by then."""


def main(given: argparse.Namespace) -> None:
    """Start both, measure, print."""
    with tempfile.TemporaryDirectory(prefix="overhead-") as scratch:
        folder = Path(scratch)
        model = tiny_model(folder)
        with serve(given, model, None) as plain, serve(given, model, folder / "bundle") as recorded:
            for server in (plain, recorded):
                wait_until_up(server)
            say("both servers are up")
            for server in (plain, recorded) * 3:
                run(server, 0)
            _measure_pairs(given.pairs, given.connections, plain, recorded)
            _measure_inside(recorded)
            _measure_long_windows(recorded)
            _measure_short_windows(recorded)


def _measure_pairs(pairs: int, connections: int, plain: Server, recorded: Server) -> None:
    chance = random.Random(7)
    runs: list[tuple[Run, Run]] = []
    for pair in range(pairs):
        order = chance.sample((plain, recorded), 2)
        made = {id(server): run(server, pair, connections) for server in order}
        runs.append((made[id(plain)], made[id(recorded)]))
        if pair % 10 == 9:
            say(f"pair {pair + 1} of {pairs}")
    head = f"{len(runs)} alternated pairs, {connections} at a time"
    say(f"\n| {head} | plain | recorded | ratio | 95 % upper bound |\n| --- | --- | --- | --- | --- |")
    _row("CPU ms a token, recorder included", runs, lambda run: run.a_token)
    _row("CPU ms a token, the service alone", runs, lambda run: run.cpu_ns / 1e6 / run.tokens)
    _row("ms a token", runs, lambda run: 1000 / run.rate)
    _row("TTFT p50 ms", runs, lambda run: _quantile(run.ttft_ms, 0.5))
    _row("TTFT p99 ms", runs, lambda run: _quantile(run.ttft_ms, 0.99))
    _row("ITL p50 ms", runs, lambda run: _quantile(run.itl_ms, 0.5))
    _row("ITL p99 ms", runs, lambda run: _quantile(run.itl_ms, 0.99))
    rates = [statistics.median(run.rate for run in side) for side in zip(*runs, strict=True)]
    spread = statistics.stdev(float(np.log(two.a_token / one.a_token)) for one, two in runs)
    say(f"One pair's ratio of CPU spreads by {spread:.1%} (standard deviation)")
    say(f"Tokens a second, median: plain {rates[0]:.0f}, recorded {rates[1]:.0f}")


def _measure_inside(recorded: Server) -> None:
    """What runs of the recorder while the service is busy all the time."""
    with busy(recorded, []):
        before, service_before = inside(recorded), cpu(recorded)
        time.sleep(INSIDE_S)
        after, service_after = inside(recorded), cpu(recorded)
    service = service_after[0] - service_before[0]
    parts = {name: after[name] - before[name] for name in after}
    parts["recording process"] = service_after[1] - service_before[1]
    say(
        f"\n| CPU inside the recorder, {INSIDE_S:g} s under load | of the service's | of one core |\n| --- | --- | --- |"
    )
    for name, ns in (*parts.items(), ("all", sum(parts.values()))):
        say(f"| {name} | {ns / service:.2%} | {ns / INSIDE_S / 1e9:.2%} |")


def _measure_long_windows(recorded: Server) -> None:
    """Loads inside an open window against loads without one: what a window costs while it lasts."""
    assert recorded.bundle is not None
    cap = recorded.bundle / "cap"
    runs: list[tuple[Run, Run]] = []
    for pair in range(LONG_WINDOW_PAIRS):
        without = run(recorded, pair)
        begun = time.time_ns()
        ask(cap, Window(seconds=60, steps=None, events=None), "call")
        _until(lambda begun=begun: events(cap, "profile_start", begun))
        runs.append((without, run(recorded, pair)))
        close(cap)
        _until(lambda begun=begun: events(cap, "profile_stop", begun))
        time.sleep(1.0)  # what runs beside the stop is over
    say(
        f"\n| {len(runs)} loads in a window | without | inside | ratio | 95 % upper bound |\n| --- | --- | --- | --- | --- |"
    )
    _row("CPU ms a token, recorder included", runs, lambda run: run.a_token)
    _row("ms a token", runs, lambda run: 1000 / run.rate)
    _row("ITL p50 ms", runs, lambda run: _quantile(run.itl_ms, 0.5))


def _measure_short_windows(recorded: Server) -> None:
    """Ten steps at a time, as they are asked for by default, under a load that goes on."""
    assert recorded.bundle is not None
    cap = recorded.bundle / "cap"
    rows: list[dict[str, Any]] = []
    with busy(recorded, rows):
        begun = time.time_ns()
        for number in range(SHORT_WINDOWS):
            since = time.time_ns()
            ask(cap, Window(), "call")
            _until(lambda since=since: events(cap, "profile_stop", since))
            say(f"window {number + 1} of {SHORT_WINDOWS}")
            time.sleep(1.5)
    _tell_windows(cap, begun, rows)


def _tell_windows(cap: Path, begun: int, rows: list[dict[str, Any]]) -> None:
    stops = [event for event in events(cap, "profile_stop", begun) if event["steps"]]
    starts = events(cap, "profile_start", begun)
    steps = sorted((step["t"], step["dur"]) for name in STEPS for step in events(cap, name, begun - 10**10))
    felt = [_longest_wait(rows, stop["begin"], stop["t"]) for stop in stops]
    quiet = [
        _longest_wait(rows, stop["begin"] - 10**9, stop["begin"] - 10**9 + stop["t"] - stop["begin"]) for stop in stops
    ]
    still = [_longest_rest(steps, stop["begin"]) for stop in stops]
    usual = [_longest_rest(steps, stop["begin"] - 10**9) for stop in stops]
    ratios = [_step_ratio(steps, starts, stop) for stop in stops]
    say(f"\n| {len(stops)} windows of ten steps | median | largest |\n| --- | --- | --- |")
    for name, values, unit in (
        ("events", [stop["events"] for stop in stops], ""),
        ("starting", [start["cost"] / 1e6 for start in starts], " ms"),
        ("stopping, interpreter lock held", [stop["cost"] / 1e6 for stop in stops], " ms"),
        ("stopping and writing, beside the service", [stop["beside"] / 1e6 for stop in stops], " ms"),
        ("longest time between two steps around it", still, " ms"),
        ("the same one second before", usual, " ms"),
        ("longest wait for a token meanwhile", felt, " ms"),
        ("longest wait for a token in as long a time one second before", quiet, " ms"),
        ("a step inside, of a step in the second before", [ratio for ratio in ratios if ratio], ""),
    ):
        say(f"| {name} | {statistics.median(values):.2f}{unit} | {max(values):.2f}{unit} |")


def _step_ratio(steps: list[tuple[int, int]], starts: list[dict[str, Any]], stop: dict[str, Any]) -> float | None:
    """Median length of the steps in a window over that of the steps in the second before it opened."""
    opened = max((start["t"] for start in starts if start["t"] < stop["begin"]), default=None)
    if opened is None:
        return None
    inside = [dur for start, dur in steps if opened <= start < stop["begin"]]
    before = [dur for start, dur in steps if opened - 10**9 <= start < opened - 10**7]
    return statistics.median(inside) / statistics.median(before) if inside and before else None


def _longest_rest(steps: Sequence[tuple[int, int]], time_ns: int) -> float:
    """ms of the longest time in which no step ran, of those that touch the time AROUND_NS before ``time_ns`` to as long after."""
    near = [(start, start + dur) for start, dur in steps if abs(start - time_ns) < AROUND_NS]
    return max((after - stop for (_, stop), (after, _) in itertools.pairwise(near)), default=0) / 1e6


def _longest_wait(rows: list[dict[str, Any]], begin: int, end: int) -> float:
    """ms of the longest gap between two tokens of a request that overlaps the time."""
    gaps = [
        later - sooner
        for row in rows
        for sooner, later in zip(row["tok_ns"], row["tok_ns"][1:], strict=False)
        if sooner < end and later > begin
    ]
    return max(gaps, default=0) / 1e6


def _row(name: str, runs: Sequence[tuple[Run, Run]], value: Callable[[Run], float]) -> None:
    """One line: medians of both, the mean paired ratio, and its upper bound by resampling the pairs."""
    first, second = (np.array([value(run) for run in side]) for side in zip(*runs, strict=True))
    logs = np.log(second / first)
    chance = np.random.default_rng(11)
    means = logs[chance.integers(0, len(logs), (BOOTSTRAPS, len(logs)))].mean(1)
    ratio, upper = np.exp(logs.mean()) - 1, np.exp(np.quantile(means, 0.95)) - 1
    say(f"| {name} | {np.median(first):.2f} | {np.median(second):.2f} | {ratio:+.1%} | {upper:+.1%} |")


def _until(happened: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            raise SystemExit("The service did not answer the recorder")
        time.sleep(0.1)


def _quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", help="the vllm command that environment.py made")
    parser.add_argument("--transformers", action="store_true", help="measure transformers serve instead")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="requests at a time")
    words = parser.parse_args()
    if bool(words.vllm) == words.transformers:
        parser.error("name --vllm COMMAND or --transformers")
    main(words)
