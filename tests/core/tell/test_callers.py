"""What is said of requests that nobody measured one by one."""

import numpy as np

from teller_core.data.records import ClientRecord, FileRead, Recording
from teller_core.data.steps import Requests
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.capture import rebuild
from teller_core.tell.callers import callers_say

MS = 1_000_000


def arrived(*at: int) -> Requests:
    """Requests that came at these ms, of which nothing else is known but their tokens."""
    clients = [ClientRecord(f"line{ms}", ms * MS, UNKNOWN, (), 100, 20, clock="local") for ms in at]
    recording = Recording(files=[FileRead("a.csv", "arrivals", 1, "local")], clients=clients)
    return rebuild(recording, [], capture_id="0a", name="a").requests


def nothing(count: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.full(count, UNKNOWN, np.int64)


def test_arrivals_are_told_with_their_busiest_minute() -> None:
    said = callers_say(arrived(0, 30_000, 59_999, 60_000, 300_000), nothing(5), {})
    assert said == (
        "5 requests came within 300 s, at most 3 in a minute; their prompts have 100 tokens (median); "
        "their answers have 20 tokens (median). What they took was not recorded."
    )


def test_shared_blocks_are_told_as_a_share() -> None:
    said = callers_say(arrived(), nothing(0), {"arrivals:blocks": 200.0, "arrivals:shared_blocks": 73.0})
    assert said.startswith("73 of 200 blocks of their prompts (36.5 %) stood at the beginning")


def test_totals_of_benchmarks_are_told_by_what_they_measure() -> None:
    vllm = {"vllm_bench:mean_ttft_ms": 100.5, "vllm_bench:p99_ttft_ms": 250.0, "vllm_bench:mean_tpot_ms": 12.25}
    assert callers_say(arrived(), nothing(0), vllm) == (
        "By the benchmark's totals it took to the first token 100.5 ms on average, 250 ms at the 99th percentile; "
        "a token 12.25 ms on average."
    )
    assert callers_say(arrived(), nothing(0), {"aiperf:request_latency:p99": 1234.5}) == (
        "By the benchmark's totals it took from end to end 1,234 ms at the 99th percentile."
    )


def test_nothing_is_said_where_requests_were_measured_or_nothing_is_known() -> None:
    assert not callers_say(arrived(0, 5), np.array([5, UNKNOWN]), {"vllm_bench:mean_ttft_ms": 100.5})
    assert not callers_say(arrived(), nothing(0), {"vllm_bench:duration": 3.0})
    assert not callers_say(arrived(0, 0), nothing(2), {})
