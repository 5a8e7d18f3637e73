"""Logs and captures of others, where they are at hand: every line accounted for, known lines by number."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from teller_core.ingest.engine_log import read as read_log
from teller_core.ingest.found import Found, Place
from teller_core.ingest.planning import plan
from teller_core.ingest.reading import read_group

SHARED = Path(__file__).parents[4] / "shared"
LOGS = SHARED / "traces" / "logs"
CAPTURES = SHARED / "captures"
NEAR = 1_795_961_987_000_000_000

EXPECTED: dict[str, dict[str, int]] = {
    "dgx_spark/gemma4-nvfp4.log": {
        "lines": 322,
        "kept": 312,
        "blank": 3,
        "continuation": 6,
        "progress": 1,
        "unknown": 166,
        "vllm": 43,
        "uvicorn": 103,
    },
    "dgx_spark/laguna-int4-start.log": {
        "lines": 223,
        "kept": 82,
        "blank": 4,
        "continuation": 117,
        "progress": 20,
        "unknown": 71,
        "vllm": 11,
    },
    "dgx_spark/qwen38-int4.log": {
        "lines": 459,
        "kept": 448,
        "blank": 4,
        "continuation": 3,
        "progress": 4,
        "unknown": 106,
        "vllm": 239,
        "uvicorn": 103,
    },
    "dgx_spark/sglang-int4.log": {
        "lines": 397,
        "kept": 393,
        "continuation": 4,
        "unknown": 174,
        "sglang": 121,
        "uvicorn": 98,
    },
    "dgx_spark/vllm-run1-oom.log": {
        "lines": 124,
        "kept": 67,
        "blank": 4,
        "continuation": 3,
        "progress": 50,
        "unknown": 61,
        "vllm": 6,
    },
    "dgx_spark/vllm.log": {
        "lines": 518,
        "kept": 454,
        "blank": 4,
        "continuation": 10,
        "progress": 50,
        "unknown": 211,
        "vllm": 146,
        "uvicorn": 97,
    },
    "vllm_0.9.0.1_production_stack/router.log": {
        "lines": 33,
        "kept": 33,
        "unknown": 21,
        "uvicorn": 6,
        "router": 6,
    },
    "vllm_0.9.0.1_production_stack/vllm_server.log": {
        "lines": 79,
        "kept": 77,
        "progress": 1,
        "blank": 1,
        "unknown": 61,
        "vllm": 7,
        "uvicorn": 9,
    },
}


def read(name: str) -> Found:
    path = LOGS / name
    if not path.exists():
        pytest.skip("the corpus of logs is not at hand")
    return read_log(path, Place(near=NEAR), None)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_log_of_another_service_is_read_line_by_line(name: str) -> None:
    found = read(name)
    assert found.events == found.kept + sum(found.other.values()) + sum(found.problems.values())
    assert not found.problems
    assert found.clock == "wall"
    rules = Counter(line.rule.partition(".")[0] for line in found.lines)
    counts = {
        "lines": found.events,
        "kept": found.kept,
        **found.other,
        **{rule or "unknown": n for rule, n in rules.items()},
    }
    assert counts == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_times_of_a_log_do_not_run_back_by_more_than_a_second(name: str) -> None:
    """Processes write side by side, in whole seconds; an hour's step would be a wrong year, day or zone."""
    times = [line.time for line in read(name).lines if line.resolution > 0]
    assert all(after - before > -2_000_000_000 for before, after in pairwise(times))


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("vllm_engine_profile", {"iterations": 294, "requests": 64, "spans": 24, "metrics": 475, "clients": 24}),
        ("vllm_shim", {"decisions": 199, "executions": 199, "iterations": 196, "clients": 8, "traces": 3}),
        ("vllm_2node", {"decisions": 207, "executions": 414, "iterations": 200, "clients": 12, "traces": 13}),
        ("tp_fr", {"collectives": 1794, "traces": 4, "pauses": 243}),
        ("vllm_full", {"decisions": 250, "executions": 250, "iterations": 245, "traces": 5}),
    ],
)
def test_a_whole_capture_is_read(name: str, kinds: dict[str, int]) -> None:
    if not CAPTURES.exists():
        pytest.skip("the whole captures are not at hand")
    recording = read_group(plan([CAPTURES / name])[0])
    assert {kind: len(getattr(recording, kind)) for kind in kinds} == kinds
