"""Evidence: what a claim stands on, rounded as it will be read, and clues: a cause with its evidence and its cost."""

from dataclasses import dataclass

from teller_core.data.report import EvidenceItem, Scope, View
from teller_core.data.table import UNKNOWN
from teller_core.judge.scene import Scene

RECORDED = 0.95
"""Confidence of what was recorded with its own begin and end, or by the engine's own decision."""
COUNTED = 0.85
"""Of what follows from counts of tokens or calls."""
SAMPLED = 0.8
"""Of what follows from counters sampled around the time."""
HINTED = 0.6
"""Of what a log line or the absence of anything else suggests."""


@dataclass(frozen=True)
class Clue:
    """A cause that the evidence speaks for. ``ns``: the time it cost this request; ``confidence`` before coverage is weighed."""

    cause: str
    ns: int
    confidence: float
    evidence: list[EvidenceItem]
    step: int | None = None
    rank: int | None = None
    view: View = "vertical"
    operator: str | None = None
    layer: str = "engine"
    singled: bool = False
    """It struck this request and spared those beside it: no matter whether the work predicts the time."""
    decided: bool = False
    """The engine recorded it of this very request: it is no noise, and told whether the request is slow or not."""
    profiled: bool = False
    """A profile shows it: it is not told from counters alone."""


def rounded(value: float) -> float:
    """A number as people read it: two decimals below 10, one below 1000, none above."""
    return round(value, 2) if abs(value) < 10 else round(value, 1) if abs(value) < 1000 else float(round(value))


def ms(ns: float) -> float:
    """Milliseconds, rounded as they will be read."""
    return rounded(ns / 1e6)


def cost(
    name: str, ns: int, normal: int | None = None, *, kind: str = "count", scope: Scope = "this_request"
) -> EvidenceItem:
    """A time that something cost this request, in ms."""
    return EvidenceItem(
        kind=kind, scope=scope, name=name, value=ms(ns), normal=None if normal is None else ms(normal), unit="ms"
    )


def count(
    name: str,
    value: float,
    normal: float | None = None,
    *,
    unit: str,
    kind: str = "count",
    scope: Scope = "this_request",
) -> EvidenceItem:
    """A number of something."""
    return EvidenceItem(
        kind=kind,
        scope=scope,
        name=name,
        value=rounded(value),
        normal=None if normal is None else rounded(normal),
        unit=unit,
    )


def step_item(step: int, name: str, took: int, normal: int, *, own: bool = True) -> EvidenceItem:
    """One step that took longer than its work asks for."""
    known = normal != UNKNOWN
    return EvidenceItem(
        kind="step",
        scope="this_request" if own else "its_steps",
        step=step,
        name=name,
        value=ms(took),
        normal=ms(normal) if known else None,
        unit="ms",
    )


def line_item(scene: Scene, row: int, name: str) -> EvidenceItem:
    """One log line, with its text as untrusted."""
    lines = scene.case.capture.lines
    mine = int(lines.request[row]) == scene.life.request
    return EvidenceItem(
        kind="log_line",
        scope="this_request" if mine else "capture",
        log_line=f"{scene.case.capture.files[int(lines.file[row])].name}:{int(lines.number[row])}",
        name=name,
        untrusted_text=lines.untrusted_text[row][:300],
    )
