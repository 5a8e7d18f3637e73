"""Where the evidence of an answer stands in its capture: the rows and the cells that it was measured from."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from teller_core.data.report import EvidenceItem, Finding, WhyReport
from teller_core.data.table import UNKNOWN, Int64, Mask
from teller_core.judge.anatomy import slow_way
from teller_core.judge.prepare import Case
from teller_core.judge.scene import Scene, scene
from teller_core.lab.faithfulness.sources import SOURCES, Source

Marks = Mapping[str, Mask]
"""bool a row, by what is meant: ``pauses``, ``samples``, ``readings``, ``collectives`` and ``lines`` are rows of these tables;
``steps``, when those ran; ``profiles``, what a profile shows of those steps; ``spans.R``, rows of the tree of the rank at R;
``requests.C``, ``cells.C`` (of steps) and ``participation.C``, cells of the column C.
"""

COLUMNS = ("requests", "cells", "participation")
UNTOLD = -1
"""A count that nobody told; a time that nobody did is less."""


def cited(case: Case, request: int, report: WhyReport) -> Marks | None:
    """What the findings of ``report``, an answer about the request at a position of ``case``, cite; None where it is not known of
    some evidence what it was measured from.
    """
    view, found = scene(case, request, report.metric), dict[str, Mask]()
    for finding in report.findings:
        for item in finding.evidence:
            sources = list(_sources(item))
            if not sources and item.span is None and item.log_line is None and item.step is None:
                return None
            for name, mask in [*_itself(case, item), *(_of(view, finding, item, one) for one in sources)]:
                if mask.any():
                    found[name] = found[name] | mask if name in found else mask
    there = {name: mask & known(case, name) for name, mask in found.items()}
    return {name: mask for name, mask in there.items() if mask.any()}


def _sources(item: EvidenceItem) -> Iterator[Source]:
    """By its name, of which the end may be that of an operator; a span has a handle, and a name of its own."""
    if item.span is None:
        name = item.name or ""
        yield from SOURCES.get(name, ()) or SOURCES.get(name.partition(": ")[0], ())


def _itself(case: Case, item: EvidenceItem) -> Iterator[tuple[str, Mask]]:
    """What ``item`` names with its place."""
    capture = case.capture
    if item.span is not None:
        rank, row = map(int, item.span.split(":"))
        tree = capture.ranks[rank].tree
        if tree is not None:
            yield f"spans.{rank}", _at(len(tree), [row])
    if item.log_line is not None:
        name, _, number = item.log_line.rpartition(":")
        of_file = np.array([capture.files[at].name == name for at in map(int, capture.lines.file)], np.bool_)
        yield "lines", of_file & (capture.lines.number == int(number))
    if item.kind == "step" and item.step is not None:
        yield "steps", _at(len(case.begin), [item.step])


def _of(view: Scene, finding: Finding, item: EvidenceItem, source: Source) -> tuple[str, Mask]:
    capture, steps, names = view.case.capture, len(view.case.begin), source.names
    if source.table == "operator":
        return _operator(view.case, finding, item)
    match source.table:
        case "pauses" | "samples" | "readings" as table:
            start, stop = times(view.case, table)
            called = {"pauses": capture.pauses.kind, "samples": capture.samples.name}.get(table, capture.readings.name)
            mask = np.array([name in names for name in called], np.bool_) & (start < view.high) & (stop > view.low)
        case "requests":
            mask = _at(len(capture.requests.number), [view.life.request])
        case "participation":
            mask = capture.participation.request == view.life.request
        case "cells":
            mask = (view.case.begin >= view.low) & (view.case.begin < view.high)
        case "collectives":
            mine = [*view.life.step.tolist(), *([] if finding.step is None else [finding.step])]
            mask = np.isin(capture.collectives.step, mine)
        case "profiles":
            mask = _at(steps, _profiled(view))
        case _:
            mask = _at(steps, view.holds.step[view.holds.over > 0])
    return f"{source.table}.{names[0]}" if source.table in COLUMNS else source.table, mask


def _profiled(view: Scene) -> Int64:
    """The profiled steps that were slow in one way, else those of the request."""
    way, own = slow_way(view.case), view.life.step.astype(np.int64)
    return own[view.case.profiled[own]] if way is None else way.steps


def _operator(case: Case, finding: Finding, item: EvidenceItem) -> tuple[str, Mask]:
    """The spans of the operator of ``finding`` in its step, on the rank that has most of them."""
    step, work = finding.step if item.step is None else item.step, case.capture.work
    best, found = 0, _at(0, [])
    for at in np.flatnonzero((work.step == (-1 if step is None else step)) & (work.row >= 0)).tolist():
        rank, low, high = int(work.rank[at]), int(work.row[at]), int(work.row_stop[at])
        tree = case.capture.ranks[rank].tree
        if tree is not None and finding.operator in tree.trace.names:
            mine = tree.trace.name[low:high] == tree.trace.names.index(finding.operator)
            if mine.sum() > found.sum():
                best, found = rank, _at(len(tree), low + np.flatnonzero(mine))
    return f"spans.{best}", found


def _at(count: int, rows: Sequence[int] | Int64) -> Mask:
    mask = np.zeros(count, np.bool_)
    mask[np.asarray(rows, np.int64)] = True
    return mask


def times(case: Case, name: str) -> tuple[Int64, Int64]:
    """int64 ns, by row of what ``name`` means in :data:`Marks`: from when until when it was; UNKNOWN where that is not known."""
    capture = case.capture
    table, _, column = name.partition(".")
    if table in ("samples", "readings", "pauses", "collectives"):
        rows = getattr(capture, table)
        return rows.start, rows.start + rows.dur if table in ("pauses", "collectives") else rows.stop
    if table == "lines":
        return capture.lines.time, capture.lines.time
    if table == "spans":
        rank = capture.ranks[int(column)]
        assert rank.tree is not None  # its spans were cited
        return rank.tree.trace.start + rank.shift, rank.tree.trace.end + rank.shift
    if table == "requests":
        return case.starts, case.ends
    step = capture.participation.step if table == "participation" else slice(None)
    return case.begin[step], case.stop[step]


def known(case: Case, name: str) -> Mask:
    """bool, by row of what ``name`` means: it was recorded."""
    capture = case.capture
    table, _, column = name.partition(".")
    start, stop = times(case, name)
    found = (start != UNKNOWN) & (stop != UNKNOWN) & (stop >= start)
    match table:
        case "requests" | "participation":
            return found & (getattr(getattr(capture, table), column) > UNTOLD)
        case "cells":
            value = getattr(capture.steps, column)
            return found & (~np.isnan(value) if value.dtype.kind == "f" else value > UNTOLD)
        case "profiles":
            return found & case.profiled
        case _:
            return found
