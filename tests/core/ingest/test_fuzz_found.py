"""Inputs that once made a reader fail in another way than by refusing: read, or refused, with every record accounted for."""

import json
import pickle  # made here
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.checks import check, read_bytes, samples, sniff_all

EVENT = {"ph": "X", "t": 1_795_961_987_000_000_000, "tid": 7, "name": "step", "dur": 5}
AIPERF = {
    "metadata": {"x_request_id": "a", "request_start_ns": 1_795_961_987_000_000_000, "request_end_ns": 1_795_961_988_000_000_000},
    "metrics": {"request_latency": {"value": 5, "unit": ["ms"]}, "time_to_first_token": {"value": 1, "unit": {}}},
}  # fmt: skip


def a_dump(**changes: Any) -> bytes:
    """A flight recorder's dump, parts of it replaced."""
    whole = [pickle.loads(sample) for sample in samples("flight_recorder")]
    kept = next(dump for dump in whole if isinstance(dump, dict) and dump.get("pg_status"))
    return pickle.dumps({**kept, **changes})


def nvtx(*lines: str) -> bytes:
    return "\n".join(("A\t10\t1795961982368000000\t7", *lines, "")).encode()


FOUND: dict[str, tuple[str, bytes]] = {
    "a kind that is a list": ("host_records", json.dumps({**EVENT, "ph": ["X"]}).encode()),
    "a kind that is an object": ("host_records", json.dumps(EVENT).encode() + b"\n" + json.dumps({**EVENT, "ph": {}}).encode()),
    "a unit that is a list": ("aiperf", json.dumps(AIPERF).encode()),
    "a total told twice": ("bench_results", b'{"num_prompts": 1, "model_id": "m", "num_prompts": 2, "duration": 2}'),
    "a group's number of 5000 digits": ("flight_recorder", a_dump(pg_status={"9" * 5000: {}}, pg_config={"1": {"ranks": "[0]"}})),
    "a group's number beyond any text": ("flight_recorder", a_dump(pg_status={10**5000: {}}, pg_config={10**5000: {}})),
    "a series of broken labels, readings behind": ("prometheus", b'vllm:x{engine="0", -inf, job="a"} =>\n0.5 @[1795961985]\n'),
    "a range started twice": ("nvtx_tsv", nvtx("S\t20\t7\t\ta\t0\t0\t9", "S\t30\t7\t\tb\t0\t0\t9", "F\t40\t7\t\t\t0\t0\t9")),
    "a range that ends before it begins": ("nvtx_tsv", nvtx("B\t50\t7\t\ta\t0\t0\t0", "E\t40\t7\t\t\t0\t0\t0")),
    "a year of four digits beyond any column": ("engine_log", b"9999-12-31 23:59:59,999 - INFO - a.py:1 - Added request r-1.\n"),
    "seconds of more digits than a column": ("engine_log", (
        b"INFO [ update_slots] kv cache rm | tid=\"1\" timestamp=17959537523 id_slot=0 id_task=399\n"
        b"17959537523.123456 node-a vllm[42]: INFO 11-29 07:55:22 [a.py:1] Added request r-1.\n"
        b"99999999.00.000.000 I slot launch_slot_: id 0 | task 5 | processing task\n"
    )),
    "whole seconds of ten digits": (
        "bench_results", b'{"num_prompts": 2, "model_id": "m", "ttfts": [9999999999, 1], "itls": [[9999999999], []]}'
    ),
    "an average of a hundred million digits": ("aiperf_summary", b'{"request_latency": {"unit": "ms", "avg": 1.5e99999999}}'),
    "a total of a hundred million digits": ("bench_results", b'{"num_prompts": 2, "model_id": "m", "duration": -1.5e99999999}'),
    "a year before any column": ("engine_log", b"0001-01-01T00:00:00Z INFO 11-29 07:55:21 [a.py:1] Added request r-1.\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND)
def test_what_was_found_is_read_or_refused(case: str, tmp_path: Path) -> None:
    name, data = FOUND[case]
    sniff_all(data)
    check(read_bytes(name, data, tmp_path))


def test_a_line_of_a_hundred_thousand_labels_is_read_in_time_that_grows_with_it(tmp_path: Path) -> None:
    def took(labels: int) -> float:
        line = b"up{" + b",".join(b'a%d="b"' % at for at in range(labels)) + b"} 1\n"
        before = time.process_time()
        found = read_bytes("prometheus", line, tmp_path)
        assert found is not None and found.kept == 1
        return time.process_time() - before

    assert took(90_000) < 40 * max(took(9_000), 0.01)  # ten times as many; a hundred would grow with its square


def test_a_range_at_times_that_nobody_believes_is_counted(tmp_path: Path) -> None:
    far = f"A\t{2**61}\t0\t7\nA\t{2**61 + 1}\t{2**62 - 1}\t7\nB\t0\t7\t\ta\t0\t0\t0\nE\t{2**62 - 1}\t7\t\t\t0\t0\t0\n"
    found = read_bytes("nvtx_tsv", far.encode(), tmp_path)
    check(found)
    assert found is not None and found.problems == {"clock_jump": 1, "time_over_int64": 1}
