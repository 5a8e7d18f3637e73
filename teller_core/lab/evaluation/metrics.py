"""The figures of a method: each with its interval by life and how many windows stand behind it, or why it is not said.

No figure is said that rests on fewer than 30 windows with what is to be found; figures of steps at priors below 5 % need 30,000
healthy steps of 10 lives; a false-positive rate needs ten healthy steps for each that it allows.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int32, Mask, take
from teller_core.lab.evaluation import calibration, causes, detection, ranking
from teller_core.lab.evaluation.bootstrap import Interval, all_by_life, by_life
from teller_core.lab.evaluation.causes import Named
from teller_core.lab.evaluation.method import CANNOT, CAUSE
from teller_core.lab.evaluation.rows import NameRows, RequestRows, Rows, StepRows, distinct_windows

LEAST_POSITIVES = 30
LOW_PRIOR, LEAST_HEALTHY, LEAST_LIVES = 0.05, 30_000, 10
ALLOWED = 10
"""Healthy steps for each one that a false-positive rate lets through."""
DRAWS_OF_STEPS = 200
EFFECTS: Sequence[tuple[str, float, float]] = (
    ("below_1", -np.inf, 1.0),
    ("1_to_2", 1.0, 2.0),
    ("2_to_3", 2.0, 3.0),
    ("3_to_6", 3.0, 6.0),
    ("from_6", 6.0, np.inf),
)
FELT = 3.0
"""d' from which an effect stands out of the noise."""
SURELY = 0.10
"""The risk at which coverage is asked for."""


class Figure(NamedTuple):
    """``low`` and ``high``: 95 %, NaN without an interval; ``value`` NaN with the reason in ``why``. ``positives``: windows
    (lives, for what is counted in time) behind it. ``better``: 1 where more is better, -1 where less is, 0 for neither.
    """

    key: str
    value: float
    low: float
    high: float
    positives: int
    better: int
    why: str = ""


def figures(rows: Rows) -> list[Figure]:
    """All figures of the usual composition, requests first."""
    return [
        *of_requests(rows.requests, "request"),
        *by_severity(rows.requests),
        *by_effect(rows.requests),
        *alarms(rows, "healthy_beside"),
        *of_certainty(rows.requests),
        *of_steps(rows.steps, "step"),
        *of_steps(felt(rows.steps), "step_felt"),
        *of_steps(take(rows.steps, rows.steps.profiled), "step_profiled"),
        *of_names(rows.operators, "operator"),
        *of_names(rows.ranks, "rank", firsts=(1,)),
    ]


def of_requests(rows: RequestRows, prefix: str) -> list[Figure]:
    """Whether the cause of struck requests is named, and none is claimed of the others."""
    given = _named(rows)
    hit, calm, hard = causes.struck(given), ~causes.struck(given) & ~rows.hard, rows.hard
    free = np.array([verdict != CAUSE for verdict in rows.verdict], dtype=np.bool_)
    dumb = np.array([verdict == CANNOT for verdict in rows.verdict], dtype=np.bool_)
    right = given.said[:, 0] == given.truth

    def say(name: str, figure: Callable[[Float64], float], mine: Mask, better: int = 1) -> Figure:
        return _figure(f"{prefix}.{name}", figure, rows.life, rows.window[mine], better)

    return [
        say("top_1", lambda w: causes.top(given, w, 1), hit),
        say("top_3", lambda w: causes.top(given, w, 3), hit),
        say("macro_f1", lambda w: causes.macro_f1(given, w), hit),
        say("each_class", lambda w: causes.balanced(given, w), hit),
        say("claims_right", _share(right, ~free), ~free),
        say("healthy_unclaimed", _share(free, calm), calm),
        say("hard_unclaimed", _share(free, hard), hard),
        say("could_not_tell", _share(dumb, hit), hit, 0),
    ]


def of_all_faulty(rows: RequestRows) -> list[Figure]:
    """Captures in which every request is struck: whether that is said to be normal, which is a miss, and what is named."""
    given = _named(rows)
    hit = causes.struck(given)
    normal = np.array([verdict not in (CAUSE, CANNOT) for verdict in rows.verdict], dtype=np.bool_)

    def say(name: str, figure: Callable[[Float64], float], better: int) -> Figure:
        return _figure(f"all_faulty.{name}", figure, rows.life, rows.window[hit], better)

    return [
        say("called_normal", _share(normal, hit), -1),
        say("top_1", lambda w: causes.top(given, w, 1), 1),
        say("top_3", lambda w: causes.top(given, w, 3), 1),
    ]


def by_severity(rows: RequestRows) -> list[Figure]:
    """Top-1 and top-3 by how hard the fault struck."""
    return [
        figure
        for severity in sorted({str(each) for each in rows.severity.tolist() if each})
        for figure in _part(rows, rows.severity == severity, f"severity_{severity}")
    ]


def by_effect(rows: RequestRows) -> list[Figure]:
    """Top-1 and top-3 by the size of the effect over the noise."""
    bins = [(name, (rows.d_prime >= low) & (rows.d_prime < high)) for name, low, high in EFFECTS]
    bins.append(("from_3", rows.d_prime >= FELT))
    return [figure for name, mine in bins for figure in _part(rows, mine, f"effect_{name}")]


def alarms(rows: Rows, prefix: str) -> list[Figure]:
    """False alarms an hour of healthy service: causes that are claimed in a window with nothing wrong, each once a window."""
    requests = rows.requests
    seen: set[tuple[int, int, str]] = set()
    counted = np.zeros(rows.episodes)
    for at, (truth, claims) in enumerate(zip(requests.truth, requests.claims, strict=True)):
        key = (int(requests.episode[at]), int(requests.window[at]), claims[0] if claims else "")
        if claims and not truth and not requests.hard[at] and key not in seen:
            seen.add(key)
            counted[key[0]] += 1
    hours = rows.healthy_ns / 3.6e12

    def figure(weight: Float64) -> float:
        whole = float((weight * hours).sum())
        return float((weight * counted).sum()) / whole if whole > 0 else float("nan")

    found = by_life(figure, rows.healthy_life)
    return [Figure(f"{prefix}.alarms_an_hour", *found, rows.lives, -1, "" if hours.sum() else "no healthy window")]


def of_certainty(rows: RequestRows) -> list[Figure]:
    """Whether answers are as right as they are sure: of all requests about which something was said."""
    given = _named(rows)
    told = np.flatnonzero([verdict != CANNOT for verdict in rows.verdict])
    right = (given.said[:, 0] == given.truth)[told]
    sure, life, window = rows.sure[told], rows.life[told], rows.window[told]

    def curve(weight: Float64) -> calibration.Curve:
        return calibration.risk_coverage(sure, right, weight)

    def say(name: str, figure: Callable[[Float64], float], better: int) -> Figure:
        return _figure(f"certainty.{name}", figure, life, window, better, draws=DRAWS_OF_STEPS)

    return [
        say("ece", lambda w: calibration.expected_error(sure, right, w), -1),
        say("brier", lambda w: calibration.brier(sure, right, w), -1),
        say("risk_over_coverage", lambda w: calibration.area(curve(w)), -1),
        say("coverage_at_risk_10", lambda w: calibration.coverage_at(curve(w), SURELY), 1),
    ]


def of_steps(rows: StepRows, prefix: str) -> list[Figure]:
    """Precision, recall, F1 and the area under precision and recall at every prior, and recall at low false-positive rates."""
    order = detection.ranked(rows.label, rows.score)

    def all_of_it(weight: Float64) -> list[float]:
        flags, scores = detection.curve_of_flags(rows.label, rows.flag, weight), detection.curve(order, weight)
        found: list[float] = []
        for prior in detection.PRIORS:
            found += [*detection.detected_at(flags, prior), detection.area_at(scores, prior)]
        return found + [detection.recall_within(scores, rate) for rate in detection.RATES]

    names, reasons = _of_steps(rows)
    windows = distinct_windows(rows.window[rows.label])
    if windows < LEAST_POSITIVES:
        return [_unsaid(f"{prefix}.{name}", windows, 1) for name in names]
    found = all_by_life(all_of_it, rows.life, draws=DRAWS_OF_STEPS)
    return [
        _unsaid(f"{prefix}.{name}", windows, 1, why) if why else _said(f"{prefix}.{name}", each, windows, 1)
        for name, why, each in zip(names, reasons, found, strict=True)
    ]


def _of_steps(rows: StepRows) -> tuple[list[str], list[str]]:
    """The names of the figures, and why each is not said, empty where it is."""
    healthy, lives = distinct_healthy(rows), len(np.unique(rows.life[~rows.label]))
    names: list[str] = []
    reasons: list[str] = []
    for prior in detection.PRIORS:
        few = prior < LOW_PRIOR and (healthy < LEAST_HEALTHY or lives < LEAST_LIVES)
        for name in (*detection.Detected._fields, "pr_auc"):
            names.append(f"{name}_at_{100 * prior:g}")
            reasons.append(f"{healthy:,} healthy steps of {lives} lives" if few else "")
    for rate in detection.RATES:
        names.append(f"recall_at_fpr_{100 * rate:g}")
        reasons.append(f"{healthy:,} healthy steps" if healthy < ALLOWED / rate else "")
    return names, reasons


def felt(rows: StepRows) -> StepRows:
    """The healthy steps, and of the abnormal ones those whose strike had an effect of at least FELT."""
    return take(rows, ~rows.label | (rows.d_prime >= FELT))


def distinct_healthy(rows: StepRows) -> int:
    """How many different healthy steps there are: blocks share theirs between episodes."""
    mine = ~rows.label
    return len(np.unique(np.column_stack([rows.life[mine].astype(np.int64), rows.moment[mine]]), axis=0))


def of_names(rows: NameRows, prefix: str, firsts: Sequence[int] = (1, 3, 5)) -> list[Figure]:
    """How high what is to blame stands among what was named, over all steps where it is known; an empty list is a miss."""
    places = np.array([ranking.place(a, b) for a, b in zip(rows.named, rows.right, strict=True)], dtype=np.int32)
    true, said = ranking.first_names(rows.named, rows.right)

    def say(name: str, figure: Callable[[Float64], float]) -> Figure:
        return _figure(f"{prefix}.{name}", figure, rows.life, rows.window, 1)

    found = [say(f"ac_at_{k}", lambda w, k=k: ranking.accuracy_at(places, w, k)) for k in firsts]
    if len(firsts) > 1:
        found.append(say("avg_at_5", lambda w: ranking.average_at(places, w, 5)))
        found.append(say("mrr", lambda w: ranking.reciprocal(places, w)))
        found.append(say("macro_f1", lambda w: ranking.macro_f1(true, said, w)))
    return found


def _part(rows: RequestRows, mine: Mask, name: str) -> list[Figure]:
    given = _named(rows)
    hit = causes.struck(given) & mine
    return [
        _figure(
            f"{name}.top_{k}",
            lambda w, k=k: causes.top(given, np.where(mine, w, 0.0), k),
            rows.life,
            rows.window[hit],
            1,
        )
        for k in (1, 3)
    ]


def _named(rows: RequestRows) -> Named:
    return causes.named(rows.truth, rows.claims)


def _share(what: Mask, of: Mask) -> Callable[[Float64], float]:
    """The share of the weight of ``of`` that is ``what``; NaN without any."""

    def figure(weight: Float64) -> float:
        whole = float(weight[of].sum())
        return float(weight[of & what].sum()) / whole if whole > 0 else float("nan")

    return figure


def _figure(
    key: str,
    figure: Callable[[Float64], float],
    life: Int32,
    window: Int32,
    better: int,
    *,
    draws: int = 1000,
) -> Figure:
    """``window``: of each row that is to be found."""
    windows = distinct_windows(window)
    if windows < LEAST_POSITIVES:
        return _unsaid(key, windows, better)
    return _said(key, by_life(figure, life, draws=draws), windows, better)


def _said(key: str, found: Interval, windows: int, better: int) -> Figure:
    return Figure(key, *found, windows, better, "nothing to divide by" if np.isnan(found.value) else "")


def _unsaid(key: str, windows: int, better: int, why: str = "") -> Figure:
    return Figure(key, float("nan"), float("nan"), float("nan"), windows, better, why or f"{windows} windows")
