"""What really happened in an episode: whom the fault struck and how much that cost them. Known to nobody who answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from teller_core.lab.outside import Delay
from teller_core.lab.plan import Plan

SHARE = 0.05
LEAST_NS = 50_000_000
PEERS = 5


@dataclass(frozen=True)
class Truth:
    """``struck`` are the requests that lost at least 5 % of their time, and 50 ms, to the fault; ``interval`` from
    the first to the last injected delay (Unix ns), empty without any.

    ``moved`` says by how much: ``ratio`` is each struck request's time a token over that of the unstruck ones nearest in
    length, ``slowdown`` its time over what is left of it without the injected delay.
    """

    seed: int
    cause: str | None
    fault: str
    struck: Sequence[str]
    interval: Sequence[int]
    moved: Mapping[str, float | int]

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def find_truth(plan: Plan, delays: Sequence[Delay], rows: Sequence[Mapping[str, Any]]) -> Truth:
    """Who of the client's ``rows`` was struck by the injected ``delays``."""
    ordinary = [row for row in rows if row["rid"] not in plan.others]
    lost = {row["rid"]: _lost(row, delays) for row in ordinary}
    struck = [row for row in ordinary if lost[row["rid"]] >= max(LEAST_NS, SHARE * (row["end_ns"] - row["start_ns"]))]
    names = {row["rid"] for row in struck}
    others = [row for row in ordinary if row["rid"] not in names and row["tok_ns"]]
    return Truth(
        seed=plan.seed,
        cause=plan.cause,
        fault=plan.fault,
        struck=sorted(names),
        interval=[min(delay.start for delay in delays), max(delay.stop for delay in delays)] if delays else [],
        moved=_moved(struck, others, [lost[row["rid"]] for row in struck]),
    )


def prefill_delays(
    prepared: Sequence[Mapping[str, Any]], updated: Sequence[Mapping[str, Any]], long_requests: frozenset[str]
) -> list[Delay]:
    """The steps that carried a part of a long prompt, each with its time beyond a step without one.

    ``prepared`` and ``updated`` are the recorder's ``cb.prepare`` and ``cb.update`` events, joined by their number.
    """
    ends = {event["n"]: event["t"] + event["dur"] for event in updated if "n" in event}
    spans = [(event, event["t"], ends[event["n"]]) for event in prepared if event.get("n") in ends]
    carries = [any(event["tokens"].get(rid, 0) > 1 for rid in long_requests) for event, _, _ in spans]
    usual = median([stop - start for (_, start, stop), long in zip(spans, carries, strict=True) if not long] or [0])
    return [
        Delay(start, stop, max(0, int(stop - start - usual)))
        for (_, start, stop), long in zip(spans, carries, strict=True)
        if long
    ]


def _lost(row: Mapping[str, Any], delays: Sequence[Delay]) -> int:
    """ns of ``delays`` that lie in the request's own time."""
    return sum(
        min(delay.delay, min(delay.stop, row["end_ns"]) - max(delay.start, row["start_ns"]))
        for delay in delays
        if delay.stop > row["start_ns"] and delay.start < row["end_ns"]
    )


def _moved(
    struck: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]], lost: Sequence[int]
) -> Mapping[str, float | int]:
    moved: dict[str, float | int] = {"struck": len(struck), "unstruck": len(others)}
    if not struck or not others:
        return moved
    ratios: list[float] = []
    for row in struck:
        peers = sorted(others, key=lambda other: abs(len(other["tok_ns"]) - len(row["tok_ns"])))[:PEERS]
        ratios.append(_pace(row) / median(map(_pace, peers)))
    return moved | {
        "ratio_median": round(median(ratios), 2),
        "ratio_least": round(min(ratios), 2),
        "ratio_most": round(max(ratios), 2),
        "lost_ms_median": round(median(lost) / 1e6, 1),
        "slowdown_median": round(median(_slowdown(row, ns) for row, ns in zip(struck, lost, strict=True)), 2),
    }


def _slowdown(row: Mapping[str, Any], lost: int) -> float:
    took = row["end_ns"] - row["start_ns"]
    return took / max(1, took - lost)


def _pace(row: Mapping[str, Any]) -> float:
    return (row["end_ns"] - row["start_ns"]) / max(1, len(row["tok_ns"]))
