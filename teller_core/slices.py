"""What people ask of a step or a span: what bears on it, within a budget, and its tokens of Trace Pair Encoding.

Each question reads the rows and spans that its answer needs and leaves the rest where it is. All raise TellerError.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from teller_core.context.moments import Moment, blamed_step
from teller_core.context.pages import slice_report, span_report
from teller_core.data import losses
from teller_core.data.assessment import Candidates, StepExpectations
from teller_core.data.capture import Collectives, Meetings, Pauses
from teller_core.data.linked import Met, StepSpans
from teller_core.data.report import SliceReport, SlowReport
from teller_core.data.report_operators import OperatorReport
from teller_core.data.report_tokens import RankTokens, SymbolText, TokensReport
from teller_core.data.steps import Steps, StepWork
from teller_core.data.table import UNKNOWN, Int32
from teller_core.errors import InputError, UnknownName
from teller_core.store.store import Store
from teller_core.tell.names import shorten

if TYPE_CHECKING:
    from teller_core.context.tpe.vocabulary import Vocabulary

TARGET = re.compile(r"(?:(?P<kind>request|step)[ :]+)?(?P<name>.+)", re.ASCII)
HANDLE = re.compile(r"(?P<rank>\d{1,9}):(?P<row>\d{1,9})", re.ASCII)
SPAN_COLUMNS = ("start", "dur", "name", "lane", "layer")
"""What explaining an operator, and tokens, need of every span."""
SLICE_COLUMNS = (*SPAN_COLUMNS, "link", "arg")
"""What a slice needs: with the last two it tells which event a stream waited for."""
Noted = TypeVar("Noted", SlowReport, SliceReport, TokensReport, OperatorReport)


def causal_slice(
    store: Store,
    target: str,
    *,
    capture: str | None = None,
    rank: int | None = None,
    budget: int = 4000,
    nodes: int | None = None,
) -> SliceReport:
    """What bears on ``target``: ``step 17``, ``request 42`` (its most blamed step), or a span's handle ``RANK:ROW``.

    ``rank`` keeps one rank, by its position. ``budget``: tokens of the assistant that reads it; ``nodes``: the most lines of
    spans, by default what the budget allows.
    """
    aim = _aim(store, target, capture, rank)
    if aim.span is not None:
        return _span_slice(store, aim.capture, aim.span, budget, nodes)
    return _step_slice(store, aim, rank, budget, nodes)


def tokens(store: Store, target: str, *, capture: str | None = None, rank: int | None = None) -> TokensReport:
    """The step that ``target`` names, as for :func:`causal_slice`, as tokens of Trace Pair Encoding on every rank with a profile,
    or on ``rank`` alone. What was suspected when it was imported, and what takes a share of the step that can be felt, is a
    token of its own.
    """
    from teller_core.context.tpe.default import default  # compiled code: slices for people do without

    aim = _aim(store, target, capture, rank)
    if aim.span is not None:
        raise InputError("the target", "tokens are of whole steps", "Name a request, or a step as `step 17`")
    _step(store, aim)
    work = store.work(aim.capture, aim.step, aim.step + 1)
    spans = _profiled(store, aim.capture, work, rank, SPAN_COLUMNS)
    suspects = store.rows(aim.capture, Candidates, "step", aim.step, aim.step + 1)
    vocabulary = default()
    made = [_rank_tokens(each, suspects.row[suspects.rank == each.rank], vocabulary) for each in spans]
    used = sorted({symbol for each in made for symbol in each.symbol})
    note = "" if made else "no profile overlaps this step: it has no spans to make tokens of"
    report = TokensReport(
        capture=aim.capture,
        step=aim.step,
        request=aim.request,
        vocabulary=vocabulary.hash,
        learned_from=vocabulary.origin,
        symbols=len(vocabulary),
        used=[SymbolText(symbol=each, text=shorten(vocabulary.texts[each])) for each in used],
        ranks=made,
        note="; ".join(filter(None, [aim.note, note])),
    )
    return with_losses(report, losses.SPANS, problems_of(store, aim.capture))


class Uncut(NamedTuple):
    """All that a slice is cut from: the ``spans`` of what was named, of a capture; ``about`` says of what."""

    capture: str
    spans: Sequence[StepSpans]
    about: str


def uncut(store: Store, target: str, *, capture: str | None = None, rank: int | None = None) -> Uncut:
    """The spans of the step or below the span that ``target`` names, as for :func:`causal_slice`, none left out."""
    aim = _aim(store, target, capture, rank)
    if aim.span is not None:
        at, row = aim.span
        tree = store.subtree(aim.capture, at, row)
        return Uncut(aim.capture, [StepSpans(at, row, tree, store.ranks(aim.capture)[at].shift)], f"span {at}:{row}")
    _step(store, aim)
    spans = _profiled(store, aim.capture, store.work(aim.capture, aim.step, aim.step + 1), rank, SLICE_COLUMNS)
    if not any(len(mine.tree) for mine in spans):
        why = f"no profile overlaps step {aim.step}, so it has no spans"
        raise UnknownName("the slice", why, "Name a step of which a profile was recorded")
    return Uncut(aim.capture, spans, f"step {aim.step}")


def _rank_tokens(spans: StepSpans, suspects: Int32, vocabulary: "Vocabulary") -> RankTokens:
    from teller_core.context.tpe.of_steps import step_tokens

    tree, first = spans.tree, spans.first
    encoded, alone = step_tokens(spans, suspects, vocabulary)
    made = encoded.tokens
    return RankTokens(
        rank=spans.rank,
        events=len(tree),
        unseen=len(encoded.unseen),
        opened=int(alone.sum()),
        symbol=made.symbol.tolist(),
        run=made.run.tolist(),
        parent=made.parent.tolist(),
        depth=made.depth.tolist(),
        first=(made.low + first).tolist(),
        spans=(made.high - made.low).tolist(),
        name=[
            shorten(tree.trace.names[int(tree.trace.name[low])]) if high - low == 1 else ""
            for low, high in zip(made.low.tolist(), made.high.tolist(), strict=True)
        ],
        own_ns=made.own.tolist(),
        largest_ns=made.largest.tolist(),
        largest=(made.where + first).tolist(),
        start_ns=made.start.tolist(),
    )


class _Aim(NamedTuple):
    """What a target names: a step, for a request where it named one, and why that step; or a span as (rank, row)."""

    capture: str
    step: int = 0
    request: int | None = None
    note: str = ""
    span: tuple[int, int] | None = None


def _aim(store: Store, target: str, capture: str | None, rank: int | None) -> _Aim:
    aim = _aimed(store, target, capture)
    if rank is not None and rank not in (traced := store.traced(aim.capture)):
        has = (
            f"traces were recorded of the positions {', '.join(map(str, traced[:16]))}"
            if traced
            else "none has a trace"
        )
        raise UnknownName("the rank", has, "Name one of these, or none" if traced else "Leave it out")
    return aim


def _aimed(store: Store, target: str, capture: str | None) -> _Aim:
    if handle := HANDLE.fullmatch(target.strip()):
        return _Aim(store.resolve(capture), span=(int(handle["rank"]), int(handle["row"])))
    parsed = TARGET.fullmatch(target.strip())
    if parsed is None:
        raise InputError(
            "the target", "it is empty", "Name a request, a step as `step 17`, or a span's handle RANK:ROW"
        )
    if parsed["kind"] == "step":
        return _Aim(store.resolve(capture), _step_number(parsed["name"]))
    try:
        found, number = store.request_of(capture, parsed["name"])
    except UnknownName as error:
        if parsed["kind"]:
            raise
        raise UnknownName(error.what, error.why, f"{error.next_step}; a step is called as `step 17`") from None
    step, note = _step_to_blame(store, found, number)
    return _Aim(found, step, number, note)


def _step_slice(store: Store, aim: _Aim, rank: int | None, budget: int, nodes: int | None) -> SliceReport:
    capture, step = aim.capture, aim.step
    moment = Moment(
        step=step,
        steps=_step(store, aim),
        work=store.work(capture, step, step + 1),
        participation=store.participation(capture, step, step + 1),
        pauses=store.rows(capture, Pauses),
    )
    spans = _profiled(store, capture, moment.work, rank, SLICE_COLUMNS)
    suspects = store.rows(capture, Candidates, "step", step, step + 1)
    met = _met(store, capture, step) if len(spans) > 1 else None
    report = slice_report(
        moment,
        spans,
        suspects,
        capture=capture,
        budget=budget,
        text=shorten,
        nodes=nodes,
        met=met,
        request=aim.request,
        note=aim.note,
    )
    return with_losses(report, losses.SPANS, problems_of(store, capture))


def _span_slice(store: Store, capture: str, span: tuple[int, int], budget: int, nodes: int | None) -> SliceReport:
    """The slice of one span, as (rank, row), and all below it."""
    rank, row = span
    tree = store.subtree(capture, rank, row)
    step = store.step_of(capture, rank, row)
    low, high = (0, 0) if step is None else (step, step + 1)
    suspects = store.rows(capture, Candidates, "step", low, high)
    spans = StepSpans(rank, row, tree)
    report = span_report(spans, suspects, capture=capture, step=step, budget=budget, text=shorten, nodes=nodes)
    met = list(_meeting_of(store, capture, rank, row))
    report = report.model_copy(update={"note": "; ".join(filter(None, [*met, report.note]))})
    return with_losses(report, losses.SPANS, problems_of(store, capture))


def _meeting_of(store: Store, capture: str, rank: int, row: int) -> Iterator[str]:
    """Where a span is a rank's call of a collective: who waited for whom in it, and what kept the one that came last."""
    here = store.rows(capture, Collectives, "row", row, row + 1)
    mine = np.flatnonzero((here.rank == rank) & (here.sequence >= 0))
    if not len(mine):
        return
    at = int(here.sequence[mine[0]])
    calls = store.rows(capture, Collectives, "sequence", at, at + 1)
    met = store.rows(capture, Meetings, low=at, high=at + 1)
    if not len(met.late):
        return
    late, kept = int(met.late[0]), int(met.kept[0])
    inside = f", which was in {late}:{kept} until then" if kept >= 0 else ""
    if late < 0:
        yield f"a collective of {int(met.came[0])} ranks: nobody can be said to have come last"
    elif late == rank:
        others = np.where((calls.rank == late) | (calls.row < 0), UNKNOWN, calls.wait)
        most = int(np.argmax(others))
        inside = f"; until then its rank was in {late}:{kept}" if kept >= 0 else ""
        waited = f"; longest waited {int(calls.rank[most])}:{int(calls.row[most])}, {int(others[most]) / 1e6:,.3g} ms"
        yield (
            f"a collective of {int(met.came[0])} ranks: this one came last{inside}"
            + (waited if others[most] != UNKNOWN else "")
        )
    else:
        waited = int(here.wait[mine[0]])
        said = f"waited {waited / 1e6:,.3g} ms" if waited != UNKNOWN else "waited"
        last = calls.row[calls.rank == late]
        yield (
            f"a collective of {int(met.came[0])} ranks: this one {said} for the rank at position {late}{inside}"
            + (f"; its call is {late}:{int(last[0])}" if len(last) and last[0] >= 0 else "")
        )


def _step_to_blame(store: Store, capture: str, number: int) -> tuple[int, str]:
    blamed = blamed_step(
        number - 1,
        store.requests(capture),
        store.participation(capture),
        store.steps(capture),
        store.rows(capture, StepExpectations),
    )
    if blamed is None:
        raise UnknownName(
            "the request", "no step of a known time is known to have served it", "Ask `why` for what is known of it"
        )
    return blamed


def _step_number(name: str) -> int:
    if not name.isdecimal() or len(name) > 9:
        raise InputError("the step", "a step is called by a number", "Take one from an answer, as `step 17`")
    return int(name)


def _met(store: Store, capture: str, step: int) -> Met:
    """The collectives of one step, and the meetings that they were."""
    calls = store.rows(capture, Collectives, "step", step, step + 1)
    low, high = (int(calls.sequence.min()), int(calls.sequence.max()) + 1) if len(calls.sequence) else (0, 0)
    return Met(calls, store.rows(capture, Meetings, low=low, high=high), low)


def _step(store: Store, aim: _Aim) -> Steps:
    """The step as a table of one row. Raises UnknownName where there is none."""
    if len((found := store.steps(aim.capture, aim.step, aim.step + 1)).engine):
        return found
    steps = store.report(aim.capture).steps
    if not steps:
        raise UnknownName("the step", "no steps were recorded in this capture", "Ask `slow` for what it tells instead")
    last = f"its only step is step {steps - 1}" if steps == 1 else f"its steps are 0 to {steps - 1}"
    raise UnknownName("the step", f"the capture has no such step: {last}", "Name one of these")


def _profiled(
    store: Store, capture: str, work: StepWork, rank: int | None, columns: tuple[str, ...]
) -> Sequence[StepSpans]:
    """The spans of a step, these ``columns`` of them, on every rank with a profile, or on ``rank`` alone."""
    rows = zip(work.rank.tolist(), work.row.tolist(), work.row_stop.tolist(), strict=True)
    ranks = store.ranks(capture)
    return [
        StepSpans(at, low, store.tree_rows(capture, at, low, high, columns), ranks[int(at)].shift)
        for at, low, high in rows
        if low >= 0 and rank in (None, at)
    ]


def problems_of(store: Store, capture: str) -> Mapping[str, int]:
    """How often what went wrong in reading the capture, by name."""
    return store.report(capture).problems


def with_losses(report: Noted, bears: str, problems: Mapping[str, int]) -> Noted:
    """``report`` with what was lost in reading that bears on it, behind its note."""
    return report.model_copy(update={"note": losses.note(problems, {bears}, report.note)})
