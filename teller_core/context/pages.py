"""A step's slice over all its ranks, as one report."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from teller_core.context.moments import Moment, moment_lines
from teller_core.context.slicing import Cut, StepSpans, causal_slice, price
from teller_core.data.assessment import Candidates
from teller_core.data.replays import replays_note
from teller_core.data.report import SliceLine, SliceReport
from teller_core.data.table import UNKNOWN, take

HEAD_SHARE = 0.25
"""Of the budget, at most, goes to what is known without a profile, where there is a profile."""
SUSPECTED, OTHER = 4, 1
"""A rank with suspected spans gets four times the room of one without."""
LEAST_ROOM = 100
"""Tokens: in less a rank cannot say anything; it is left out and the note says so."""


def slice_report(
    moment: Moment,
    spans: Sequence[StepSpans],
    found: Candidates,
    *,
    capture: str,
    budget: int,
    text: Callable[[str], str],
    request: int | None = None,
    note: str = "",
) -> SliceReport:
    """The slice of one step. ``spans``: its rows on every rank with a profile (empty for none); ``found``: the candidates of
    this step; ``budget``: assistant tokens for the lines; ``text`` cleans and shortens names; ``request``: the small number of
    the request it is shown for.
    """
    begin = moment.begin
    head = _fitting(moment_lines(moment), budget * HEAD_SHARE if spans else budget)
    spent = sum(price(line) for line in head)
    lines, events, cut = list(head), 0, 0
    notes = [note] if note else []
    if not spans:
        notes.append("no profile overlaps this step: these lines come from its times, its requests and recorded pauses")
        if begin != UNKNOWN and begin == moment.end:
            notes.append("only one moment of it is on the clock: it is drawn without a length")
    left_out: list[int] = []
    missed = 0
    for mine, room in _rooms(spans, found, budget - spent):
        part = _cut(mine, found, begin if begin != UNKNOWN else int(mine.tree.trace.start[0]), room, text)
        lines, spent = [*lines, *part.lines], spent + part.tokens
        events, cut, missed = events + part.events, cut + part.cut, missed + part.missed
        if not part.lines and part.events:
            left_out.append(mine.rank)
    if left_out:
        notes.append(f"the budget left out rank {', '.join(map(str, left_out))}")
    if missed:
        notes.append(f"{missed} suspected spans found no room in the budget")
    if replayed := replays_note([mine.tree for mine in spans]):
        notes.append(replayed)
    ranks = {mine.rank for mine in spans}
    return SliceReport(
        capture=capture,
        step=moment.step,
        request=request,
        rank=ranks.pop() if len(ranks) == 1 else None,
        lines=lines,
        events=events,
        tokens=spent,
        budget=budget,
        cut=cut,
        note="; ".join(notes),
    )


def _rooms(spans: Sequence[StepSpans], found: Candidates, budget: int) -> Sequence[tuple[StepSpans, int]]:
    """The ranks, those with suspected spans first, each with its part of the budget."""
    suspected = set(found.rank.tolist())
    if not suspected & {mine.rank for mine in spans} and spans:
        suspected = {max(spans, key=_lasted).rank}
    order = sorted(spans, key=lambda mine: (mine.rank not in suspected, mine.rank))
    weights = [SUSPECTED if mine.rank in suspected else OTHER for mine in order]
    return [(mine, int(budget * weight / sum(weights))) for mine, weight in zip(order, weights, strict=True)]


def _cut(mine: StepSpans, found: Candidates, begin: int, room: int, text: Callable[[str], str]) -> Cut:
    if room < LEAST_ROOM:
        return Cut([], 0, len(mine.tree), len(mine.tree), 0)
    return causal_slice(mine, take(found, found.rank == mine.rank), begin=begin, budget=room, text=text)


def _lasted(mine: StepSpans) -> int:
    trace = mine.tree.trace
    return int(np.max(trace.end) - np.min(trace.start)) if len(trace) else 0


def _fitting(lines: Iterable[SliceLine], budget: float) -> list[SliceLine]:
    """The lines from the first on that fit ``budget``."""
    kept: list[SliceLine] = []
    for line in lines:
        budget -= price(line)
        if budget < 0:
            break
        kept.append(line)
    return kept


def span_report(
    mine: StepSpans, found: Candidates, *, capture: str, step: int | None, budget: int, text: Callable[[str], str]
) -> SliceReport:
    """The slice of one span and all below it: ``mine.tree`` is its subtree. Times count from its own start."""
    begin = int(mine.tree.trace.start[0])
    part = causal_slice(mine, take(found, found.rank == mine.rank), begin=begin, budget=budget, text=text)
    return SliceReport(
        capture=capture,
        step=step,
        request=None,
        rank=mine.rank,
        lines=part.lines,
        events=part.events,
        tokens=part.tokens,
        budget=budget,
        cut=part.cut,
        note="; ".join(
            filter(
                None,
                (
                    f"{part.missed} suspected spans found no room in the budget" if part.missed else "",
                    replays_note([mine.tree]),
                ),
            )
        ),
    )
