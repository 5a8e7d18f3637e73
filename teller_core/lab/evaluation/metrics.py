"""The figures of a method: each with its interval by life and how many windows stand behind it, or why it is not said.

No figure is said that rests on fewer than 30 windows with what is to be found; figures of steps at priors below 5 % need 30,000
healthy steps of 10 lives; a false-positive rate needs ten healthy steps for each that it allows.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int32, Int64, Mask, take
from teller_core.lab.evaluation import calibration, causes, detection, ranking
from teller_core.lab.evaluation.bootstrap import Interval, all_by_life, by_life
from teller_core.lab.evaluation.causes import Named
from teller_core.lab.evaluation.merging import merged
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
SURE_DECIMALS = 3
"""Of how sure somebody is: more say nothing."""
CERTAINTY = (("ece", -1), ("brier", -1), ("risk_over_coverage", -1), ("coverage_at_risk_10", 1))
"""Figures of certainty, and whether more or less is better."""


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
    requests = alike(rows.requests)
    return [
        *of_requests(requests, "request"),
        *by_severity(requests),
        *by_effect(requests),
        *alarms(rows, "healthy_beside"),
        *of_certainty(rows.requests),
        *of_steps(rows.steps, "step"),
        *of_steps(felt(rows.steps), "step_felt"),
        *of_steps(take(rows.steps, rows.steps.profiled), "step_profiled"),
        *of_names(rows.operators, "operator"),
        *of_names(rows.ranks, "rank", firsts=(1,)),
    ]


class Alike(NamedTuple):
    """Requests of which the same is true and said, as one: ``rows`` and what they name (``given``), for how many each stands
    (``times``); ``of`` int64 and ``window`` int32: of all requests, their row and their window.
    """

    rows: RequestRows
    given: Named
    times: Float64
    of: Int64
    window: Int32

    def figure(self, key: str, figure: Callable[[Float64], float], mine: Mask, better: int) -> Figure:
        """``figure``, behind which stand the windows of the rows that are ``mine``."""
        window = self.window[mine[self.of]]
        return _figure(key, figure, better, window, (self.rows.life, self.times))


def alike(rows: RequestRows) -> Alike:
    """The requests of ``rows``, those of which the same is true and said as one."""
    given = causes.named(rows.truth, rows.claims)
    verdict = np.unique(np.array(rows.verdict, dtype=np.str_), return_inverse=True)[1]
    severity = np.array(rows.severity, dtype=np.str_)
    found = merged(rows.life, given.truth, given.said, verdict, rows.hard, severity, rows.d_prime)
    few = Named(given.classes, given.truth[found.first], given.said[found.first])
    return Alike(take(rows, found.first), few, found.times, found.of, rows.window)


def of_requests(rows: Alike, prefix: str) -> list[Figure]:
    """Whether the cause of struck requests is named, and none is claimed of the others."""
    given, verdicts = rows.given, rows.rows.verdict
    hit, hard = causes.struck(given), rows.rows.hard
    calm = ~hit & ~hard
    free = np.array([verdict != CAUSE for verdict in verdicts], dtype=np.bool_)
    dumb = np.array([verdict == CANNOT for verdict in verdicts], dtype=np.bool_)
    right = given.said[:, 0] == given.truth

    def say(name: str, figure: Callable[[Float64], float], mine: Mask, better: int = 1) -> Figure:
        return rows.figure(f"{prefix}.{name}", figure, mine, better)

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


def of_all_faulty(rows: Alike) -> list[Figure]:
    """Captures in which every request is struck: whether that is said to be normal, which is a miss, and what is named."""
    given = rows.given
    hit = causes.struck(given)
    normal = np.array([verdict not in (CAUSE, CANNOT) for verdict in rows.rows.verdict], dtype=np.bool_)
    return [
        rows.figure("all_faulty.called_normal", _share(normal, hit), hit, -1),
        rows.figure("all_faulty.top_1", lambda w: causes.top(given, w, 1), hit, 1),
        rows.figure("all_faulty.top_3", lambda w: causes.top(given, w, 3), hit, 1),
    ]


def by_severity(rows: Alike) -> list[Figure]:
    """Top-1 and top-3 by how hard the fault struck."""
    severity = rows.rows.severity
    return [
        figure
        for each in sorted({str(one) for one in severity.tolist() if one})
        for figure in _part(rows, severity == each, f"severity_{each}")
    ]


def by_effect(rows: Alike) -> list[Figure]:
    """Top-1 and top-3 by the size of the effect over the noise."""
    size = rows.rows.d_prime
    bins = [(name, (size >= low) & (size < high)) for name, low, high in EFFECTS]
    bins.append(("from_3", size >= FELT))
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
    given = causes.named(rows.truth, rows.claims)
    told = np.flatnonzero([verdict != CANNOT for verdict in rows.verdict])
    windows = distinct_windows(rows.window[told])
    if windows < LEAST_POSITIVES:
        return [_unsaid(f"certainty.{name}", windows, better) for name, better in CERTAINTY]
    said = np.round(rows.sure[told], SURE_DECIMALS)
    correct = (given.said[:, 0] == given.truth)[told]
    found = merged(rows.life[told], said, correct)
    sure, right = said[found.first], correct[found.first]

    def all_of_it(weight: Float64) -> list[float]:
        curve = calibration.risk_coverage(sure, right, weight)
        return [
            calibration.expected_error(sure, right, weight),
            calibration.brier(sure, right, weight),
            calibration.area(curve),
            calibration.coverage_at(curve, SURELY),
        ]

    values = all_by_life(all_of_it, rows.life[told][found.first], found.times)
    return [
        _said(f"certainty.{name}", value, windows, better)
        for (name, better), value in zip(CERTAINTY, values, strict=True)
    ]


def of_steps(rows: StepRows, prefix: str) -> list[Figure]:
    """Precision, recall, F1 and the area under precision and recall at every prior, and recall at low false-positive rates.

    Values are of scores as they are; intervals of :func:`detection.thinned` ones, which a bootstrap weighs in no time.
    """
    names, reasons = _of_steps(rows)
    windows = distinct_windows(rows.window[rows.label])
    if windows < LEAST_POSITIVES:
        return [_unsaid(f"{prefix}.{name}", windows, 1) for name in names]
    order = detection.ranked(rows.label, rows.score)
    score = detection.thinned(order)
    few = merged(rows.life, rows.label, rows.flag, score)
    label, flag = rows.label[few.first], rows.flag[few.first]
    short = detection.ranked(label, score[few.first].astype(np.float64))
    values = _detection(rows.label, rows.flag, order, np.ones(len(rows.label)))
    drawn = all_by_life(
        lambda weight: _detection(label, flag, short, weight), rows.life[few.first], few.times, draws=DRAWS_OF_STEPS
    )
    return [
        _unsaid(f"{prefix}.{name}", windows, 1, why)
        if why
        else _said(f"{prefix}.{name}", each._replace(value=value), windows, 1)
        for name, why, value, each in zip(names, reasons, values, drawn, strict=True)
    ]


def _detection(label: Mask, flag: Mask, order: detection.Ranked, weight: Float64) -> list[float]:
    flags, scores = detection.curve_of_flags(label, flag, weight), detection.curve(order, weight)
    found: list[float] = []
    for prior in detection.PRIORS:
        found += [*detection.detected_at(flags, prior), detection.area_at(scores, prior)]
    return found + [detection.recall_within(scores, rate) for rate in detection.RATES]


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
    life, moment = rows.life[~rows.label], rows.moment[~rows.label]
    return sum(len(np.unique(moment[life == each])) for each in np.unique(life).tolist())


def of_names(rows: NameRows, prefix: str, firsts: Sequence[int] = (1, 3, 5)) -> list[Figure]:
    """How high what is to blame stands among what was named, over all steps where it is known; an empty list is a miss."""
    place = np.array([ranking.place(a, b) for a, b in zip(rows.named, rows.right, strict=True)], dtype=np.int32)
    names = ranking.first_names(rows.named, rows.right)
    few = merged(rows.life, place, *(np.array(each, dtype=np.str_) for each in names))
    places, life = place[few.first], rows.life[few.first]
    true, said = ([each[at] for at in map(int, few.first)] for each in names)

    def say(name: str, figure: Callable[[Float64], float]) -> Figure:
        return _figure(f"{prefix}.{name}", figure, 1, rows.window, (life, few.times))

    found = [say(f"ac_at_{k}", lambda w, k=k: ranking.accuracy_at(places, w, k)) for k in firsts]
    if len(firsts) > 1:
        found.append(say("avg_at_5", lambda w: ranking.average_at(places, w, 5)))
        found.append(say("mrr", lambda w: ranking.reciprocal(places, w)))
        found.append(say("macro_f1", lambda w: ranking.macro_f1(true, said, w)))
    return found


def _part(rows: Alike, mine: Mask, name: str) -> list[Figure]:
    given = rows.given
    hit = causes.struck(given) & mine
    return [
        rows.figure(f"{name}.top_{k}", lambda w, k=k: causes.top(given, np.where(mine, w, 0.0), k), hit, 1)
        for k in (1, 3)
    ]


def _share(what: Mask, of: Mask) -> Callable[[Float64], float]:
    """The share of the weight of ``of`` that is ``what``; NaN without any."""

    def figure(weight: Float64) -> float:
        whole = float(weight[of].sum())
        return float(weight[of & what].sum()) / whole if whole > 0 else float("nan")

    return figure


def _figure(
    key: str, figure: Callable[[Float64], float], better: int, window: Int32, by: tuple[Int32, Float64]
) -> Figure:
    """``window``: of all that is to be found; ``by``: of the rows that ``figure`` weighs, the life and the count."""
    windows = distinct_windows(window)
    if windows < LEAST_POSITIVES:
        return _unsaid(key, windows, better)
    return _said(key, by_life(figure, *by), windows, better)


def _said(key: str, found: Interval, windows: int, better: int) -> Figure:
    return Figure(key, *found, windows, better, "nothing to divide by" if np.isnan(found.value) else "")


def _unsaid(key: str, windows: int, better: int, why: str = "") -> Figure:
    return Figure(key, float("nan"), float("nan"), float("nan"), windows, better, why or f"{windows} windows")
