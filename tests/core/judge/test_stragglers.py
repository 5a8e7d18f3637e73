"""Whom the ranks of a step waited for: by the time that they waited, not by how often."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.judge.diagnose import judge
from teller_core.judge.prepare import prepare
from tests.core.judge.serving import MS, Trouble, serve
from tests.core.judge.test_diagnose import CROWD, STRUCK, collectives, first


@pytest.mark.parametrize(
    ("late_ms", "other_ms", "named"), [(8.0, 0.1, 0), (0.2, 8.0, 1), (8.0, 8.0, 1), (4.0, 1.2, None)]
)
def test_a_rank_that_begins_its_steps_late_is_named_though_the_other_comes_last_more_often(
    late_ms: float, other_ms: float, named: int | None
) -> None:
    """Rank 0 comes ``late_ms`` late to the first of a step's four collectives, rank 1 ``other_ms`` to each of the rest."""
    capture, numbers = serve(CROWD, [Trouble("link", 800, 1300, 8)])
    table = collectives(capture, (800, 1300), (0.2, 8.0), wait=True).collectives
    struck, begins = table.late >= 0, table.sequence % 4 == 0
    late = np.where(struck, np.where(begins, 0, 1), -1).astype(np.int32)
    lost = np.where(begins, late_ms, other_ms) * MS
    wait = np.where(struck & (table.rank != late), lost, 0).astype(np.int64)
    dur = wait + MS // 5
    told = replace(
        capture,
        collectives=replace(table, late=late, wait=wait, dur=dur),
        ranks=[*capture.ranks, replace(capture.ranks[0], rank=1)],
    )
    report = judge(prepare(told, numbers), STRUCK)
    who = [finding.rank for finding in report.findings if finding.cause == "comm.straggler_rank"]
    assert who == ([] if named is None else [named])
    assert named is None or first(report) == "comm.straggler_rank"
