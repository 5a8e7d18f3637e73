"""What callers say of all their requests together: a benchmark's totals, a table of arrivals that nobody measured."""

from collections.abc import Mapping

import numpy as np

from teller_core.data.steps import Requests
from teller_core.data.table import UNKNOWN, Int64

MINUTE = 60_000_000_000
SECOND = 1_000_000_000
MEASURES = (
    ("to the first token", ("vllm_bench:{}_ttft_ms", "sglang_bench:{}_ttft_ms", "aiperf:time_to_first_token:{}")),
    ("a token", ("vllm_bench:{}_tpot_ms", "sglang_bench:{}_tpot_ms", "aiperf:inter_token_latency:{}")),
    (
        "from end to end",
        ("vllm_bench:{}_e2el_ms", "sglang_bench:{}_e2e_latency_ms", "aiperf:request_latency:{}"),
    ),
)
"""What is said, and the names under which benchmarks keep it, in ms, with a place for the statistic."""
AVERAGES, TAILS = ("mean", "avg"), ("p99",)
BLOCKS, SHARED = "arrivals:blocks", "arrivals:shared_blocks"


def callers_say(requests: Requests, value: Int64, metrics: Mapping[str, float]) -> str:
    """One or two sentences where no request was measured and callers told something besides; else empty.

    ``value`` int64 ns a request, UNKNOWN where it was not measured.
    """
    if bool((value != UNKNOWN).any()):
        return ""
    return " ".join(part for part in (_arrivals(requests), _blocks(metrics), _totals(metrics)) if part)


def _totals(metrics: Mapping[str, float]) -> str:
    said: list[str] = []
    for what, names in MEASURES:
        average, tail = (_first(metrics, names, statistics) for statistics in (AVERAGES, TAILS))
        told = [f"{_number(average)} ms on average"] if average is not None else []
        told += [f"{_number(tail)} ms at the 99th percentile"] if tail is not None else []
        said += [f"{what} {', '.join(told)}"] if told else []
    return f"By the benchmark's totals it took {'; '.join(said)}." if said else ""


def _first(metrics: Mapping[str, float], names: tuple[str, ...], statistics: tuple[str, ...]) -> float | None:
    keys = (name.format(statistic) for name in names for statistic in statistics)
    return next((metrics[key] for key in keys if key in metrics), None)


def _arrivals(requests: Requests) -> str:
    came = np.sort(requests.client_start[requests.client_start != UNKNOWN])
    if len(came) < 2 or came[0] == came[-1]:
        return ""
    busiest = int((np.searchsorted(came, came + MINUTE, "left") - np.arange(len(came))).max())
    span = _number((int(came[-1]) - int(came[0])) / SECOND)
    said = f"{len(came):,} requests came within {span} s, at most {busiest:,} in a minute"
    tokens = [
        f"{name} have {_number(float(np.median(column[column >= 0])))} tokens (median)"
        for name, column in (("their prompts", requests.prompt_tokens), ("their answers", requests.output_tokens))
        if bool((column >= 0).any())
    ]
    return f"{'; '.join([said, *tokens])}. What they took was not recorded."


def _blocks(metrics: Mapping[str, float]) -> str:
    blocks, shared = metrics.get(BLOCKS, 0.0), metrics.get(SHARED, 0.0)
    if blocks <= 0:
        return ""
    return (
        f"{shared:,.0f} of {blocks:,.0f} blocks of their prompts ({100 * shared / blocks:.1f} %) stood at the beginning of an "
        "earlier prompt: a prefix cache that forgets nothing would have found them."
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
