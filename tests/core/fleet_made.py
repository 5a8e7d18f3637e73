"""Captures of a fleet in which it is known what each request took, and a plain computation of what ``fleet`` should say."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from teller_core.data.capture import Rank
from teller_core.data.parts import PHASES
from teller_core.data.report import Part
from teller_core.data.steps import Lines
from teller_core.store.store import Store
from tests.core.store.made import answer_of, assessment_of, capture_of, filled, report_of

MS, SECOND, MINUTE = 1_000_000, 1_000_000_000, 60_000_000_000
NOON = 1_796_040_000_000_000_000
"""Unix ns of 2026-11-30 12:00:00."""

Ns = npt.NDArray[np.int64]


def keep(
    store: Store,
    identity: str,
    phases: dict[str, Ns],
    *,
    began: int = NOON,
    cause: Sequence[str] = (),
    rank: Sequence[int] = (),
    model: str = "tiny",
    host: str = "host",
    **requests: Any,
) -> None:
    """Store a capture of requests, one a second from ``began`` on, whose time went as ``phases`` (ns) say; what these leave out
    has no source. ``cause``, ``rank`` a request, empty for none.
    """
    size = len(next(iter(phases.values())))
    capture = capture_of(identity, requests=size, steps=1)
    lines = filled(
        Lines, 1, rule=["vllm.version"], fields=[f'{{"version": "1", "model": "{model}"}}'], untrusted_text=[""]
    )
    table = replace(capture.requests, client_start=began + np.arange(size) * SECOND, **requests)
    capture = replace(
        capture, name=f"capture {identity}", requests=table, lines=lines, ranks=[Rank(0, host, 7, "worker", None, 0)]
    )
    plain = answer_of(identity, 1)
    answers = [
        plain.model_copy(
            update={
                "request": at + 1,
                "phases": [
                    Part(part=one, ns=int(phases[one][at]) if one in phases else None, source="") for one in PHASES
                ],
                "verdict": "cause" if cause and cause[at] else "typical_here",
                "findings": [
                    plain.findings[0].model_copy(update={"cause": cause[at], "rank": rank[at] if rank else None})
                ]
                if cause and cause[at]
                else [],
            }
        )
        for at in range(size)
    ]
    values = [sum(int(ns[at]) for ns in phases.values()) for at in range(size)]
    store.save(capture, assessment_of({"e2e": values}), answers, report_of(capture))


def drawn(seed: int, size: int, **factors: float) -> dict[str, Ns]:
    """Phases of ``size`` requests, log-normal, those in ``factors`` so many times as long."""
    random = np.random.default_rng(seed)
    usual = {"queue": 50, "own_prefill": 80, "decode": 800, "delivery": 5, "unexplained": 3}
    return {
        phase: np.round(random.lognormal(0, 0.4, size) * ms * factors.get(phase, 1.0) * MS).astype(np.int64)
        for phase, ms in usual.items()
    }


def together(parts: Sequence[dict[str, Ns]]) -> dict[str, Ns]:
    """The phases of several captures behind each other."""
    return {phase: np.concatenate([one[phase] for one in parts]) for phase in parts[0]}


def cohorts(phases: dict[str, Ns], quantile: float) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which requests are the tail and which the middle, by sorting them."""
    value = np.array(list(phases.values())).sum(axis=0)
    ordered = np.sort(value)
    low, high, tail = (ordered[int(np.ceil(round(share * len(value), 9))) - 1] for share in (0.4, 0.6, quantile))
    return value >= tail, (value >= low) & (value <= high)


def mean(values: Ns) -> Fraction:
    """The mean, exactly."""
    return Fraction(sum(int(one) for one in values), len(values))
