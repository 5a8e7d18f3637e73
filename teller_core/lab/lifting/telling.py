"""How well savings are predicted, as the answer of ``lab lifted`` about packed lives and as lines for a terminal."""

from collections.abc import Sequence
from itertools import groupby
from math import isnan

from teller_core.data.report_lab import LabPredictedReport, PredictedLine, PredictedPair
from teller_core.lab.lifting.figures import WORDS, Figures, felt, figures
from teller_core.lab.lifting.pairs import Pair
from teller_core.tell.layout import Style


def report_of_predicted(side: str, lives: int, pairs: Sequence[Pair]) -> LabPredictedReport:
    """The answer about the lives of a side."""
    return LabPredictedReport.model_validate(
        {"side": side, "lives": lives, "causes": [_line(one) for one in figures(pairs)], "pairs": [*map(_pair, pairs)]}
    )


def lines_of_predicted(report: LabPredictedReport, style: Style) -> list[str]:
    """The same for a person: a table each of requests, steps, profiled steps and what is told."""
    lines: list[str] = []
    for rows in (list(rows) for _, rows in groupby(report.causes, key=lambda line: line.what)):
        lines += [
            style.paint(f"{WORDS[rows[0].what]}: median error of what the end of a fault was predicted to save", "1"),
            f"{'cause':<32}{'strikes':>8}{'silent':>8}{'error':>8}{'own loss':>10}{'scaled':>8}{'noise':>8}",
        ]
        for row in rows:
            shares = (row.error, row.own_error, row.scaled_error, row.noise)
            told = "".join(f"{_share(value):>{width}}" for value, width in zip(shares, (8, 10, 8, 8), strict=True))
            lines.append(f"{row.cause:<32}{row.pairs:>8}{row.silent:>8}{told}  {row.not_claimed or ''}".rstrip())
        lines.append("")
    return [*lines, f"{report.lives} lives of the {report.side} side."]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _line(one: Figures) -> PredictedLine:
    shares = (None if isnan(each) else round(each, 4) for each in (one.ours, one.own, one.scaled, one.noise))
    error, own, scaled, noise = shares
    return PredictedLine(
        cause=one.cause,
        what=one.what,
        pairs=one.pairs,
        silent=one.silent,
        error=error,
        own_error=own,
        scaled_error=scaled,
        noise=noise,
        not_claimed=one.why_not or None,
    )


def _pair(pair: Pair) -> PredictedPair:
    sums = pair.sums
    told = {"before_ms": sums.before, "truth_ms": sums.truth, "noise_ms": pair.noise}
    told |= {"predicted_ms": sums.ours, "own_ms": sums.own, "scaled_ms": sums.scaled}
    return PredictedPair.model_validate(
        {
            "life": pair.life,
            "engine": pair.engine,
            "fault": pair.fault,
            "cause": pair.cause,
            "severity": pair.severity,
            "role": pair.role,
            "what": pair.what,
            "count": sums.size,
            "felt": felt(pair),
            "silent": pair.silent or None,
            **{name: round(ns / 1e6, 3) for name, ns in told.items()},
        }
    )
