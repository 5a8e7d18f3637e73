"""A step's slice over all its ranks, as one report."""

from collections.abc import Callable, Iterable, Sequence

from teller_core.context.dependencies import Met, StepSpans
from teller_core.context.moments import Moment, moment_lines
from teller_core.context.relevance import Bearing
from teller_core.context.sides import Late, lasted, side_by_side
from teller_core.context.slicing import Cut, Room, causal_slice, price
from teller_core.data.assessment import Candidates
from teller_core.data.replays import replays_note
from teller_core.data.report import SliceLine, SliceReport
from teller_core.data.table import UNKNOWN, take

HEAD_SHARE = 0.25
"""Of the budget, at most, goes to what is known without a profile, where there is a profile."""
SUSPECTED, OTHER = 4, 1
"""A rank with suspected spans, or on one side of a long wait for another rank, gets four times the room of one without."""
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
    nodes: int | None = None,
    met: Met | None = None,
    request: int | None = None,
    note: str = "",
) -> SliceReport:
    """The slice of one step. ``spans``: its rows on every rank with a profile (empty for none); ``found``: the candidates of
    this step; ``budget``: assistant tokens for the lines, of which there are ``nodes`` at most; ``text`` cleans and shortens
    names; ``met``: the step's collectives; ``request``: the small number of the request it is shown for.
    """
    begin = moment.begin
    whole = Room(budget) if nodes is None else Room(budget, nodes)
    head = _fitting(moment_lines(moment), _part_of(whole, HEAD_SHARE) if spans else whole)
    spent = sum(price(line) for line in head)
    sides = side_by_side(spans, found, met)
    bears = {mine.rank: bearing for mine, bearing in zip(spans, sides.bears, strict=True)}
    lines, parts, left_out = list(head), list[Cut](), list[int]()
    order = _order(spans, found, sides.wanted)
    for at, (mine, _) in enumerate(order):
        room = _part_of(Room(whole.tokens - spent, whole.nodes - len(lines)), _share(order[at:]))
        since = begin - mine.shift if begin != UNKNOWN else int(mine.tree.trace.start[0])
        part = _cut(mine, found, bears[mine.rank], begin=since, room=room, text=text)
        lines, spent = [*lines, *part.lines], spent + part.tokens
        parts.append(part)
        if not part.lines and part.events:
            left_out.append(mine.rank)
    notes = [note] if note else []
    if not spans:
        notes += _without_profile(moment)
    notes += _notes(parts, left_out, sides.told)
    if replayed := replays_note([mine.tree for mine in spans]):
        notes.append(replayed)
    ranks = {mine.rank for mine in spans}
    return SliceReport(
        capture=capture,
        step=moment.step,
        request=request,
        rank=ranks.pop() if len(ranks) == 1 else None,
        lines=lines,
        events=sum(part.events for part in parts),
        tokens=spent,
        budget=budget,
        cut=sum(part.cut for part in parts),
        note="; ".join(notes),
    )


def _without_profile(moment: Moment) -> list[str]:
    notes = ["no profile overlaps this step: these lines come from its times, its requests and recorded pauses"]
    if moment.begin != UNKNOWN and moment.begin == moment.end:
        notes.append("only one moment of it is on the clock: it is drawn without a length")
    return notes


def _notes(parts: Sequence[Cut], left_out: Sequence[int], told: Sequence[Late]) -> list[str]:
    notes: list[str] = []
    if left_out:
        notes.append(f"the budget left out rank {', '.join(map(str, left_out))}")
    if missed := sum(part.missed for part in parts):
        notes.append(f"{missed} suspected spans found no room in the budget")
    if unpaired := sum(part.unpaired for part in parts):
        notes.append(f"no room in the budget for {unpaired} spans that were waited for, or that waited")
    for late in told:
        kept = f", kept by {late.kept}" if late.kept else ""
        notes.append(
            f"the collective {late.waiting} waited for rank {late.own.partition(':')[0]}, there {late.own}{kept}"
        )
    return notes


def _order(spans: Sequence[StepSpans], found: Candidates, wanted: frozenset[int]) -> Sequence[tuple[StepSpans, int]]:
    """The ranks with their weights, those with suspected spans first, behind them those of a long wait for another rank."""
    suspected = set(found.rank.tolist())
    if not (suspected | wanted) & {mine.rank for mine in spans} and spans:
        suspected = {max(spans, key=lasted).rank}
    order = sorted(spans, key=lambda mine: (mine.rank not in suspected, mine.rank not in wanted, mine.rank))
    return [(mine, SUSPECTED if mine.rank in suspected | wanted else OTHER) for mine in order]


def _share(order: Sequence[tuple[StepSpans, int]]) -> float:
    """What the first of the ranks gets of what is left for all of them."""
    return order[0][1] / sum(weight for _, weight in order)


def _part_of(room: Room, share: float) -> Room:
    return Room(int(room.tokens * share), int(room.nodes * share))


def _cut(
    mine: StepSpans, found: Candidates, bears: Bearing, *, begin: int, room: Room, text: Callable[[str], str]
) -> Cut:
    suspects = take(found, found.rank == mine.rank)
    if room.tokens < LEAST_ROOM:
        return Cut([], 0, len(mine.tree), len(mine.tree), len(suspects.step), int(bears.paired.sum()))
    return causal_slice(mine, suspects, begin=begin, room=room, text=text, bears=bears)


def _fitting(lines: Iterable[SliceLine], room: Room) -> list[SliceLine]:
    """The lines from the first on that fit ``room``."""
    kept: list[SliceLine] = []
    left = room.tokens
    for line in lines:
        left -= price(line)
        if left < 0 or len(kept) == room.nodes:
            break
        kept.append(line)
    return kept


def span_report(
    mine: StepSpans,
    found: Candidates,
    *,
    capture: str,
    step: int | None,
    budget: int,
    text: Callable[[str], str],
    nodes: int | None = None,
) -> SliceReport:
    """The slice of one span and all below it: ``mine.tree`` is its subtree. Times count from its own start."""
    begin = int(mine.tree.trace.start[0])
    room = Room(budget) if nodes is None else Room(budget, nodes)
    part = causal_slice(mine, take(found, found.rank == mine.rank), begin=begin, room=room, text=text)
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
