"""The figures of one method as text: for people, and for the ratchet, which reads its lines again."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.lab.evaluation import causes
from teller_core.lab.evaluation.figure import LEAST_POSITIVES, Figure
from teller_core.lab.evaluation.rows import RequestRows, distinct_windows
from teller_core.lab.evaluation.running import Evaluation, LeftOut
from teller_core.lab.evaluation.training import MOST_ROWS
from teller_core.lab.evaluation.tuning import MOST_EPISODES

TITLES: Mapping[str, str] = {
    "request": "Why was this request slow: the cause, of requests that a fault struck; none, of the others",
    "severity": "By how hard the fault struck",
    "effect": "By the size of the effect over the noise (d')",
    "view": "By view: struck inside a rank (vertical), or between ranks (horizontal)",
    "healthy_beside": "False alarms in healthy windows, beside struck ones",
    "healthy_alone": "False alarms in captures without any fault",
    "all_faulty": "Captures in which every request is struck",
    "certainty": "As right as it is sure",
    "unseen": "Requests struck by a cause that was kept from training",
    "step": "Steps: abnormal or not, at each share of abnormal steps (%)",
    "step_felt": "Steps, effects of d' 3 and more",
    "step_vertical": "Steps, vertical view: struck inside a rank",
    "step_horizontal": "Steps, horizontal view: struck between ranks",
    "step_felt_vertical": "Steps, vertical view, effects of d' 3 and more",
    "step_felt_horizontal": "Steps, horizontal view, effects of d' 3 and more",
    "step_severity": "Steps, by how hard the fault struck",
    "step_profiled": "Steps of which there is a profile",
    "step_whole_life": "Steps of whole lives",
    "request_whole_life": "Requests of whole lives",
    "operator": "Operators of profiled steps",
    "operator_felt": "Operators of profiled steps, effects of d' 3 and more",
    "operator_severity": "Operators of profiled steps, by how hard the fault struck",
    "rank": "Ranks (faults of one rank strike the second one: whoever always names that is right)",
    "rank_felt": "Ranks, effects of d' 3 and more",
    "rank_severity": "Ranks, by how hard the fault struck",
}
"""By what keys begin with, in the order of the table."""
PARTED = ("severity", "effect", "view", "step_severity", "operator_severity", "rank_severity")
"""Of these, keys have the part behind it."""
WIDE = 38
NUMBER = r"-?\d+\.\d{4}"
LINE = re.compile(
    rf"^(?P<key>[a-z_0-9]+\.[a-z_0-9.]+) +(?P<value>{NUMBER})(?: +(?P<low>{NUMBER}) to (?P<high>{NUMBER}))?(?= |$)",
    re.MULTILINE,
)
BY_CAUSE = "By cause: "
"""How the part of a table begins that has a line a cause."""
NAMES_WIDE = 12
HEADLINES: Mapping[str, str] = {
    "request.top_1": "top-1",
    "request.top_3": "top-3",
    "request.healthy_unclaimed": "healthy",
    "request.hard_unclaimed": "hard",
    "step.f1_at_43": "F1 43 %",
    "step.pr_auc_at_10": "PR-AUC 10 %",
}
"""Figures that are told of what was left out, and how they are called there."""
FEW = 8
"""Other causes that the table of confusion has columns for; the rest stands together."""


class Said(NamedTuple):
    """A figure of a table, and its interval where it has one."""

    value: float
    low: float | None
    high: float | None


def table(done: Evaluation, tier: int, side: str = "Test side") -> str:
    """The whole table, ending with a line feed. ``side``: whose lives were judged."""
    rows = done.rows
    windows = distinct_windows(rows.requests.window)
    steps, abnormal = len(rows.steps.label), int(rows.steps.label.sum())
    lines = [
        f"{done.method.name} at T{tier}: {done.method.about}",
        f"{side}: {rows.lives} lives, {rows.episodes} episodes, {len(rows.requests.truth)} judged requests in {windows} "
        f"windows, {steps} judged steps, {abnormal} of them abnormal.",
        "Intervals: 95 %, lives drawn again. windows: those in which there was something to find; nothing is said of fewer than "
        f"{LEAST_POSITIVES}.",
    ]
    for prefix, title in TITLES.items():
        mine = [figure for figure in done.figures if _prefix(figure.key) == prefix]
        if mine:
            lines += ["", title, f"{'':<{WIDE}}{'value':>10}{'95 % interval':>24}{'windows':>9}", *map(_line, mine)]
    lines += ["", *_by_class(rows.requests), "", *_confusion(rows.requests)]
    lines += ["", "Options, chosen on the training side: the mean over folds of lives, and each fold", *done.log]
    lines.append(
        f"What is learned is learned from at most {MOST_ROWS:,} healthy steps and {MOST_ROWS:,} requests of the training side, "
        f"drawn by chance; options are chosen on at most {MOST_EPISODES} of its episodes. So for every method."
    )
    lines += [f"seeds, {key}: {', '.join(_number(value) for value in values)}" for key, values in done.seeds.items()]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def values(text: str) -> dict[str, float]:
    """The figures of a table by key, as far as they were said."""
    return {key: figure.value for key, figure in said(text).items()}


def said(text: str) -> dict[str, Said]:
    """The same, with their intervals."""
    return {
        match["key"]: Said(
            float(match["value"]), *(float(match[name]) if match[name] else None for name in ("low", "high"))
        )
        for match in LINE.finditer(text)
    }


def _prefix(key: str) -> str:
    head = key.partition(".")[0]
    return next((known for known in PARTED if head.startswith(f"{known}_")), head)


def _line(figure: Figure) -> str:
    start = f"{figure.key:<{WIDE}}"
    if math.isnan(figure.value):
        return f"{start}{'-':>10}{'':>24}{figure.positives:>9}  {figure.why}"
    known = not math.isnan(figure.low)
    interval = f"{_number(figure.low)} to {_number(figure.high)}" if known else "-"
    return f"{start}{_number(figure.value):>10}{interval:>24}{figure.positives:>9}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _by_class(rows: RequestRows) -> list[str]:
    """One line a cause, with what its requests were taken for."""
    given = causes.named(rows.truth, rows.claims)
    truth = np.array(rows.truth, dtype=object)
    lines = [
        f"{BY_CAUSE}shares of its requests called by its name, by that of a look-alike, by another, by none; of its claims, "
        "those that are right",
        f"{'':<{WIDE}}{'named':>8}{'alike':>8}{'other':>8}{'none':>8}{'right':>8}{'windows':>9}  taken for",
    ]
    for one in causes.look_alikes(given, np.ones(len(rows.truth))):
        windows = distinct_windows(rows.window[truth == one.cause])
        if windows < LEAST_POSITIVES:
            lines.append(f"{one.cause:<{WIDE}}{'-':>8}{'-':>8}{'-':>8}{'-':>8}{'-':>8}{windows:>9}")
            continue
        shares = (one.recall, one.look_alike, one.other, one.none, one.precision)
        said = ", ".join(f"{cause} {share:.2f}" for cause, share in one.taken_for)
        lines.append(f"{one.cause:<{WIDE}}{''.join(_share(each) for each in shares)}{windows:>9}  {said}")
    return lines


def _confusion(rows: RequestRows) -> list[str]:
    """Numbers of requests: a line a truth, a column for each of the causes that are claimed most."""
    given = causes.named(rows.truth, rows.claims)
    count = causes.confusion(given, np.ones(len(rows.truth)))
    if not len(rows.truth):
        return ["No request is judged."]
    claimed = count[:, 1:].sum(axis=0)
    shown = [int(at) + 1 for at in np.argsort(-claimed, kind="stable")[:FEW] if claimed[at] > 0]
    letters = [chr(ord("a") + at) for at in range(len(shown))]
    lines = ["Requests by what is true (lines) and what is said first (columns)"]
    lines += [f"  {letter} {given.classes[at]}" for letter, at in zip(letters, shown, strict=True)]
    lines.append(f"{'':<{WIDE}}{'none':>7}{''.join(f'{letter:>7}' for letter in letters)}{'other':>7}")
    for at, cause in enumerate(given.classes):
        row = count[at]
        if not row.sum():
            continue
        cells = [row[causes.NO_CAUSE], *(row[column] for column in shown)]
        rest = float(row.sum()) - sum(map(float, cells))
        lines.append(f"{cause or '(no fault)':<{WIDE}}{''.join(f'{int(cell):>7}' for cell in (*cells, rest))}")
    return lines


def _share(value: float) -> str:
    return f"{'-':>8}" if math.isnan(value) else f"{value:>8.2f}"


def left_out_lines(found: Mapping[str, Sequence[LeftOut]], what: str, tier: int) -> list[str]:
    """One line a method and value of ``what`` that it was never trained on: the headline figures of the episodes that have it."""
    lines = [
        f"Never seen in training, at T{tier}: {what}. What learns nothing is judged on the same episodes.",
        f"{'':<{NAMES_WIDE}}{what:<{WIDE}}{'episodes':>9}{''.join(f'{title:>12}' for title in HEADLINES.values())}",
    ]
    for name, several in found.items():
        for one in several:
            by_key = {figure.key: figure.value for figure in one.figures}
            cells = "".join(f"{_number(by_key[key]):>12}" for key in HEADLINES)
            lines.append(f"{name:<{NAMES_WIDE}}{one.value:<{WIDE}}{one.episodes:>9}{cells}")
    return lines
