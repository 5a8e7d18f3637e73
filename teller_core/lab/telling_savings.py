"""What a change saves, as the answers of ``lab rerun`` and ``lab lifted`` and as lines for a terminal."""

from collections.abc import Sequence
from itertools import groupby
from statistics import median

from teller_core.data.report_lab import ForetoldLine, LabLiftedReport, LabRerunReport, LiftedLine, SavedLine
from teller_core.lab.counterfactual import Rerun
from teller_core.lab.lifting.figures import FELT, SIGMAS
from teller_core.lab.lifting.limited import Foretold
from teller_core.lab.savings import Lifted, Saving
from teller_core.lab.telling import LATENCIES
from teller_core.tell.layout import Style

ARMS = ("before", "after")
WAYS = ("ours", "own", "scaled")


def report_of_rerun(truth: Rerun, found: Sequence[Foretold], seconds: float) -> LabRerunReport:
    """The answer about a rerun that is whole, and what is ``found`` of predictions."""
    asked, strike = truth.asked, truth.asked.strike
    return LabRerunReport.model_validate(
        {
            "engine": asked.setup.engine,
            "changed": asked.what,
            "before": asked.before,
            "after": asked.after,
            "fault": strike and strike.fault,
            "severity": strike and strike.severity,
            "seed": asked.seed,
            "seconds": round(seconds, 1),
            "starts": len({each.start for each in truth.windows}),
            "failed": sum(each.window.failed for each in truth.windows),
            "moved": [_moved(truth, metric) for metric in truth.moved],
            "foretold": [_foretold(each) for each in found],
        }
    )


def lines_of_rerun(report: LabRerunReport, style: Style) -> list[str]:
    """The same for a person."""
    before = "the engine's own" if report.before is None else f"{report.before:,}"
    under = f" under {report.fault}, {report.severity}" if report.fault else ""
    lines = [
        f"{style.paint(report.changed, '1')} {report.after:,} instead of {before}; {report.engine}{under}, seed {report.seed}",
        "",
        f"{'latency':<29}{'after/before':>13}{'95 % interval':>16}{'saved':>12}{'faster':>8}{'slower':>8}{'neither':>9}",
    ]
    for row in report.moved:
        less = "-" if row.saved_ms is None else f"{row.saved_ms:,.1f} ms"
        ratio = f"{row.ratio:>13.2f}{f'{row.low:.2f} to {row.high:.2f}':>16}"
        lines.append(f"{LATENCIES[row.latency]:<29}{ratio}{less:>12}{row.faster:>8}{row.slower:>8}{row.undecided:>9}")
    failed = f" {report.failed} requests failed." if report.failed else ""
    starts = "1 start" if report.starts == 1 else f"{report.starts} starts"
    return [*lines, "", *_lines_of_foretold(report.foretold, style), "", f"{starts}, {report.seconds:.0f} s.{failed}"]


def _lines_of_foretold(rows: Sequence[ForetoldLine], style: Style) -> list[str]:
    """What would have been foretold, a line a start, an arm and a latency; a reason once."""
    heading = (
        f"{'learned':<9}{'latency':<9}{'requests':>9}{'took':>12}{'saved':>12}{'noise':>10}{'foretold':>12}{'off':>7}"
    )
    lines = [style.paint("foretold from windows of one limit alone", "1")]
    if any(row.silent is None for row in rows):
        lines.append(f"{heading}{'own steps':>11}{'scaled':>9}")
    for row in rows:
        if row.silent is None:
            times = "".join(
                f"{_ms(each):>{room}}"
                for each, room in ((row.took_ms, 12), (row.saved_ms, 12), (row.noise_ms, 10), (row.foretold_ms, 12))
            )
            shares = f"{_share(row.off):>7}{_share(row.own_steps_off):>11}{_share(row.scaled_off):>9}"
            lines.append(f"{row.learned:<9}{row.latency:<9}{row.requests:>9}{times}{shares}")
    silent = {f"Nothing {row.learned} the change: {row.silent}." for row in rows if row.silent is not None}
    return [*lines, *sorted(silent)]


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f} ms"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _foretold(one: Foretold) -> ForetoldLine:
    sums, size = one.sums, max(one.sums.size, 1) * 1e6
    told = one.silent == ""
    noise = one.noise if told else None
    felt = noise is not None and abs(sums.truth) >= max(FELT * sums.before, SIGMAS * noise) > 0
    off = {way: round(abs(getattr(sums, way) / sums.truth - 1), 4) if felt else None for way in WAYS}
    return ForetoldLine.model_validate(
        {
            "start": one.start,
            "learned": ARMS[one.arm],
            "latency": one.latency,
            "requests": sums.size,
            "took_ms": round(sums.before / size, 3) if told else None,
            "saved_ms": round(sums.truth / size, 3) if told else None,
            "noise_ms": None if noise is None else round(noise / size, 3),
            "foretold_ms": round(sums.ours / size, 3) if told else None,
            "off": off["ours"],
            "own_steps_off": off["own"],
            "scaled_off": off["scaled"],
            "silent": one.silent or None,
        }
    )


def report_of_lifted(life: str, found: Sequence[Lifted]) -> LabLiftedReport:
    """The answer about a life: a line a fault, over the rounds of its block."""
    whose = sorted(found, key=_whose)
    return LabLiftedReport(life=life, faults=[_lifted(list(rounds)) for _, rounds in groupby(whose, key=_whose)])


def lines_of_lifted(report: LabLiftedReport) -> list[str]:
    """The same for a person."""
    lines = [f"{'fault':<24}{'severity':<10}{'requests':>9}{'saved':>7}{'ratio':>7}{'end to end':>13}"]
    for row in report.faults:
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        less = "-" if row.saved_ms is None else f"{row.saved_ms:,.1f} ms"
        lines.append(f"{row.fault:<24}{row.severity:<10}{row.requests:>9}{row.saved:>7}{ratio:>7}{less:>13}")
    return lines


def _moved(truth: Rerun, metric: str) -> SavedLine:
    ratio = truth.moved[metric]
    own = [each.latencies[metric] for each in truth.requests if metric in each.latencies]
    faster, slower = (sum(map(which, own)) for which in (_is_faster, _is_slower))
    return SavedLine.model_validate(
        {
            "latency": metric,
            "ratio": ratio.median,
            "low": ratio.low,
            "high": ratio.high,
            "pairs": ratio.pairs,
            "faster": faster,
            "slower": slower,
            "undecided": len(truth.requests) - faster - slower,
            "saved_ms": _milliseconds(own),
        }
    )


def _lifted(rounds: Sequence[Lifted]) -> LiftedLine:
    first = rounds[0]
    own = [each.latencies["e2e"] for one in rounds for each in one.requests if "e2e" in each.latencies]
    return LiftedLine.model_validate(
        {
            "block": first.block,
            "fault": first.fault,
            "cause": first.cause,
            "severity": first.severity,
            "rejected": first.rejected,
            "requests": len(own),
            "saved": sum(map(_is_faster, own)),
            "saved_ms": _milliseconds(own),
            "ratio": round(median(each.ratio.median for each in own), 4) if own else None,
        }
    )


def _whose(one: Lifted) -> tuple[int, int]:
    return one.block, one.strike


def _is_faster(one: Saving) -> bool:
    return one.ratio.high < 1.0


def _is_slower(one: Saving) -> bool:
    return one.ratio.low > 1.0


def _milliseconds(own: Sequence[Saving]) -> float | None:
    return round(median(each.saved for each in own) / 1e6, 3) if own else None
