"""What the tables of all methods say together, as Markdown: a line a method, so that they can be compared."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from teller_core.lab.evaluation.figure import better_of
from teller_core.lab.evaluation.paired import PAIRED, Difference, Kept, differences
from teller_core.lab.evaluation.tables import BY_CAUSE, Said, said

HEADLINES: Mapping[str, str] = {
    "request.top_1": "Cause of a struck request, first guess (top-1)",
    "request.top_3": "Cause of a struck request, first three guesses (top-3)",
    "request.healthy_unclaimed": "Healthy requests of which no cause is claimed",
    "request.hard_unclaimed": "Hard negatives (slow, and no fault) of which no cause is claimed",
    "step.f1_at_43": "Abnormal steps, F1 at a share of 43 %",
    "step.pr_auc_at_10": "Abnormal steps, area under precision and recall at a share of 10 %",
}
"""Figures that are told at every tier."""
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Requests": {
        "request.macro_f1": "macro F1",
        "request.each_class": "mean over causes and none",
        "request.claims_right": "claims that are right",
        "request.could_not_tell": "could not tell",
        "request_whole_life.top_1": "whole lives: top-1",
        "request_whole_life.healthy_unclaimed": "whole lives: healthy unclaimed",
    },
    "Top-1 by how hard the fault struck": {
        f"severity_{each}.top_1": each for each in ("slight", "clear", "strong", "extreme")
    },
    "Top-1 by the size of the effect over the noise (d')": {
        "effect_below_1.top_1": "below 1",
        "effect_1_to_2.top_1": "1 to 2",
        "effect_2_to_3.top_1": "2 to 3",
        "effect_3_to_6.top_1": "3 to 6",
        "effect_from_6.top_1": "from 6",
        "effect_from_3.top_1": "from 3",
        "effect_from_3.top_3": "from 3: top-3",
    },
    "Steps": {
        "step.pr_auc_at_43": "PR-AUC 43 %",
        "step.pr_auc_at_1": "PR-AUC 1 %",
        "step.pr_auc_at_0.1": "PR-AUC 0.1 %",
        "step.recall_at_fpr_1": "recall at 1 % false alarms",
        "step.recall_at_fpr_0.1": "recall at 0.1 %",
        "step_whole_life.pr_auc_at_1": "whole lives: PR-AUC 1 %",
    },
    "Effects of d' 3 and more": {
        "effect_from_3.macro_f1": "cause: macro F1",
        "step_felt_vertical.f1_at_43": "steps, vertical: F1 43 %",
        "step_felt_horizontal.f1_at_43": "horizontal: F1 43 %",
        "step_felt.recall_at_fpr_1": "recall at 1 % false alarms",
        "step_felt_vertical.recall_at_fpr_1": "vertical: recall at 1 %",
        "step_felt_horizontal.recall_at_fpr_1": "horizontal: recall at 1 %",
        "step_felt_vertical.pr_auc_at_1": "vertical: PR-AUC 1 %",
        "step_felt_horizontal.pr_auc_at_1": "horizontal: PR-AUC 1 %",
        "operator_felt.ac_at_1": "operator AC@1",
        "operator_felt.macro_f1": "operator macro F1",
        "rank_felt.ac_at_1": "rank AC@1",
    },
    "Steps, effects of d' 3 and more": {
        "step_felt.f1_at_43": "F1 43 %",
        "step_felt.pr_auc_at_43": "PR-AUC 43 %",
        "step_felt.pr_auc_at_10": "PR-AUC 10 %",
        "step_felt.pr_auc_at_1": "PR-AUC 1 %",
        "step_felt.pr_auc_at_0.1": "PR-AUC 0.1 %",
    },
    "Steps of which there is a profile: all that the paper's method can judge": {
        "step_profiled.f1_at_43": "F1 43 %",
        "step_profiled.pr_auc_at_43": "PR-AUC 43 %",
        "step_profiled.pr_auc_at_10": "PR-AUC 10 %",
        "step_profiled.recall_at_fpr_1": "recall at 1 % false alarms",
    },
    "By view: struck inside a rank (vertical), or between ranks (horizontal)": {
        f"{prefix}_{view}.{figure}": f"{view}: {name}"
        for view in ("vertical", "horizontal")
        for prefix, figure, name in (
            ("view", "top_1", "top-1"),
            ("step", "f1_at_43", "steps, F1 43 %"),
            ("step", "pr_auc_at_10", "steps, PR-AUC 10 %"),
        )
    },
    "Steps by how hard the fault struck": {
        f"step_severity_{each}.{figure}": f"{each}: {name}"
        for each in ("slight", "clear", "strong", "extreme")
        for figure, name in (("f1_at_43", "F1 43 %"), ("pr_auc_at_1", "PR-AUC 1 %"))
    },
    "Operators and ranks": {
        "operator.ac_at_1": "operator AC@1",
        "operator.ac_at_3": "AC@3",
        "operator.mrr": "MRR",
        "operator.macro_f1": "macro F1",
        "rank.ac_at_1": "rank AC@1",
    },
    "As right as it is sure": {
        "certainty.ece": "calibration error",
        "certainty.step_ece": "of steps",
        "certainty.brier": "Brier",
        "certainty.risk_over_coverage": "risk over coverage",
        "certainty.coverage_at_risk_10": "coverage at 10 % risk",
        "certainty.cause_right_at_90": "struck, 10 % left unnamed: right",
    },
    "False alarms, and captures in which every request is struck": {
        "healthy_beside.alarms_an_hour": "alarms a server-hour, beside struck windows",
        "healthy_alone.alarms_an_hour": "in captures without a fault",
        "all_faulty.called_normal": "all struck: called normal",
        "all_faulty.top_1": "all struck: top-1",
        "all_faulty.top_3": "all struck: top-3",
    },
}
"""Figures that are told of each method at DETAILED tiers."""
DETAILED = (3, 4)
OURS, FUSED, PAPER = "ours", "fused", "paper"
OF_OURS = (OURS, "rules", "numbers", FUSED, "model")
COMPARED = (FUSED, OURS)
"""Methods that are held against each other one, draw of lives by draw of lives."""
GOALS: Mapping[str, tuple[str, float]] = {
    "request.top_1": ("cause of a struck request, top-1", 0.75),
    "request.top_3": ("the same, top-3", 0.90),
    "request.hard_unclaimed": ("hard negatives without a claim", 0.97),
    "step_felt.f1_at_43": ("steps of d' 3 and more: F1 at 43 %", 0.93),
    "step_felt.pr_auc_at_1": ("steps of d' 3 and more: PR-AUC at 1 %", 0.80),
    "operator.ac_at_1": ("operator of a profiled step, AC@1", 0.80),
    "rank.ac_at_1": ("rank, AC@1", 0.95),
}
"""What ours is to reach with all that can be recorded, before any model: as it is called, and the least."""
GOALS_OF_FUSED: Mapping[str, tuple[str, float]] = {
    "step_felt_vertical.f1_at_43": ("steps, vertical view: F1 at 43 %", 0.97),
    "step_felt_horizontal.f1_at_43": ("steps, horizontal view: F1 at 43 %", 0.97),
    "step_felt.recall_at_fpr_1": ("steps: recall at 1 % false alarms", 0.90),
    "step_felt.pr_auc_at_1": ("steps: PR-AUC at 1 %", 0.90),
    "operator_felt.ac_at_1": ("operator of a profiled step, AC@1", 0.90),
    "operator_felt.macro_f1": ("the same, macro F1", 0.85),
    "rank_felt.ac_at_1": ("rank, AC@1", 0.95),
    "effect_from_3.macro_f1": ("cause, macro F1", 0.85),
    "effect_from_3.top_3": ("cause of a struck request, top-3", 0.97),
    "certainty.step_ece": ("calibration error of all steps, at most", 0.03),
    "certainty.cause_right_at_90": ("cause right where a tenth stays unnamed, of all struck requests", 0.95),
}
"""What ours with the model is to reach: of effects of d' 3 and more, where nothing else is said."""


class Table(NamedTuple):
    """Whose table it is, and of which tier."""

    method: str
    tier: int


def summary(tables: Mapping[Table, str], drawn: Mapping[Table, Kept] = {}) -> str:
    """All ``tables`` (texts, in the order of the methods) and what draws of lives came to, ending with a line feed."""
    told = {table: said(text) for table, text in tables.items()}
    methods = list(dict.fromkeys(table.method for table in tables))
    tiers = sorted({table.tier for table in tables})
    lines = ["# Methods on the lives of the benchmark", "", *_sides(tables, tiers)]
    lines += [
        "",
        "Figures with their 95 % interval, lives drawn again; - where fewer than 30 windows stand behind one.",
    ]
    for name, goals in ((OURS, GOALS), (FUSED, GOALS_OF_FUSED)):
        if tiers and (table := Table(name, tiers[-1])) in told:
            lines += ["", f"## What {name} is to reach, at T{table.tier}", "", *_goals(told, table, goals)]
    if ahead := [*_ahead(told, tiers)]:
        lines += ["", "## Ours beside the paper's method, figure by figure", "", *ahead]
    for first in COMPARED:
        if apart := [*_apart(first, methods, drawn, tiers)]:
            lines += [
                "",
                f"## {first.capitalize()} less each other method, lives drawn again for both alike",
                "",
                *apart,
            ]
    for key, title in HEADLINES.items():
        lines += ["", f"## {title}", "", *_head([f"T{tier}" for tier in tiers])]
        lines += [_row(name, [told.get(Table(name, tier), {}).get(key) for tier in tiers]) for name in methods]
    for tier in DETAILED:
        own = {name: told[Table(name, tier)] for name in methods if Table(name, tier) in told}
        lines += _in_detail(own, tier)
        if Table(OURS, tier) in tables:
            lines += ["", f"## Ours by cause, at T{tier}", "", "```text", *_by_cause(tables[Table(OURS, tier)]), "```"]
    return "\n".join(lines) + "\n"


def _in_detail(own: Mapping[str, Mapping[str, Said]], tier: int) -> Iterator[str]:
    """The SECTIONS of which anything is said: a line a method."""
    for title, columns in SECTIONS.items():
        if any(key in figures for figures in own.values() for key in columns):
            yield from ("", f"## {title}, at T{tier}", "", *_head(list(columns.values())))
            yield from (_row(name, [figures.get(key) for key in columns]) for name, figures in own.items())


def _sides(tables: Mapping[Table, str], tiers: Sequence[int]) -> Iterator[str]:
    """What was judged, by tier: the second line of any table of it."""
    for tier in tiers:
        text = next(text for table, text in tables.items() if table.tier == tier)
        yield f"- T{tier}. {text.splitlines()[1]}"


def _goals(
    told: Mapping[Table, Mapping[str, Said]], ours: Table, goals: Mapping[str, tuple[str, float]]
) -> Iterator[str]:
    """A line a goal: ours, the paper's method, and the best of the others that are no part of ours."""
    paper = told.get(Table(PAPER, ours.tier), {})
    others = {table.method: figures for table, figures in told.items() if table.tier == ours.tier}
    others = {name: figures for name, figures in others.items() if name not in (*OF_OURS, PAPER)}
    yield from _head(["to reach", ours.method, "", "the paper's method", "best of the others"])
    for key, (title, goal) in goals.items():
        mine, sign = told[ours].get(key), better_of(key)
        best = max([(sign * said[key].value, name) for name, said in others.items() if key in said], default=None)
        told_best = "-" if best is None else f"{best[1]} {_number(sign * best[0])}"
        cells = [f"{goal:.2f}", _cell(mine), _verdict(mine, goal, sign), _cell(paper.get(key)), told_best]
        yield f"| {' | '.join([title, *cells])} |"


def _ahead(told: Mapping[Table, Mapping[str, Said]], tiers: Sequence[int]) -> Iterator[str]:
    """A line a tier: in how many figures of both methods ours is the better one, and in which it is not."""
    for tier in tiers:
        mine, theirs = (told.get(Table(name, tier), {}) for name in (OURS, PAPER))
        if not (both := [key for key in mine if key in theirs and better_of(key)]):
            continue
        others = [key for key in both if (mine[key].value - theirs[key].value) * better_of(key) <= 0]
        named = [f"{key} ({_number(mine[key].value)}, theirs {_number(theirs[key].value)})" for key in others]
        where = f", not in {', '.join(named)}" if named else ""
        yield f"- T{tier}. Ours is ahead in {len(both) - len(others)} of {len(both)}{where}."


def _apart(first: str, methods: Sequence[str], drawn: Mapping[Table, Kept], tiers: Sequence[int]) -> Iterator[str]:
    """A line a method and tier: differences from it, with a star where 0 is not in their interval."""
    lines: list[str] = []
    for tier in tiers:
        for other in methods:
            mine, theirs = drawn.get(Table(first, tier)), drawn.get(Table(other, tier))
            if other == first or mine is None or theirs is None:
                continue
            found = {one.key: one for one in differences(mine, theirs)}
            cells = [_difference(found.get(key)) for key in PAIRED]
            lines.append(f"| T{tier}: {other} | {' | '.join(cells)} |")
    if lines:
        yield from _head(PAIRED)
        yield from lines


def _difference(one: Difference | None) -> str:
    return "-" if one is None else _cell(Said(one.value, one.low, one.high)) + (" *" if one.sure else "")


def _verdict(said: Said | None, goal: float, sign: int) -> str:
    return "not said" if said is None else "reached" if sign * (said.value - goal) >= 0 else "missed"


def _head(columns: Sequence[str]) -> list[str]:
    return [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]


def _row(name: str, cells: Sequence[Said | None]) -> str:
    return f"| {name} | {' | '.join(map(_cell, cells))} |"


def _cell(said: Said | None) -> str:
    if said is None:
        return "-"
    interval = "" if said.low is None or said.high is None else f" ({_number(said.low)} to {_number(said.high)})"
    return f"{_number(said.value)}{interval}"


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.0f}"


def _by_cause(text: str) -> list[str]:
    _, found, rest = text.partition(BY_CAUSE)
    return (found + rest.partition("\n\n")[0]).splitlines()
