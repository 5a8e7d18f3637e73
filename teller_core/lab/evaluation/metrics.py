"""The figures of a method: each with its interval by life and how many windows stand behind it, or why it is not said.

No figure is said that rests on fewer than 30 windows with what is to be found; figures of steps at priors below 5 % need 30,000
healthy steps of 10 lives; a false-positive rate needs ten healthy steps for each that it allows.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int32, Mask, take
from teller_core.lab.evaluation import calibration, causes, detection, ranking
from teller_core.lab.evaluation.bootstrap import Interval, Sums, by_life, ratio, tallied
from teller_core.lab.evaluation.calibration import Certain
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
ANSWERED = 0.90
"""Of struck requests, the share of which a cause is asked for: the surest."""
SURE_DECIMALS = 3
"""Of how sure somebody is: more say nothing."""
CERTAINTY = ("ece", "brier", "risk_over_coverage", "coverage_at_risk_10")
LESS = frozenset({"alarms_an_hour", "called_normal", "ece", "brier", "risk_over_coverage"})
"""Figures, by the second part of their keys, of which less is better."""
NEITHER = frozenset({"could_not_tell"})
"""Of which neither is. Of all others, more is better."""


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


def better_of(key: str) -> int:
    """1 where more of a figure is better, -1 where less is, 0 for neither."""
    name = key.partition(".")[2]
    return -1 if name in LESS else int(name not in NEITHER)


def figures(rows: Rows) -> list[Figure]:
    """All figures of the usual composition, requests first."""
    requests = answers(rows.requests)
    return [
        *of_requests(requests, "request"),
        *by_severity(requests),
        *by_effect(requests),
        *by_view(requests),
        *alarms(rows, "healthy_beside"),
        *of_certainty(rows.requests),
        of_abstention(requests),
        *of_steps(rows.steps, "step"),
        *of_steps(felt(rows.steps), "step_felt"),
        *of_steps(in_view(rows.steps, across=False), "step_vertical"),
        *of_steps(in_view(rows.steps, across=True), "step_horizontal"),
        *of_steps(take(rows.steps, rows.steps.profiled), "step_profiled"),
        *of_names(rows.operators, "operator"),
        *of_names(rows.ranks, "rank", firsts=(1,)),
    ]


class Answers(NamedTuple):
    """Requests and what was said of them, ``given`` as numbers."""

    rows: RequestRows
    given: Named

    def share(self, key: str, what: Mask, of: Mask) -> Figure:
        """The share of the requests ``of`` that are ``what``; behind it stand the windows of the former."""
        return _figure(key, ratio(self.rows.life, what & of, of), self.rows.window[of])

    def confused(self, key: str, figure: Callable[[Float64], Float64]) -> Figure:
        """``figure`` of the confusion of causes; behind it stand the windows that were struck."""
        count = len(self.given.classes)
        sums = tallied(self.rows.life, causes.cells(self.given), count * count)
        hit = self.rows.window[causes.struck(self.given)]

        def of_draws(drawn: Float64) -> Float64:
            return figure(drawn.reshape(len(drawn), count, count))[:, None]

        return _figure(key, Sums(sums, of_draws), hit)


def answers(rows: RequestRows) -> Answers:
    """What was said of the requests of ``rows``."""
    return Answers(rows, causes.named(rows.truth, rows.claims))


def of_requests(told: Answers, prefix: str) -> list[Figure]:
    """Whether the cause of struck requests is named, and none is claimed of the others."""
    given, verdicts = told.given, told.rows.verdict
    hit, hard = causes.struck(given), told.rows.hard
    calm = ~hit & ~hard
    free = np.array([verdict != CAUSE for verdict in verdicts], dtype=np.bool_)
    dumb = np.array([verdict == CANNOT for verdict in verdicts], dtype=np.bool_)
    return [
        told.share(f"{prefix}.top_1", causes.within(given, 1), hit),
        told.share(f"{prefix}.top_3", causes.within(given, 3), hit),
        told.confused(f"{prefix}.macro_f1", causes.macro_f1_of),
        told.confused(f"{prefix}.each_class", causes.balanced_of),
        told.share(f"{prefix}.claims_right", given.said[:, 0] == given.truth, ~free),
        told.share(f"{prefix}.healthy_unclaimed", free, calm),
        told.share(f"{prefix}.hard_unclaimed", free, hard),
        told.share(f"{prefix}.could_not_tell", dumb, hit),
    ]


def of_all_faulty(told: Answers) -> list[Figure]:
    """Captures in which every request is struck: whether that is said to be normal, which is a miss, and what is named."""
    given = told.given
    hit = causes.struck(given)
    normal = np.array([verdict not in (CAUSE, CANNOT) for verdict in told.rows.verdict], dtype=np.bool_)
    return [
        told.share("all_faulty.called_normal", normal, hit),
        told.share("all_faulty.top_1", causes.within(given, 1), hit),
        told.share("all_faulty.top_3", causes.within(given, 3), hit),
    ]


def by_severity(told: Answers) -> list[Figure]:
    """Top-1 and top-3 by how hard the fault struck."""
    severity = told.rows.severity
    return [
        figure
        for each in sorted({str(one) for one in severity.tolist() if one})
        for figure in _part(told, severity == each, f"severity_{each}")
    ]


def by_effect(told: Answers) -> list[Figure]:
    """Top-1 and top-3 by the size of the effect over the noise."""
    size = told.rows.d_prime
    bins = [(name, (size >= low) & (size < high)) for name, low, high in EFFECTS]
    bins.append(("from_3", size >= FELT))
    return [figure for name, mine in bins for figure in _part(told, mine, f"effect_{name}")]


def by_view(told: Answers) -> list[Figure]:
    """Top-1 and top-3 of what strikes inside a rank (vertical), and of what strikes between ranks (horizontal)."""
    across = np.array([causes.is_across(cause) for cause in told.rows.truth], dtype=np.bool_)
    return [
        figure
        for name, mine in (("vertical", ~across), ("horizontal", across))
        for figure in _part(told, mine, f"view_{name}")
    ]


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
    (found,) = by_life(ratio(rows.healthy_life, counted, hours))
    key, why = f"{prefix}.alarms_an_hour", "" if hours.sum() else "no healthy window"
    return [Figure(key, *found, rows.lives, better_of(key), why)]


def of_certainty(rows: RequestRows) -> list[Figure]:
    """Whether answers are as right as they are sure: of all requests about which something was said."""
    given = causes.named(rows.truth, rows.claims)
    told = np.flatnonzero([verdict != CANNOT for verdict in rows.verdict])
    windows = distinct_windows(rows.window[told])
    if windows < LEAST_POSITIVES:
        return [_unsaid(f"certainty.{name}", windows) for name in CERTAINTY]
    sure = np.round(rows.sure[told], SURE_DECIMALS)
    right = (given.said[:, 0] == given.truth)[told]
    level, of = np.unique(-sure, return_inverse=True)
    life, groups = rows.life[told], len(level)
    sums = [tallied(life, of, groups), tallied(life, of, groups, right.astype(np.float64))]

    def all_of_it(drawn: Float64) -> Float64:
        all_told = Certain(-level, *np.split(drawn, 2, axis=1))
        curve = calibration.risk_coverage(all_told)
        return np.column_stack(
            [
                calibration.expected_error(all_told),
                calibration.brier(all_told),
                calibration.area(curve),
                calibration.coverage_at(curve, SURELY),
            ]
        )

    values = by_life(Sums(np.concatenate(sums, axis=1), all_of_it))
    return [_said(f"certainty.{name}", value, windows) for name, value in zip(CERTAINTY, values, strict=True)]


def of_abstention(told: Answers) -> Figure:
    """How often the first cause is right where a tenth of the struck requests, the least sure ones, may stay without one. Who
    claims nothing of a request is not sure at all.
    """
    rows, hit = told.rows, np.flatnonzero(causes.struck(told.given))
    claimed = np.array([bool(rows.claims[at]) for at in hit.tolist()], dtype=np.bool_)
    sure = np.where(claimed, np.round(rows.sure[hit], SURE_DECIMALS), 0.0)
    level, of = np.unique(-sure, return_inverse=True)
    right = (told.given.said[hit, 0] == told.given.truth[hit]) & claimed
    sums = [tallied(rows.life[hit], of, len(level)), tallied(rows.life[hit], of, len(level), right.astype(np.float64))]

    def all_of_it(drawn: Float64) -> Float64:
        curve = calibration.risk_coverage(Certain(-level, *np.split(drawn, 2, axis=1)))
        return calibration.precision_at(curve, ANSWERED)[:, None]

    return _figure("certainty.cause_right_at_90", Sums(np.concatenate(sums, axis=1), all_of_it), rows.window[hit])


def of_steps(rows: StepRows, prefix: str) -> list[Figure]:
    """Precision, recall, F1 and the area under precision and recall at every prior, and recall at low false-positive rates.

    Values are of scores as they are; intervals of :func:`detection.thinned` ones, which a bootstrap weighs in no time.
    """
    names, reasons = _of_steps(rows)
    windows = distinct_windows(rows.window[rows.label])
    if windows < LEAST_POSITIVES:
        return [_unsaid(f"{prefix}.{name}", windows) for name in names]
    order = detection.ranked(rows.label, rows.score)
    level, of = np.unique(-detection.thinned(order), return_inverse=True)
    hit, levels = rows.label.astype(np.float64), len(level)
    kind = np.where(rows.label, 0, 2) + ~rows.flag  # as detection.curve_of_four has them
    sums = [tallied(rows.life, of, levels, hit), tallied(rows.life, of, levels, 1 - hit), tallied(rows.life, kind, 4)]

    def all_of_it(drawn: Float64) -> Float64:
        scores = detection.curve_of_sums(drawn[:, :levels], drawn[:, levels : 2 * levels])
        return np.column_stack(_detection(detection.curve_of_four(drawn[:, -4:]), scores))

    weight = np.ones(len(rows.label))
    exact = _detection(detection.curve_of_flags(rows.label, rows.flag, weight), detection.curve(order, weight))
    drawn = by_life(Sums(np.concatenate(sums, axis=1), all_of_it), draws=DRAWS_OF_STEPS)
    return [
        _unsaid(f"{prefix}.{name}", windows, why)
        if why
        else _said(f"{prefix}.{name}", each._replace(value=float(value)), windows)
        for name, why, value, each in zip(names, reasons, exact, drawn, strict=True)
    ]


def _detection(flags: detection.Curve, scores: detection.Curve) -> list[Float64]:
    found: list[Float64] = []
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


def in_view(rows: StepRows, *, across: bool) -> StepRows:
    """The healthy steps, and of the abnormal ones those that were struck between ranks, or inside one."""
    return take(rows, ~rows.label | (rows.across == across))


def distinct_healthy(rows: StepRows) -> int:
    """How many different healthy steps there are: blocks share theirs between episodes."""
    life, moment = rows.life[~rows.label], rows.moment[~rows.label]
    return sum(len(np.unique(moment[life == each])) for each in np.unique(life).tolist())


def of_names(rows: NameRows, prefix: str, firsts: Sequence[int] = (1, 3, 5)) -> list[Figure]:
    """How high what is to blame stands among what was named, over all steps where it is known; an empty list is a miss."""
    place = np.array([ranking.place(a, b) for a, b in zip(rows.named, rows.right, strict=True)], dtype=np.int32)
    every = np.ones(len(place))

    def say(name: str, value: Float64 | Mask) -> Figure:
        return _figure(f"{prefix}.{name}", ratio(rows.life, value, every), rows.window)

    found = [say(f"ac_at_{k}", ranking.hits(place, k)) for k in firsts]
    if len(firsts) > 1:
        found.append(say("avg_at_5", np.mean([ranking.hits(place, k) for k in range(1, 6)], axis=0)))
        found.append(say("mrr", ranking.reciprocals(place)))
        found.append(_figure(f"{prefix}.macro_f1", _of_firsts(rows), rows.window))
    return found


def _of_firsts(rows: NameRows) -> Sums:
    """The macro F1 of first names."""
    names = ranking.numbered(*ranking.first_names(rows.named, rows.right))
    sums = [
        tallied(rows.life, np.maximum(at, 0), names.names, (at >= 0).astype(np.float64))
        for at in (names.true, names.said, np.where(names.true == names.said, names.true, -1))
    ]

    def figure(drawn: Float64) -> Float64:
        return ranking.macro_f1_of(drawn)[:, None]

    return Sums(np.concatenate(sums, axis=1), figure)


def _part(told: Answers, mine: Mask, name: str) -> list[Figure]:
    hit = causes.struck(told.given) & mine
    return [told.share(f"{name}.top_{k}", causes.within(told.given, k), hit) for k in (1, 3)]


def _figure(key: str, sums: Sums, window: Int32) -> Figure:
    """The one figure of ``sums``. ``window``: of all that is to be found."""
    windows = distinct_windows(window)
    if windows < LEAST_POSITIVES:
        return _unsaid(key, windows)
    return _said(key, by_life(sums)[0], windows)


def _said(key: str, found: Interval, windows: int) -> Figure:
    return Figure(key, *found, windows, better_of(key), "nothing to divide by" if np.isnan(found.value) else "")


def _unsaid(key: str, windows: int, why: str = "") -> Figure:
    return Figure(key, float("nan"), float("nan"), float("nan"), windows, better_of(key), why or f"{windows} windows")
