"""Whole captures, where they are at hand: records of every kind by number."""

from pathlib import Path

import pytest

from teller_core.ingest.files.planning import plan
from teller_core.ingest.reading import read_group

SHARED = Path(__file__).parents[4] / "shared"
CAPTURES = SHARED / "captures"


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
