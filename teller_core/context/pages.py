"""A step's slice over all its ranks, as one report."""

from collections.abc import Callable, Sequence

from teller_core.context.dependencies import Met, StepSpans
from teller_core.context.moments import Moment, moment_lines, most_telling
from teller_core.context.relevance import Bearing
from teller_core.context.sides import Sides, side_by_side
from teller_core.context.slicing import Cut, Room, causal_slice, price
from teller_core.data.assessment import Candidates
from teller_core.data.replays import replays_note
from teller_core.data.report import SliceLine, SliceReport
from teller_core.data.table import UNKNOWN, take

HEAD_SHARE = 0.25
"""Of the budget, at most, goes to what is known without a profile, where there is a profile."""
SUSPECTED, OTHER = 4.0, 1.0
"""A rank with suspected spans, or on one side of a long wait for another rank, gets four times the room of one without."""
SUSPECTED_SHARE = 0.6
"""And all of these together at least this share of the budget, however many ranks there are."""
NAMED = 16
"""Ranks that were left out are named up to this many."""
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
    begin, spans = moment.begin, [mine for mine in spans if len(mine.tree)]
    whole = _room(budget, nodes)
    known = list(moment_lines(moment))
    head = _fitting(known, _part_of(whole, HEAD_SHARE) if spans else whole, request)
    spent = sum(price(line) for line in head)
    sides = side_by_side(spans, found, met)
    bears = {mine.rank: bearing for mine, bearing in zip(spans, sides.bears, strict=True)}
    order = _order(spans, found, sides.wanted, budget - spent)
    parts: dict[int, Cut] = {}
    left, nodes_left = whole.tokens - spent, whole.nodes - len(head)
    # Those with the fewest rows come first, for what they leave over serves the others.
    by_size = sorted(order, key=lambda pair: (pair[1] > 0, len(pair[0].tree)))
    for at, (mine, _) in enumerate(by_size):
        room = _part_of(Room(left, nodes_left), _share(by_size[at:]))
        since = begin - mine.shift if begin != UNKNOWN else int(mine.tree.trace.start[0])
        part = _cut(mine, found, bears[mine.rank], begin=since, room=room, text=text)
        left, nodes_left = left - part.tokens, nodes_left - len(part.lines)
        parts[mine.rank] = part
    left_out = [rank for rank, part in parts.items() if not part.lines and part.events]
    if len(head) < len(known):
        head = _fitting(known, Room(left + spent, nodes_left + len(head)), request)
        left += spent - sum(price(line) for line in head)
    lines = [*head, *(line for mine, _ in order for line in parts[mine.rank].lines)]
    notes = [note] if note else []
    if not spans:
        notes += _without_profile(moment)
    notes += _unshown(known, head)
    notes += _notes(list(parts.values()), left_out, sides)
    if replayed := replays_note([mine.tree for mine in spans]):
        notes.append(replayed)
    ranks = {mine.rank for mine in spans}
    return SliceReport(
        capture=capture,
        step=moment.step,
        request=request,
        rank=ranks.pop() if len(ranks) == 1 else None,
        lines=lines,
        events=sum(part.events for part in parts.values()),
        tokens=budget - left,
        budget=budget,
        cut=sum(part.cut for part in parts.values()),
        note="; ".join(notes),
    )


def _without_profile(moment: Moment) -> list[str]:
    notes = ["no profile overlaps this step: these lines come from its times, its requests and recorded pauses"]
    if moment.begin != UNKNOWN and moment.begin == moment.end:
        notes.append("only one moment of it is on the clock: it is drawn without a length")
    return notes


def _unshown(known: Sequence[SliceLine], head: Sequence[SliceLine]) -> list[str]:
    shown = {line.handle for line in head}
    gone = [line.handle.partition(":")[0] for line in known if line.handle not in shown]
    counted = [(gone.count(kind), kind) for kind in ("request", "pause")]
    said = [f"{n} {kind}{'s' if n > 1 else ''}" for n, kind in counted if n]
    return [f"no room in the budget for {' and '.join(said)} of the step"] if said else []


def _notes(parts: Sequence[Cut], left_out: Sequence[int], sides: Sides) -> list[str]:
    notes: list[str] = []
    if left_out:
        more = f" and {len(left_out) - NAMED} more" if len(left_out) > NAMED else ""
        where = "position" if len(left_out) == 1 else "positions"
        said = f"{', '.join(map(str, sorted(left_out)[:NAMED]))}{more}"
        notes.append(f"the budget left out the rank{where.removeprefix('position')} at {where} {said}")
    if missed := sum(part.missed for part in parts):
        notes.append(f"{missed} suspected span{'s' if missed > 1 else ''} found no room in the budget")
    if unpaired := sum(part.unpaired for part in parts):
        said = (
            "1 span that was waited for, or that"
            if unpaired == 1
            else f"{unpaired} spans that were waited for, or that"
        )
        notes.append(f"no room in the budget for {said} waited")
    for late in sides.told:
        kept = f", which was in {late.kept} until then" if late.kept else ""
        notes.append(
            f"the collective {late.waiting} waited {_said(late.ns)} for the rank at position "
            f"{late.own.partition(':')[0]}{kept}; its call is {late.own}"
        )
    notes += [f"the call {wait.call} waited {_said(wait.ns)} until {wait.work} was done" for wait in sides.long]
    return notes


def _said(ns: int) -> str:
    return f"{ns / 1e6:,.3g} ms" if ns < 1e9 else f"{ns / 1e6:,.0f} ms"


def _order(
    spans: Sequence[StepSpans], found: Candidates, wanted: frozenset[int], tokens: int
) -> list[tuple[StepSpans, float]]:
    """The ranks with their weights: those with suspected spans first (for none, the one that took longest), behind them those of
    a long wait for another rank, then the others. Where ``tokens`` cannot serve all of them, those that took longest have a
    weight and the rest none.
    """
    suspected = set(found.rank.tolist())
    if not suspected & {mine.rank for mine in spans} and spans:
        suspected = {max(spans, key=_lasted).rank}
    first = sorted(
        (mine for mine in spans if mine.rank in suspected | wanted),
        key=lambda mine: (mine.rank not in suspected, -_lasted(mine)),
    )
    others = sorted((mine for mine in spans if mine.rank not in suspected | wanted), key=_lasted, reverse=True)
    seen = min(len(first), max(1, tokens // LEAST_ROOM))
    beside = min(len(others), int(tokens * (1 - SUSPECTED_SHARE)) // LEAST_ROOM)
    enough = beside * OTHER * SUSPECTED_SHARE / (1 - SUSPECTED_SHARE) / max(seen, 1)
    order = [(mine, max(SUSPECTED, enough)) for mine in first[:seen]]
    order += [(mine, OTHER) for mine in sorted(others[:beside], key=lambda mine: mine.rank)]
    return order + [(mine, 0.0) for mine in (*first[seen:], *others[beside:])]


def _lasted(mine: StepSpans) -> int:
    return mine.tree.trace.lasted


def _share(order: Sequence[tuple[StepSpans, float]]) -> float:
    """What the first of the ranks gets of what is left for all of them."""
    return order[0][1] / max(sum(weight for _, weight in order), OTHER)


def _room(budget: int, nodes: int | None) -> Room:
    return Room(budget) if nodes is None else Room(budget, nodes)


def _part_of(room: Room, share: float) -> Room:
    return Room(int(room.tokens * share), int(room.nodes * share))


def _cut(
    mine: StepSpans, found: Candidates, bears: Bearing, *, begin: int, room: Room, text: Callable[[str], str]
) -> Cut:
    suspects = take(found, found.rank == mine.rank)
    if room.tokens < LEAST_ROOM:
        return Cut([], 0, len(mine.tree), len(mine.tree), len(suspects.step), int(bears.paired.sum()))
    return causal_slice(mine, suspects, begin=begin, room=room, text=text, bears=bears)


def _fitting(lines: Sequence[SliceLine], room: Room, request: int | None) -> list[SliceLine]:
    """The lines that tell most and fit ``room``, in their order."""
    chosen: set[int] = set()
    left = room.tokens
    for at in sorted(range(len(lines)), key=lambda at: most_telling(lines[at], request)):
        cost = price(lines[at])
        if cost <= left and len(chosen) < room.nodes:
            chosen.add(at)
            left -= cost
    return [lines[at] for at in sorted(chosen)]


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
    suspects = take(found, found.rank == mine.rank)
    part = causal_slice(mine, suspects, begin=begin, room=_room(budget, nodes), text=text)
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
        note="; ".join(filter(None, [*_notes([part], [], Sides([], frozenset(), [])), replays_note([mine.tree])])),
    )
