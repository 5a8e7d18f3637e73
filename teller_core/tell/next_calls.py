"""What to call after an import, by what was read, and after a slice, by what it shows."""

import re
from collections.abc import Iterator, Sequence

from teller_core.data.report import CaptureReport, RankReport, SliceLine, SliceReport

SHOWN = 3
"""Captures for which a call is named."""
SPAN = re.compile(r"\d{1,9}:\d{1,18}")
"""The handle of a span, RANK:ROW. Other lines stand for steps, requests and pauses."""


def next_calls(captures: Sequence[CaptureReport]) -> list[tuple[str, str]]:
    """(call without ``teller``, why) for the captures of one import, the most useful first; empty where nothing was read.

    The calls that need an import of its own begin with ``import``: they repeat this one with another option.
    """
    having = sorted(captures, key=lambda capture: not capture.requests)
    return [*_import_again(captures), *map(_first, having[:SHOWN]), *_compared(captures)]


def processes(capture: CaptureReport) -> int:
    """How many processes of the engine were recorded, however often each was."""
    return len({(rank.host, rank.pid, rank.rank) for rank in capture.ranks})


def recorded_apart(capture: CaptureReport) -> bool:
    """Whether the traces of some processes of ``capture`` were over before those of the others began, for longer than any of
    them lasts: such processes did not work together. One that was recorded several times was there in between.
    """
    spent: dict[tuple[str, int, int], tuple[int, int]] = {}
    for rank in capture.ranks:
        if rank.start is not None and rank.stop is not None:
            who = (rank.host, rank.pid, rank.rank)
            low, high = spent.get(who, (rank.start, rank.stop))
            spent[who] = min(low, rank.start), max(high, rank.stop)
    times = sorted(spent.values())
    longest = max((stop - start for start, stop in times), default=0)
    over = times[0][1] if times else 0
    for start, stop in times:
        if start - over > longest:
            return True
        over = max(over, stop)
    return False


def _first(capture: CaptureReport) -> tuple[str, str]:
    named = f"--capture {capture.id[:12]}"
    if not capture.requests and processes(capture) > 1:
        return f"slow --view horizontal {named}", "who waited for whom"
    if not capture.requests:
        return f"slow {named}", "it names no request: what it tells instead"
    return f"slow {named}", "the slowest requests first"


def is_span(handle: str) -> bool:
    """Whether it is the handle of a span, and so something to take a slice of."""
    return SPAN.fullmatch(handle) is not None


def most_unusual(report: SliceReport) -> SliceLine | None:
    """Of the lines of spans the one of the largest residual or, where none has one, with the most own time a span."""
    spans = [line for line in report.lines if is_span(line.handle)]
    return max(spans, key=lambda line: (line.residual or 0.0, (line.self_ms or 0.0) / line.count), default=None)


def opened_by(report: SliceReport, odd: SliceLine | None) -> SliceLine | None:
    """The line to take a slice of next: ``odd``, or, where all its time is its own, what it stands below or else another with
    something in it. None where that shows no more than ``report``.
    """
    if odd is None:
        return None
    at = report.lines.index(odd)
    hollow = [line for line in report.lines[1:] if is_span(line.handle) and line.self_ms != line.dur_ms]
    above = [line for line in report.lines[:at] if line.depth < odd.depth and line in hollow]
    if odd in hollow:
        return odd
    return above[-1] if above else max(hollow, key=lambda line: line.self_ms or 0.0, default=None)


def comparable(captures: Sequence[CaptureReport]) -> bool:
    """Whether these are two captures of a kind: both with requests, or none."""
    return len(captures) == 2 and bool(captures[0].requests) == bool(captures[1].requests)


def _compared(captures: Sequence[CaptureReport]) -> Iterator[tuple[str, str]]:
    if comparable(captures):
        yield f"compare {captures[0].id[:12]} {captures[1].id[:12]}", "what differs, the first being before"


def _import_again(captures: Sequence[CaptureReport]) -> Iterator[tuple[str, str]]:
    if any(map(recorded_apart, captures)):
        yield (
            "import --apart PATH...",
            "the same paths: ranks were recorded at different times; so they can be compared",
        )
    named = [capture for capture in captures if capture.requests]
    traced = [capture for capture in captures if not capture.requests and any(map(_has_trace, capture.ranks))]
    if named and traced:
        yield (
            "import --together PATH...",
            "the same paths, if recorded together: requests then get their profiled steps",
        )


def _has_trace(rank: RankReport) -> bool:
    return rank.spans > 0
