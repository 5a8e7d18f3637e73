"""The figures of a method: of requests, of what is named in steps, of how sure it is. ``step_figures`` has those of steps."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Mask, take
from teller_core.lab.evaluation import calibration, causes, ranking
from teller_core.lab.evaluation.bootstrap import Sums, by_life, ratio, tallied
from teller_core.lab.evaluation.calibration import Certain
from teller_core.lab.evaluation.causes import Named
from teller_core.lab.evaluation.figure import LEAST_POSITIVES, Figure, figure_of, said, unsaid
from teller_core.lab.evaluation.method import CANNOT, CAUSE
from teller_core.lab.evaluation.rows import NameRows, RequestRows, Rows, distinct_windows, felt, struck_how
from teller_core.lab.evaluation.step_figures import all_of_steps, of_chances

EFFECTS: Sequence[tuple[str, float, float]] = (
    ("below_1", -np.inf, 1.0),
    ("1_to_2", 1.0, 2.0),
    ("2_to_3", 2.0, 3.0),
    ("3_to_6", 3.0, 6.0),
    ("from_6", 6.0, np.inf),
)
SURELY = 0.10
"""The risk at which coverage is asked for."""
ANSWERED = 0.90
"""Of struck requests, the share of which a cause is asked for: the surest."""
SURE_DECIMALS = 3
"""Of how sure somebody is: more say nothing."""
CERTAINTY = ("ece", "brier", "risk_over_coverage", "coverage_at_risk_10")


def figures(rows: Rows, *, chances: bool = False) -> list[Figure]:
    """All figures of the usual composition, requests first. ``chances``: scores of steps say how likely each is abnormal."""
    requests = answers(rows.requests)
    return [
        *of_requests(requests, "request"),
        *by_severity(requests),
        *by_effect(requests),
        *by_view(requests),
        *alarms(rows, "healthy_beside"),
        *of_certainty(rows.requests),
        of_abstention(requests),
        of_chances(rows.steps, chances=chances),
        *all_of_steps(rows.steps),
        *all_of_names(rows.operators, "operator", (1, 3, 5)),
        *all_of_names(rows.ranks, "rank", (1,)),
    ]


class Answers(NamedTuple):
    """Requests and what was said of them, ``given`` as numbers."""

    rows: RequestRows
    given: Named

    def share(self, key: str, what: Mask, of: Mask) -> Figure:
        """The share of the requests ``of`` that are ``what``; behind it stand the windows of the former."""
        return figure_of(key, ratio(self.rows.life, what & of, of), self.rows.window[of])

    def confused(self, key: str, figure: Callable[[Float64], Float64]) -> Figure:
        """``figure`` of the confusion of causes; behind it stand the windows that were struck."""
        count = len(self.given.classes)
        sums = tallied(self.rows.life, causes.cells(self.given), count * count)
        hit = self.rows.window[causes.struck(self.given)]

        def of_draws(drawn: Float64) -> Float64:
            return figure(drawn.reshape(len(drawn), count, count))[:, None]

        return figure_of(key, Sums(sums, of_draws), hit)


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


def of_unseen(told: Answers, cause: str) -> list[Figure]:
    """Requests struck by a ``cause`` that was kept from training: whether they are called abnormal (by a cause, or as none can be
    told), whether a cause is claimed, and whether that is another one.
    """
    mine = np.array([truth == cause for truth in told.rows.truth], dtype=np.bool_)
    claimed = np.array([verdict == CAUSE for verdict in told.rows.verdict], dtype=np.bool_)
    dumb = np.array([verdict == CANNOT for verdict in told.rows.verdict], dtype=np.bool_)
    wrong = claimed & (told.given.said[:, 0] != told.given.truth)
    return [
        told.share("unseen.called_abnormal", claimed | dumb, mine),
        told.share("unseen.named", claimed, mine),
        told.share("unseen.named_wrongly", wrong, mine),
    ]


def by_severity(told: Answers) -> list[Figure]:
    """Top-1 and top-3 by how hard the fault struck."""
    severity = told.rows.severity
    return [figure for each in struck_how(told.rows) for figure in _part(told, severity == each, f"severity_{each}")]


def by_effect(told: Answers) -> list[Figure]:
    """Top-1 and top-3 by the size of the effect over the noise; where it is felt also macro F1, beside requests not struck."""
    size, strong = told.rows.d_prime, felt(told.rows)
    bins = [(name, (size >= low) & (size < high)) for name, low, high in EFFECTS]
    bins.append(("from_3", strong))
    beside = answers(take(told.rows, ~causes.struck(told.given) | strong))
    found = [figure for name, mine in bins for figure in _part(told, mine, f"effect_{name}")]
    return [*found, beside.confused("effect_from_3.macro_f1", causes.macro_f1_of)]


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
    return [said(key, found, rows.lives)._replace(why=why)]


def of_certainty(rows: RequestRows) -> list[Figure]:
    """Whether answers are as right as they are sure: of all requests about which something was said."""
    given = causes.named(rows.truth, rows.claims)
    told = np.flatnonzero([verdict != CANNOT for verdict in rows.verdict])
    windows = distinct_windows(rows.window[told])
    if windows < LEAST_POSITIVES:
        return [unsaid(f"certainty.{name}", windows) for name in CERTAINTY]
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
    return [said(f"certainty.{name}", value, windows) for name, value in zip(CERTAINTY, values, strict=True)]


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

    return figure_of("certainty.cause_right_at_90", Sums(np.concatenate(sums, axis=1), all_of_it), rows.window[hit])


def all_of_names(rows: NameRows, prefix: str, firsts: Sequence[int]) -> list[Figure]:
    """Of all steps where it is known what is to blame, of those whose strike was felt, and by how hard it struck."""
    found = [*of_names(rows, prefix, firsts), *of_names(take(rows, felt(rows)), f"{prefix}_felt", firsts)]
    for each in struck_how(rows):
        found += of_names(take(rows, rows.severity == each), f"{prefix}_severity_{each}", (1,))
    return found


def of_names(rows: NameRows, prefix: str, firsts: Sequence[int]) -> list[Figure]:
    """How high what is to blame stands among what was named, over all steps where it is known; an empty list is a miss."""
    place = np.array([ranking.place(a, b) for a, b in zip(rows.named, rows.right, strict=True)], dtype=np.int32)
    every = np.ones(len(place))

    def say(name: str, value: Float64 | Mask) -> Figure:
        return figure_of(f"{prefix}.{name}", ratio(rows.life, value, every), rows.window)

    found = [say(f"ac_at_{k}", ranking.hits(place, k)) for k in firsts]
    if len(firsts) > 1:
        found.append(say("avg_at_5", np.mean([ranking.hits(place, k) for k in range(1, 6)], axis=0)))
        found.append(say("mrr", ranking.reciprocals(place)))
        found.append(figure_of(f"{prefix}.macro_f1", _of_firsts(rows), rows.window))
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
