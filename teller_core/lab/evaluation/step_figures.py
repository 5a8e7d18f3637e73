"""The figures of steps: abnormal or not, at each share of abnormal ones, in each view, of each severity.

Figures at priors below 5 % need 30,000 healthy steps of 10 lives; a false-positive rate needs ten healthy steps for each that
it allows; how well chances are calibrated is said of 2,000 steps and more.
"""

from collections.abc import Collection

import numpy as np

from teller_core.data.table import Float64, take
from teller_core.lab.evaluation import calibration, detection
from teller_core.lab.evaluation.bootstrap import Sums, by_life, tallied
from teller_core.lab.evaluation.figure import LEAST_POSITIVES, Figure, figure_of, said, unsaid
from teller_core.lab.evaluation.rows import StepRows, distinct_windows, felt, struck_how

LOW_PRIOR, LEAST_HEALTHY, LEAST_LIVES = 0.05, 30_000, 10
ALLOWED = 10
"""Healthy steps for each one that a false-positive rate lets through."""
DRAWS_OF_STEPS = 200
LEAST_CHANCES = 2_000
"""Different steps that how well chances are calibrated is said of."""
SHORT = ("f1_at_43", "recall_at_fpr_1", "pr_auc_at_1")
"""What is told of steps of one view and effect, or of one severity."""


def all_of_steps(rows: StepRows) -> list[Figure]:
    """Of all steps and of each part of them."""
    strong = take(rows, ~rows.label | felt(rows))
    parts = [f for each in struck_how(rows) for f in of_steps(_of_severity(rows, each), f"step_severity_{each}", SHORT)]
    return [
        *of_steps(rows, "step"),
        *of_steps(strong, "step_felt"),
        *of_steps(in_view(rows, across=False), "step_vertical"),
        *of_steps(in_view(rows, across=True), "step_horizontal"),
        *of_steps(in_view(strong, across=False), "step_felt_vertical", SHORT),
        *of_steps(in_view(strong, across=True), "step_felt_horizontal", SHORT),
        *parts,
        *of_steps(take(rows, rows.profiled), "step_profiled"),
    ]


def of_steps(rows: StepRows, prefix: str, wanted: Collection[str] = ()) -> list[Figure]:
    """Precision, recall, F1 and the area under precision and recall at every prior, and recall at low false-positive rates; of
    these the ``wanted`` ones, or all.

    Values are of scores as they are; intervals of :func:`detection.thinned` ones, which a bootstrap weighs in no time.
    """
    names, reasons = _of_steps(rows)
    windows = distinct_windows(rows.window[rows.label])
    if windows < LEAST_POSITIVES:
        return [unsaid(f"{prefix}.{name}", windows) for name in names if not wanted or name in wanted]
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
        unsaid(f"{prefix}.{name}", windows, why)
        if why
        else said(f"{prefix}.{name}", each._replace(value=float(value)), windows)
        for name, why, value, each in zip(names, reasons, exact, drawn, strict=True)
        if not wanted or name in wanted
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


def in_view(rows: StepRows, *, across: bool) -> StepRows:
    """The healthy steps, and of the abnormal ones those that were struck between ranks, or inside one."""
    return take(rows, ~rows.label | (rows.across == across))


def _of_severity(rows: StepRows, severity: str) -> StepRows:
    """The healthy steps, and of the abnormal ones those that were struck so hard."""
    return take(rows, ~rows.label | (rows.severity == severity))


def of_chances(rows: StepRows, *, chances: bool) -> Figure:
    """How far the scores of steps lie from the shares that are abnormal, steps of like score together: of all judged steps that
    have a score, as often as episodes have them. Not said where scores are no ``chances``.
    """
    key = "certainty.step_ece"
    if not chances:
        return unsaid(key, 0, "its scores are no chances")
    told = take(rows, ~np.isnan(rows.score))
    steps = distinct(told)
    if steps < LEAST_CHANCES:
        return unsaid(key, distinct_windows(told.window), f"{steps:,} steps")
    part = calibration.equal_parts(told.score)
    weights = (None, told.score, told.label.astype(np.float64))
    sums = [tallied(told.life, part, calibration.PARTS, weight) for weight in weights]

    def figure(drawn: Float64) -> Float64:
        return calibration.error_of_parts(*np.split(drawn, 3, axis=1))[:, None]

    return figure_of(key, Sums(np.concatenate(sums, axis=1), figure), told.window)


def distinct_healthy(rows: StepRows) -> int:
    """How many different healthy steps there are."""
    return distinct(take(rows, ~rows.label))


def distinct(rows: StepRows) -> int:
    """How many different steps there are: blocks share their healthy ones between episodes."""
    return sum(len(np.unique(rows.moment[rows.life == each])) for each in np.unique(rows.life).tolist())
