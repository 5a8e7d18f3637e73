"""The tail of replicas that really ran: the one that a fault struck is named."""

from pathlib import Path

import pytest

from teller_core.fleet import fleet
from teller_core.lab.benchmark.pack import capture_of, read_truth
from teller_core.store.store import Store
from tests.core.fleet_of_lives import calm_replicas, struck_replica

LIVES = Path(__file__).parents[1] / "lab"
CASES = [
    ("01336365", "engine_quota", 3, "decode"),
    ("01336365", "worker_quota", 1, "decode"),
    ("0769ef7c", "gc_pause", 3, "decode"),
]


@pytest.mark.parametrize(("name", "fault", "tier", "phase"), CASES)
def test_the_replica_that_a_fault_struck_is_named_and_no_other(
    tmp_path: Path, name: str, fault: str, tier: int, phase: str
) -> None:
    life = read_truth(LIVES, name)
    whole = capture_of(life, tier)
    block, strike, truth = next(
        (block, strike, truth)
        for block, told in enumerate(life.blocks)
        for strike, truth in enumerate(told.strikes)
        if truth.fault == fault
    )
    with Store.open(tmp_path / "t.db") as store:
        calm_replicas(store, life, whole)
        struck = struck_replica(store, life, whole, block, strike)
        report = fleet(store, since="1d")
    assert report.verdict == "explained"
    assert [row[0] for row in report.replica_rows if row[-1]] == [struck[:12]]
    assert phase in {part.part for part in report.phases if part.named}
    assert report.gap_ns == sum(part.ns or 0 for part in report.phases)
    assert {one.capture for one in report.examples} == {struck}
    causes = {row[1] for row in report.rows if row[0] == "cause" and row[-1]}
    assert causes <= {truth.cause}
