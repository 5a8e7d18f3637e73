"""What numbers suspect in a step and what words may cite, as parts of sheets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.report import EvidenceItem
from teller_core.data.sheet_parts import PARTS, Facts, Suspects, no_rows
from teller_core.data.table import Int64
from teller_core.data.trace import Layer
from teller_core.judge.anatomy import grown
from teller_core.judge.evidence import SAMPLED, Clue, cost, step_item
from teller_core.judge.prepare import Case

EACH = 6
"""Facts of one clue: those behind say what the ones before them say already."""
ANATOMY = "anatomy"
"""The method of what slow profiled steps have more of than calm ones, all calls together."""
CHARGED: Mapping[str, tuple[str, str]] = {
    "collection": ("host.gc_pause", "collections while it ran"),
    "starved": ("host.cpu_starvation", "it was stretched while threads waited for a processor"),
    "device": ("host.io_stall", "it was stretched while storage was waited for"),
    "asleep": ("host.blocking_call", "the thread that it waits for slept longer than usual"),
    "rest": ("host.step_overhead", "beyond what its work asks for, and nothing recorded explains it"),
}
"""What is charged to a step alone, the cause that this speaks for, and how it is said."""


class _Suspect(NamedTuple):
    name: str
    layer: int
    rank: int
    row: int
    value: int
    normal: int
    residual: float
    added: int
    method: str


def suspects_of(case: Case, step: int) -> Suspects:
    """What is suspected in a step, what adds most first: whole operators by how slow steps differ from calm ones, then spans."""
    took = max(int(case.took[step]), 1)
    rows = [*_grown(case, step), *_candidates(case, step)][: PARTS["suspects"]]
    if not rows:
        return no_rows(Suspects)
    name, layer, rank, row, value, normal, residual, added, method = (
        list(column) for column in zip(*rows, strict=True)
    )
    return Suspects(
        name=name,
        layer=np.array(layer, np.uint8),
        rank=np.array(rank, np.int32),
        row=np.array(row, np.int32),
        value=np.array(value, np.int64),
        normal=np.array(normal, np.int64),
        residual=np.clip(np.array(residual, np.float32), -20, 20),
        share=np.clip(np.array(added, np.float64) / took, -1.0, 1.0).astype(np.float32),
        piece=np.full(len(rows), -1, np.int32),
        method=method,
    )


def _grown(case: Case, step: int) -> Iterator[_Suspect]:
    """Half of the room at most: that a span stands out where no step is calm is known of spans alone."""
    for one in grown(case).get(step, ())[: PARTS["suspects"] // 2]:
        layer = Layer.COMMUNICATION if one.name in _collectives(case) else Layer.OPERATOR
        normal = max(one.took - one.added, 0)
        yield _Suspect(one.name, layer, -1, -1, one.took, normal, np.nan, one.added, ANATOMY)


def _collectives(case: Case) -> frozenset[str]:
    return case.once("names of collectives", _names_of_collectives)


def _names_of_collectives(case: Case) -> frozenset[str]:
    found: set[str] = set()
    for rank in case.capture.ranks:
        if rank.tree is not None:
            trace = rank.tree.trace
            used = np.unique(trace.name[trace.layer == Layer.COMMUNICATION])
            found.update(trace.names[int(name)] for name in used)
    return frozenset(found)


def _candidates(case: Case, step: int) -> Iterator[_Suspect]:
    table = case.assessment.candidates
    low, high = np.searchsorted(table.step, [step, step + 1]).tolist()
    for at in range(low, high):
        yield _Suspect(
            table.name[at],
            int(table.layer[at]),
            int(table.rank[at]),
            int(table.row[at]),
            int(table.value[at]),
            int(table.normal[at]),
            float(table.residual[at]),
            int(table.excess[at]),
            table.method[at],
        )


def step_clues(case: Case, step: int, held: Mapping[str, Int64]) -> list[Clue]:
    """What can be said of one step alone. ``held`` int64 ns a step, by charge."""
    took, expected = int(case.took[step]), int(case.expected[step])
    found: list[Clue] = []
    for charge, (key, name) in CHARGED.items():
        ns = int(held[charge][step]) - (int(held["asleep"][step]) if charge == "rest" else 0)
        if ns > 0:
            item = cost(name, ns, kind="pause" if charge == "collection" else "sample", scope="its_steps")
            found.append(
                Clue(key, ns, SAMPLED, [item, step_item(step, "the step", took, expected, own=False)], step=step)
            )
    return sorted(found, key=lambda clue: -clue.ns)


def facts_of(case: Case, clues: Sequence[Clue], span: int) -> Facts:
    """The evidence of ``clues``, which cost parts of ``span`` ns, in their order."""
    pairs = [(clue, item) for clue in clues for item in clue.evidence[:EACH]][: PARTS["facts"]]
    if not pairs:
        return no_rows(Facts)
    share = [min(max(clue.ns, 0) / max(span, 1), 2.0) for clue, _ in pairs]
    return Facts(
        cause=[clue.cause for clue, _ in pairs],
        name=[item.name or "" for _, item in pairs],
        value=np.array([np.nan if item.value is None else item.value for _, item in pairs], np.float64),
        normal=np.array([np.nan if item.normal is None else item.normal for _, item in pairs], np.float64),
        unit=[item.unit or "" for _, item in pairs],
        kind=[item.kind for _, item in pairs],
        scope=[item.scope for _, item in pairs],
        share=np.array(share, np.float32),
        sure=np.array([clue.confidence for clue, _ in pairs], np.float32),
        step=np.array([_first(item.step, clue.step) for clue, item in pairs], np.int32),
        rank=np.array([_first(clue.rank) for clue, _ in pairs], np.int32),
        operator=[clue.operator or "" for clue, _ in pairs],
        span=[item.span or "" for _, item in pairs],
        line=np.array([_line(case, item) for _, item in pairs], np.int32),
        horizontal=np.array([clue.view == "horizontal" for clue, _ in pairs], np.uint8),
    )


def _first(*given: int | None) -> int:
    return next((each for each in given if each is not None), -1)


def _line(case: Case, item: EvidenceItem) -> int:
    """The row of the log line that ``item`` names as FILE:LINE, -1 for none."""
    if item.log_line is None:
        return -1
    name, _, number = item.log_line.rpartition(":")
    lines, files = case.capture.lines, case.capture.files
    rows = np.flatnonzero(lines.number == int(number))
    return next((row for row in rows.tolist() if files[int(lines.file[row])].name == name), -1)
