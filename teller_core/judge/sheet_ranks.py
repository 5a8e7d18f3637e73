"""The ranks of a step, or of the steps of a request, side by side; and, across them, the collectives in which they met."""

from dataclasses import replace

import numpy as np

from teller_core.data.capture import Collectives, processes
from teller_core.data.sheet_parts import PARTS, Pieces, Together, no_rows
from teller_core.data.table import UNKNOWN, Float64, Int32, Int64, take
from teller_core.data.trace import Layer
from teller_core.judge.prepare import Case
from teller_core.judge.robust import weighted
from teller_core.judge.rules_comm import kept
from teller_core.judge.step_numbers import FLOOR
from teller_core.judge.windows import Keyed, keyed

CALLED = "collective"
"""What is said of one that nobody named."""
NO_TOKEN, NOTHING_ABOVE = -1, -1


def together(case: Case, steps: Int64) -> Together:
    """The ranks that worked on the steps at ``steps``, those first that others waited for most; none where it was one alone."""
    work, rows = case.capture.work, _work(case).of(steps)
    process = case.once("processes", lambda case: processes(case.capture.ranks))
    ranks = np.unique(process[work.rank[rows]]).astype(np.int64)
    if len(ranks) < 2:
        return no_rows(Together)
    each = np.bincount(work.rank[rows], weights=work.stop[rows] - work.start[rows], minlength=len(process))
    longest = np.zeros(len(process))
    np.maximum.at(longest, process, each)
    lasted = longest[ranks]
    whole = max(int(case.took[steps][case.took[steps] > 0].sum()), 1)
    met = _of_processes(take(case.capture.collectives, _met(case).of(steps)), process)
    count = np.bincount(met.rank, minlength=int(ranks.max()) + 1)[ranks]
    sums = _sums(met, ranks)
    order = np.argsort(-np.nan_to_num(sums["waited_for"], nan=-1.0), kind="stable")[: PARTS["together"]]
    table = Together(
        rank=ranks.astype(np.int32),
        lasted=(np.log(lasted + FLOOR) - np.log(np.median(lasted) + FLOOR)).astype(np.float32),
        waited=(sums["waited"] / whole).astype(np.float32),
        waited_for=(sums["waited_for"] / whole).astype(np.float32),
        transfer=(sums["transfer"] / whole).astype(np.float32),
        late=(sums["late"] / np.maximum(count, 1)).astype(np.float32),
        kept=_kept(case, steps, ranks, whole).astype(np.float32),
        collectives=count.astype(np.int32),
    )
    return take(table, order)


def _work(case: Case) -> Keyed:
    return case.once("work of steps", lambda case: keyed(case.capture.work.step.astype(np.int64)))


def _met(case: Case) -> Keyed:
    return case.once("collectives", lambda case: keyed(case.capture.collectives.step.astype(np.int64)))


def _of_processes(met: Collectives, process: Int32) -> Collectives:
    return replace(met, rank=process[met.rank], late=np.where(met.late >= 0, process[met.late], np.int32(-1)))


def _sums(met: Collectives, ranks: Int64) -> dict[str, Float64]:
    """float64 ns a rank: what it waited, was waited for and moved data; and how often it came last. NaN where no clock tells."""
    size = int(max(ranks.max(), met.rank.max(initial=0), met.late.max(initial=0))) + 1
    known = met.wait != UNKNOWN
    named = known & (met.late >= 0) & (met.late != met.rank)
    own = met.late == met.rank

    def summed(rank: Int32, ns: Int64) -> Float64:
        if not known.any():
            return np.full(len(ranks), np.nan)
        return np.bincount(rank, weights=ns, minlength=size)[ranks].astype(np.float64)

    return {
        "waited": summed(met.rank[known], met.wait[known]),
        "waited_for": summed(met.late[named], met.wait[named]),
        "transfer": summed(met.rank[known], (met.dur - met.wait)[known]),
        "late": summed(met.rank[own], np.ones(int(own.sum()), np.int64)),
    }


def _kept(case: Case, steps: Int64, ranks: Int64, whole: int) -> Float64:
    """float64 a rank: the share of the time in which it was kept from running, NaN where it was not sampled."""
    found = kept(case)
    sums = [sum(int(ns[steps].sum()) for ns in found[int(rank)]) if int(rank) in found else np.nan for rank in ranks]
    return np.minimum(np.array(sums, np.float64) / whole, 1.0)


def met_pieces(case: Case, step: int) -> Pieces:
    """The collectives of one step on all its ranks, by begin; of too many those that took longest."""
    rows = _met(case).of(np.array([step], np.int64))
    if len(rows) > PARTS["pieces"]:
        rows = rows[np.argsort(-case.capture.collectives.dur[rows], kind="stable")[: PARTS["pieces"]]]
    met = case.capture.collectives
    rows = rows[np.lexsort((met.rank[rows], met.start[rows]))]
    if not len(rows):
        return no_rows(Pieces)
    begin, took = int(case.begin[step]), max(int(case.took[step]), 1)
    own, wait = met.dur[rows], met.wait[rows]
    return Pieces(
        symbol=np.full(len(rows), NO_TOKEN, np.int32),
        run=np.ones(len(rows), np.int32),
        parent=np.full(len(rows), NOTHING_ABOVE, np.int32),
        depth=np.zeros(len(rows), np.int32),
        layer=np.full(len(rows), Layer.COMMUNICATION, np.uint8),
        rank=met.rank[rows],
        row=met.row[rows],
        own=own,
        wait=wait,
        residual=_beside_usual(case, rows).astype(np.float32),
        share=np.minimum(own / took, 1.0).astype(np.float32),
        begin=np.clip((met.start[rows] - begin) / took, 0.0, 1.0).astype(np.float32),
        name=_names(case, rows),
    )


def _beside_usual(case: Case, rows: Int64) -> Float64:
    """float64: the log of what each collective took without waiting, over the median of the capture's of its kind."""
    met = case.capture.collectives
    moved, kind = case.once("collectives usually", _usually)
    took = met.dur[rows] - np.where(met.wait[rows] != UNKNOWN, met.wait[rows], 0)
    usual = np.array([moved[name] for name in (kind[int(row)] for row in rows)], np.float64)
    return np.log(took.clip(0) + FLOOR) - np.log(usual + FLOOR)


def _usually(case: Case) -> tuple[dict[str, float], list[str]]:
    """ns by kind, and the kind of every collective."""
    met = case.capture.collectives
    kind = _names(case, np.arange(len(met.rank)))
    took = (met.dur - np.where(met.wait != UNKNOWN, met.wait, 0)).clip(0).astype(np.float64)
    of = np.array(kind, dtype=object)
    usual = {name: took[of == name] for name in set(kind)}
    return {name: weighted(ns, np.ones(len(ns)), 0.5) for name, ns in usual.items()}, kind


def _names(case: Case, rows: Int64) -> list[str]:
    meetings, met = case.capture.meetings, case.capture.collectives
    where: Int32 = met.sequence[rows].astype(np.int32)
    return [meetings.kind[at] if 0 <= at < len(meetings.kind) else CALLED for at in where.tolist()]
