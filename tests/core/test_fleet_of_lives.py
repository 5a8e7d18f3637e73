"""The tail of replicas that really ran: windows of packed lives as captures, one of which holds what a fault struck."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.data.capture import Capture
from teller_core.fleet import fleet
from teller_core.lab.benchmark.cut import cut
from teller_core.lab.benchmark.pack import capture_of, read_truth
from teller_core.lab.blocks import HEALTHY, Window
from teller_core.pipeline import STAGES
from teller_core.store.store import Store
from teller_core.tell.summary import capture_report

LIVES = Path(__file__).parents[1] / "lab"
NOW = "2026-12-01T00:00:00+00:00"


def keep(store: Store, whole: Capture, windows: Sequence[Window]) -> str:
    """Judge and store the ``windows`` of a life as one capture. Returns its id."""
    part = replace(cut(whole, [(one.begin, one.end) for one in windows]), name="replica")
    numbers = STAGES.assess(part, None)
    answers = (STAGES.explain(said) for said in STAGES.diagnose(part, numbers))
    store.save(part, numbers, answers, capture_report(part, already_known=False, imported_at=NOW))
    return part.id


@pytest.mark.parametrize(("name", "fault", "tier"), [("01336365", "engine_quota", 3), ("01336365", "worker_quota", 1)])
def test_the_replica_that_a_fault_struck_is_named_and_no_other(
    tmp_path: Path, name: str, fault: str, tier: int
) -> None:
    life = read_truth(LIVES, name)
    whole = capture_of(life, tier)
    with Store.open(tmp_path / "t.db") as store:
        struck: list[str] = []
        for block in life.blocks:
            calm = [window for window in block.windows if window.strike == HEALTHY and not window.profiled]
            for turn in (0, 1):
                keep(store, whole, calm[turn::2])
            at = next((at for at, truth in enumerate(block.strikes) if truth.fault == fault), None)
            mine = [window for window in block.windows if window.strike == at and not window.profiled]
            struck += [keep(store, whole, mine)] if mine else []
        report = fleet(store, since="6h")
    assert report.verdict == "explained"
    named = [row[0] for row in report.replica_rows if row[-1]]
    assert named == [one[:12] for one in struck]
    assert report.gap_ns == sum(part.ns or 0 for part in report.phases)
    assert {one.capture for one in report.examples} == set(struck)
