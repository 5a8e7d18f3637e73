"""The rule for ranks that wait for whoever has the experts that everybody asks for."""

import re

import numpy as np

from teller_core.data.report import EvidenceItem
from teller_core.data.table import UNKNOWN, Int64
from teller_core.judge.evidence import COUNTED, Clue, cost, count
from teller_core.judge.rules_comm import SAME_RANK, WAITED
from teller_core.judge.scene import Scene
from teller_core.judge.windows import keyed

EXPERTS = re.compile(r"moe|expert|group(ed)?_?gemm", re.I)
"""Kernels and operators that compute experts."""
MOSTLY = 0.5
"""Share of the waiting in which the rank that came last had been computing experts."""


def moe_imbalance(scene: Scene) -> Clue | None:
    """The ranks of its steps waited in collectives, now for one and now for another, and each was at its experts before."""
    capture = scene.case.capture
    table, met = capture.collectives, capture.meetings
    rows = scene.case.once("collectives", lambda case: keyed(case.capture.collectives.step.astype(np.int64)))
    mine = rows.of(scene.life.step.astype(np.int64))
    mine = mine[(table.wait[mine] != UNKNOWN) & (table.late[mine] >= 0)]
    if not len(mine):
        return None
    late, times = np.unique(table.late[mine], return_counts=True)
    waiting = mine[table.rank[mine] != table.late[mine]]
    waited = int(table.wait[waiting].sum())
    if len(late) < 2 or times.max() >= SAME_RANK * times.sum() or waited < WAITED * int(table.dur[waiting].sum()):
        return None
    number = np.unique(table.sequence[mine])
    number = number[(number < len(met.kept)) & (number >= 0)]
    number = number[(met.late[number] >= 0) & (met.by[number] != UNKNOWN)]
    experts = np.array([EXPERTS.search(_kept(scene, int(one))) is not None for one in number.tolist()], dtype=np.bool_)
    if not len(number) or met.by[number][experts].sum() < MOSTLY * met.by[number].sum():
        return None
    ns = waited // max(len(np.unique(table.rank[waiting])), 1)
    evidence = [
        cost("each rank waited for another one's experts", ns, kind="collective"),
        count("ranks that came last", len(late), unit="ranks", kind="collective"),
        count("collectives to which one of them came last most often", 100 * float(times.max() / times.sum()), unit="%",
              kind="collective"),
        *_worst(scene, number[experts]),
    ]  # fmt: skip
    return Clue("comm.moe_imbalance", ns, COUNTED, evidence, view="horizontal", layer="communication")


def _kept(scene: Scene, meeting: int) -> str:
    """The name of what kept the rank that came last to a meeting, empty where it is not known."""
    met = scene.case.capture.meetings
    tree = scene.case.capture.ranks[int(met.late[meeting])].tree
    row = int(met.kept[meeting])
    return tree.trace.names[int(tree.trace.name[row])] if tree is not None and row >= 0 else ""


def _worst(scene: Scene, number: Int64) -> list[EvidenceItem]:
    met = scene.case.capture.meetings
    worst = int(number[np.argmax(met.by[number])])
    span = f"{int(met.late[worst])}:{int(met.kept[worst])}"
    name = _kept(scene, worst)
    return [
        EvidenceItem(
            kind="span",
            scope="this_request",
            span=span,
            name=name[:200],
            value=round(int(met.by[worst]) / 1e6, 2),
            unit="ms",
        )
    ]
