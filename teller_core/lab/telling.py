"""What a block of a server's life showed, as the answer of ``lab run`` and as lines for a terminal."""

from collections.abc import Mapping

from teller_core.data.report_lab import LabRunReport, MovedLine, WindowLine
from teller_core.lab.blocks import HEALTHY, BlockTruth, StrikeTruth, Window
from teller_core.tell.layout import Style

LATENCIES: Mapping[str, str] = {
    "ttft": "time to first token",
    "itl_mean": "time between tokens",
    "itl_max": "longest pause between tokens",
    "e2e": "whole request",
}


def report_of(block: BlockTruth, engine: str, seed: int, seconds: float, *, kept: bool) -> LabRunReport:
    """The answer about a block of one strike."""
    (truth,) = block.strikes
    delays = [delay for window in block.windows for delay in window.delays]
    return LabRunReport.model_validate(
        {
            "fault": truth.fault,
            "cause": truth.cause,
            "engine": engine,
            "severity": truth.severity,
            "seed": seed,
            "knobs": dict(truth.knobs),
            "seconds": round(seconds, 1),
            "window_noise": truth.sigma,
            "delays": len(delays),
            "delayed_ms": round(sum(delay.delay for delay in delays) / 1e6, 3),
            "judged_by": truth.judged_by,
            "moved": _moved(truth),
            "rejected": truth.rejected,
            "windows": [_window(window) for window in block.windows],
            "bundle": block.bundle if kept else None,
        }
    )


def lines_of(report: LabRunReport, style: Style) -> list[str]:
    """The same for a person."""
    knobs = ", ".join(f"{name} {value:g}" for name, value in report.knobs.items())
    what = report.cause or "no fault, only slow"
    lines = [
        f"{style.paint(report.fault, '1')} ({what}), {report.severity}: {knobs}; {report.engine}, seed {report.seed}",
        f"The injector saw {report.delays:,} delays, {report.delayed_ms:,.0f} ms together, in {_struck_s(report):.1f} s.",
        "",
        f"{'latency':<30}{'struck/healthy':>15}{'95 % interval':>17}",
    ]
    for row in report.moved:
        mark = "*" if row.latency == report.judged_by else ""
        lines.append(f"{LATENCIES[row.latency] + mark:<30}{row.ratio:>15.2f}{f'{row.low:.2f} to {row.high:.2f}':>17}")
    verdict = "It moved what it is judged by (*)." if report.rejected is None else f"Rejected: {report.rejected}."
    chance = f"Two healthy windows differ by {100 * report.window_noise:.0f} % (one sigma of each)."
    return [*lines, "", verdict, chance, f"It took {report.seconds:.0f} s."]


def _struck_s(report: LabRunReport) -> float:
    return sum(window.end_ns - window.begin_ns for window in report.windows if window.kind == "struck") / 1e9


def _moved(truth: StrikeTruth) -> list[MovedLine]:
    return [
        MovedLine.model_validate(
            {"latency": name, "ratio": ratio.median, "low": ratio.low, "high": ratio.high, "requests": ratio.pairs}
        )
        for name, ratio in truth.moved.items()
    ]


def _window(window: Window) -> WindowLine:
    return WindowLine.model_validate(
        {
            "round": window.round,
            "kind": "healthy" if window.strike == HEALTHY else "struck",
            "profiled": window.profiled,
            "begin_ns": window.begin,
            "end_ns": window.end,
            "requests": len(window.requests) + len(window.others),
            "failed": window.failed,
            "run_queue_wait_ms": _milliseconds(window.noise["worker_run_queue_wait_ns"]),
            "cpu_pressure_ms": _milliseconds(window.noise["machine_cpu_pressure_ns"]),
            "throttled_ms": _milliseconds(window.noise["throttled_ns"]),
        }
    )


def _milliseconds(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 3)
