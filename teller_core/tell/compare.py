"""Two captures, or two requests, side by side: what got slower, where, by how much, and whether that is more than chance.

``before`` and ``after`` are medians of what was measured, exact to the unit. ``ratio`` is after / before; ``low`` and ``high``
hold it with 95 % confidence: from order statistics of requests or steps, or from the spread and count of an operator's calls.
``sure`` needs an interval without 1 and enough values on both sides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import Assessment, Baselines
from teller_core.data.capture import Capture
from teller_core.data.report import CompareReport, Difference, WhyReport
from teller_core.data.steps import Steps
from teller_core.data.table import UNKNOWN, Float64, Int32
from teller_core.tell.compare_intervals import (
    ENOUGH,
    SURE_SPREADS,
    TAIL_ENOUGH,
    difference,
    matched,
    medians,
    shares,
)
from teller_core.tell.compare_operators import compare_operators
from teller_core.tell.compare_windows import Window, compare_windows
from teller_core.tell.names import shorten

NORMAL_MAD = 1.4826
"""The median absolute deviation of a normal distribution times this is its standard deviation."""
LEAST_SPREAD = 0.05
"""Two requests of like work never agree more closely than this."""
MENTIONED = 4
"""Differences of each direction that the explanation names."""
ALIKE = 1.03
"""Two values whose ratio surely lies this close to 1 are called the same."""
LIKENESS = 0.2
"""Two captures that share less than this part of their operators' time run different models or engine versions."""
END_TO_END = "end to end (e2e)"
METRICS = {"ttft": "time to first token", "tpot": "time a token", "itl_max": "longest gap", "e2e": "end to end"}


@dataclass(frozen=True)
class CaptureView:
    """A capture to compare. Trees are not needed: those of ``capture.ranks`` may be None. ``windows``: what its ranks did
    all the time, where that was looked up.
    """

    capture: Capture
    assessment: Assessment
    windows: Sequence[Window] = ()


@dataclass(frozen=True)
class RequestView:
    """One request to compare, at position ``request`` of its capture; ``why``: its stored answer, for the breakdowns."""

    view: CaptureView
    request: int
    why: WhyReport | None = None


def compare_captures(before: CaptureView, after: CaptureView) -> CompareReport:
    """What differs between two captures: requests, steps of like work, operators. Refuses, in ``note``, to compare different
    engines or models.
    """
    refusal = _refusal(before, after)
    if refusal:
        found: list[Difference] = []
    else:
        found = [*_requests(before, after), *_work(before, after), *_steps(before, after)]
        found += compare_operators(before.assessment.baselines, after.assessment.baselines)
        found += compare_windows(before.windows, after.windows)
    return CompareReport(
        before=before.capture.id,
        after=after.capture.id,
        kind="captures",
        differences=found,
        explanation=refusal or _explanation(found),
        note=refusal or "medians; operators by what they add to a usual step",
    )


def compare_requests(before: RequestView, after: RequestView) -> CompareReport:
    """What differs between two requests, of one capture or of two: their values, what their work and load predict, their
    phases and resources. One value stands on each side, so ``sure`` says whether they differ by more than requests of
    like work do anyway.
    """
    refusal = "" if before.view is after.view else _refusal(before.view, after.view)
    found = [] if refusal else [*_values(before, after), *_counts(before, after), *_parts(before, after)]
    return CompareReport(
        before=f"{before.view.capture.id}/{before.request + 1}",
        after=f"{after.view.capture.id}/{after.request + 1}",
        kind="requests",
        differences=found,
        explanation=refusal or f"{_whole(found)}{_explanation([d for d in found if d.what != END_TO_END])}",
        note=refusal or "single requests: an interval says how far like requests of the capture lie apart anyway",
    )


def _refusal(before: CaptureView, after: CaptureView) -> str:
    """Why two captures cannot be compared, empty where they can."""
    a, b = before.capture.engine, after.capture.engine
    if a and b and a != b:
        return f"not comparable: one was served by {shorten(a)}, the other by {shorten(b)}"
    x, y = before.assessment.baselines, after.assessment.baselines
    if x.name and y.name and _likeness(x, y) < LIKENESS:
        return "not comparable: hardly any operator of one is in the other, so they run different models or engine versions"
    return ""


def _likeness(a: Baselines, b: Baselines) -> float:
    """The part of both captures' own time that lies in operators which both have."""
    both = set(a.name) & set(b.name)
    shared = sum(
        float(table.total[np.array([name in both for name in table.name], dtype=np.bool_)].sum(dtype=np.float64))
        for table in (a, b)
    )
    return shared / max(sum(float(table.total.sum(dtype=np.float64)) for table in (a, b)), 1.0)


def _requests(before: CaptureView, after: CaptureView) -> Iterator[Difference]:
    for metric, what in METRICS.items():
        a, b = (_metric(view.assessment, metric) for view in (before, after))
        yield from medians(f"{what} ({metric})", "request", a / 1e6, b / 1e6, unit="ms")
        if min(len(a), len(b)) >= TAIL_ENOUGH:
            yield from medians(f"{what} ({metric}), p90", "request", a / 1e6, b / 1e6, unit="ms", q=0.9)


def _metric(assessment: Assessment, metric: str) -> Float64:
    table = assessment.requests
    mine = np.array([m == metric for m in table.metric], dtype=np.bool_) & (table.value != UNKNOWN)
    return table.value[mine].astype(np.float64)


def _work(before: CaptureView, after: CaptureView) -> Iterator[Difference]:
    """What was asked of the service: a difference here explains others."""
    for what, name in (("prompt", "prompt_tokens"), ("output", "output_tokens")):
        a, b = (getattr(view.capture.requests, name) for view in (before, after))
        yield from medians(f"{what} of a request", "request", _known(a), _known(b), unit="tokens")
    evicted = [_known(view.capture.requests.preemptions) > 0 for view in (before, after)]
    yield from shares("requests that were preempted", "request", *evicted)
    failed = [view.capture.requests.failed > 0 for view in (before, after)]
    yield from shares("requests that failed", "request", *failed)
    a, b = (_known(view.capture.steps.generation_requests) for view in (before, after))
    yield from medians("requests decoding in a step", "engine", a, b, unit="requests")


def _known(column: Int32) -> Float64:
    return column[column >= 0].astype(np.float64)


def _steps(before: CaptureView, after: CaptureView) -> Iterator[Difference]:
    """Steps by phase, and of like work: each set against the steps of the other capture with as many tokens."""
    kinds = [_kinds(view.capture.steps) for view in (before, after)]
    taken = [view.assessment.steps.took for view in (before, after)]
    for phase in ("prefill", "mixed", "decode"):
        sides: list[dict[int, Float64]] = []
        for (phases, size), took in zip(kinds, taken, strict=True):
            mine = np.array([p == phase for p in phases], dtype=np.bool_) & (took != UNKNOWN)
            sides.append({int(n): took[mine & (size == n)] / 1e6 for n in np.unique(size[mine])})
        if not all(sides):
            continue
        a, b = (np.concatenate(list(side.values())) for side in sides)
        yield from medians(f"{phase} step", "engine", a, b, unit="ms")
        both = sorted(set(sides[0]) & set(sides[1]))
        if both and (len(sides[0]) > 1 or len(sides[1]) > 1):
            yield matched(f"{phase} step of as many tokens", [(sides[0][n], sides[1][n]) for n in both])


def _kinds(steps: Steps) -> tuple[list[str], Float64]:
    """Phase and tokens (padded to a power of two) of every step."""
    size = steps.context_tokens.astype(np.float64) + steps.generation_requests
    return steps.phases(), 2.0 ** np.ceil(np.log2(np.maximum(size, 1)))


def _explanation(found: Sequence[Difference]) -> str:
    """A few sentences of the sure differences, every number a rounding of theirs; and what is surely the same."""
    sure = [d for d in found if d.sure and d.ratio is not None]
    if not found:
        return "Nothing was measured in both."
    if not any(d.sure for d in found):
        return "No difference is larger than chance explains."
    slower = [d for d in sure if (d.ratio or 0) > 1]
    faster = [d for d in sure if (d.ratio or 0) < 1]
    alike = [d for d in found if not d.sure and d.low is not None and d.high is not None and _alike(d.low, d.high)]
    single = [d for d in found if d.sure and d.ratio is None]
    said = [f"In one alone: {'; '.join(d.what for d in single[:MENTIONED])}."] if single else []
    said += [
        f"{title}: {'; '.join(map(_said, some[:MENTIONED]))}."
        for title, some in (("More than before", slower), ("Less than before", faster))
        if some
    ]
    said += [f"As before: {'; '.join(map(_said, alike[:MENTIONED]))}."] if alike and sure else []
    return " ".join(said)


def _alike(low: float, high: float) -> bool:
    return low > 1 / ALIKE and high < ALIKE


def _whole(found: Sequence[Difference]) -> str:
    """A sentence on what people ask about first, empty where it was not measured in both."""
    e2e = next((d for d in found if d.what == END_TO_END and d.ratio is not None), None)
    if e2e is None:
        return ""
    apart = "further apart than" if e2e.sure else "no further apart than"
    return f"{_said(e2e).capitalize()}, {apart} like requests here lie anyway. "


def _said(d: Difference) -> str:
    unit = f" {d.unit}" if d.unit else ""
    return f"{d.what} {_brief(d.before or 0)} -> {_brief(d.after or 0)}{unit} (x{_brief(d.ratio or 0)})"


def _brief(value: float) -> str:
    """``value`` to three significant digits, but whole where it has more before the point: the difference holds it exactly."""
    near = float(f"{value:.3g}")
    if float(value).is_integer() or (near.is_integer() and abs(near) < 1000):
        return str(round(value))
    return f"{value:.{max(0, 2 - int(np.floor(np.log10(abs(near)))))}f}"


def _values(before: RequestView, after: RequestView) -> Iterator[Difference]:
    """The metrics of both requests, and what their work and their load predict."""
    for metric, what in METRICS.items():
        a, b = (_expectation(side, metric) for side in (before, after))
        if a is None or b is None:
            continue
        yield _single(
            f"{what} ({metric})", a.value, b.value, peers=min(a.peers, b.peers), spread=max(a.spread, b.spread)
        )
        yield _single(f"{metric} that its work predicts", a.by_work, b.by_work)
        yield _single(f"{metric} that its load predicts", a.by_load, b.by_load)


class _Expectation(NamedTuple):
    value: int
    by_work: int
    by_load: int
    peers: int
    spread: float


def _expectation(side: RequestView, metric: str) -> _Expectation | None:
    """The request's row for ``metric``, with the spread of log value over work among its peers."""
    table = side.view.assessment.requests
    mine = np.flatnonzero(np.array([m == metric for m in table.metric], dtype=np.bool_))
    rows = mine[table.request[mine] == side.request]
    if not len(rows):
        return None
    row = int(rows[0])
    known = mine[(table.value[mine] > 0) & (table.by_work[mine] > 0)]
    apart = np.log(table.value[known] / table.by_work[known]) if len(known) else np.empty(0)
    spread = float(np.median(np.abs(apart - np.median(apart)))) * NORMAL_MAD if len(apart) else 0.0
    value, work, load = int(table.value[row]), int(table.by_work[row]), int(table.by_load[row])
    return _Expectation(value, work, load, len(known), max(spread, LEAST_SPREAD))


def _single(what: str, before: int, after: int, *, peers: int = 0, spread: float = 0.0) -> Difference:
    """Two measured values in ns. With ``spread``: bounds of the ratio that requests of like work would show anyway, laid around
    the ratio that was found.
    """
    known = UNKNOWN not in (before, after) and before > 0
    ratio = after / before if known else None
    reach = float(np.exp(SURE_SPREADS * np.sqrt(2) * spread)) if spread and ratio is not None else None
    low = ratio / reach if ratio is not None and reach is not None else None
    high = ratio * reach if ratio is not None and reach is not None else None
    sides = None if before == UNKNOWN else before / 1e6, None if after == UNKNOWN else after / 1e6
    return difference(what, "request", sides, unit="ms", ratio=ratio, bounds=(low, high), enough=peers >= ENOUGH)


def _counts(before: RequestView, after: RequestView) -> Iterator[Difference]:
    """What each request asked for: exact, so any difference is one."""
    for what, name in (
        ("prompt tokens", "prompt_tokens"),
        ("tokens from the prefix cache", "cached_tokens"),
        ("output tokens", "output_tokens"),
        ("preemptions", "preemptions"),
    ):
        a, b = (int(getattr(side.view.capture.requests, name)[side.request]) for side in (before, after))
        if min(a, b) >= 0 and a != b:
            yield _counted(what, a, b)
    steps = [int(np.count_nonzero(s.view.capture.participation.request == s.request)) for s in (before, after)]
    if all(steps):
        yield _counted("steps it took part in", *steps)


def _counted(what: str, a: int, b: int) -> Difference:
    ratio = round(b / a, 3) if a else None
    unit = "" if what == "preemptions" else "steps" if what.startswith("steps") else "tokens"
    return Difference(
        what=what, layer="request", before=a, after=b, unit=unit, ratio=ratio, low=None, high=None, sure=a != b
    )


def _parts(before: RequestView, after: RequestView) -> Iterator[Difference]:
    """Phases and resources of both answers, by name."""
    if before.why is None or after.why is None:
        return
    for kind in ("phases", "resources"):
        others = {part.part: part.ns for part in getattr(after.why, kind)}
        for part in getattr(before.why, kind):
            b = others.get(part.part)
            if part.ns is not None and b is not None and (part.ns or b):
                yield _single(f"{kind[:-1]}: {part.part}", part.ns, b)
