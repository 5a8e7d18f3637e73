"""Whom the ranks of a step waited for: by the time that they waited, not by how often."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.judge.diagnose import judge
from teller_core.judge.evidence import ms
from teller_core.judge.prepare import CALM, prepare
from teller_core.judge.rules_comm import degraded_link
from teller_core.judge.scene import scene
from tests.core.judge.serving import MS, Trouble, serve
from tests.core.judge.test_diagnose import CROWD, STRUCK, collectives, first


@pytest.mark.parametrize(
    ("slow", "until", "longer", "said", "quantile"),
    [((2.2, 2.3), 1300, 8, "calm", CALM), ((0.45, 0.46), 1500, 1, "median", 0.5)],
)
def test_a_slow_link_is_held_against_what_its_evidence_says(
    slow: tuple[float, float], until: float, longer: float, said: str, quantile: float
) -> None:
    capture, numbers = serve(CROWD, [Trouble("link", 800, until, longer)])
    told = collectives(capture, (800, until), slow, wait=False)
    clue = degraded_link(scene(prepare(told, numbers), STRUCK, "e2e"))
    assert clue is not None
    table = told.collectives
    meetings = table.dur.reshape(-1, 4, 2) if (table.sequence[:2] == table.sequence[0]).all() else None
    assert meetings is not None  # by step, turn and rank
    usual = float(np.quantile(meetings.min(axis=2).mean(axis=1), quantile))
    cost, each, *_ = clue.evidence
    assert cost.name == f"collectives beyond their {said} time in its steps"
    assert each.normal == ms(int(usual))
    own = np.isin(table.step.reshape(-1, 8)[:, 0], capture.participation.step[capture.participation.request == STRUCK])
    beyond = meetings.min(axis=2).sum(axis=1) - 4 * usual
    assert clue.ns == pytest.approx(beyond[own & (beyond > 0.2 * MS)].sum(), rel=0.01)


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
        ranks=[*capture.ranks, replace(capture.ranks[0], rank=1, pid=8)],
    )
    report = judge(prepare(told, numbers), STRUCK)
    who = [finding.rank for finding in report.findings if finding.cause == "comm.straggler_rank"]
    assert who == ([] if named is None else [named])
    assert named is None or first(report) == "comm.straggler_rank"
