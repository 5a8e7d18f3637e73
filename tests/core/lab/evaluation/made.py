"""Labelled episodes of simulated services: lives of their own noise, in which something known struck some windows."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.steps import Lines
from teller_core.data.table import UNKNOWN
from teller_core.lab.evaluation.episode import HEALTHY, NOT_JUDGED, Episode, Labels
from teller_core.lab.evaluation.seen import blinded
from tests.core.judge.service import Work, service
from tests.core.judge.serving import MS, ZERO, Ask, Trouble, serve

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CAUSES = {"gc": "host.gc_pause", "starved": "host.cpu_starvation", "disk": "host.io_stall"}
"""By the simulated trouble."""
WINDOW = 1500
"""ms; every fourth is struck."""
WINDOWS = 8


@cache
def episode(life: int, kind: str, extra: float = 60.0, *, d_prime: float = 8.0, hard: bool = False) -> Episode:
    """A life's windows of ``WINDOW`` ms: in two of them every third step takes ``extra`` ms more for the reason ``kind``."""
    first = list(CAUSES).index(kind) * WINDOWS  # one block of the life behind the other
    chance = np.random.default_rng(life * 100 + first)
    asks = [
        Ask(window * WINDOW + 150.0 * at, prompt=int(chance.integers(30, 90)), output=int(chance.integers(12, 20)))
        for window in range(WINDOWS)
        for at in range(6)
    ]
    struck = [window for window in range(WINDOWS) if window % 4 == 1 + life % 3]
    troubles = [Trouble(kind, w * WINDOW, (w + 1) * WINDOW, extra, every=3) for w in struck]
    capture = moved(serve(asks, troubles, tier=3)[0], first * WINDOW * MS)
    struck = [first + window for window in struck]
    return Episode(
        f"life-{life}", blinded(with_lines(capture, struck, kind)), _labels(capture, struck, kind, d_prime, hard)
    )


def moved(capture: Capture, by: int) -> Capture:
    """``capture`` so many ns later."""

    def later(table: "DataclassInstance", *names: str) -> Any:
        columns = {name: getattr(table, name) for name in names}
        return replace(table, **{name: np.where(c != UNKNOWN, c + by, UNKNOWN) for name, c in columns.items()})

    times = ("client_start", "received", "queued", "scheduled", "first_token", "last_token", "finished")
    return replace(
        capture,
        steps=later(capture.steps, "scheduled", "launched", "finished", "delivered"),
        work=later(capture.work, "start", "stop"),
        requests=later(capture.requests, *times, "client_first", "client_end", "itl_max_at"),
        tokens=later(capture.tokens, "time"),
        pauses=later(capture.pauses, "start"),
        samples=later(capture.samples, "start", "stop"),
    )


def side(lives: Sequence[int]) -> list[Episode]:
    """For each life one episode a cause."""
    return [episode(life, kind) for life in lives for kind in CAUSES]


def with_lines(capture: Capture, struck: Sequence[int], kind: str) -> Capture:
    """A log line every half second, which in struck windows says more."""
    begin = int(capture.requests.client_start.min())
    times = np.arange(begin, begin + WINDOW * WINDOWS * MS, 500 * MS)
    hit = [int((time - ZERO) // (WINDOW * MS)) in struck for time in times.tolist()]
    texts = [f"{kind} trouble after {at} ms" if each else f"all well {at}" for at, each in enumerate(hit)]
    count, zeros, none = len(times), np.zeros(len(times), np.int64), np.full(len(times), -1, np.int32)
    lines = Lines(
        times, zeros, zeros, ["INFO"] * count, [""] * count, ["{}"] * count, texts, ["p"] * count, *[none] * 4
    )
    return replace(capture, lines=lines)


def _labels(capture: Capture, struck: Sequence[int], kind: str, d_prime: float, hard: bool) -> Labels:
    window = ((capture.requests.client_start - ZERO) // (WINDOW * MS)).astype(np.int32)
    step_window = ((capture.steps.launched - ZERO) // (WINDOW * MS)).astype(np.int32)
    cause = "" if hard else CAUSES[kind]
    inside = np.isin(step_window, struck)
    usual = np.median(capture.steps.finished - capture.steps.launched)
    slow = capture.steps.finished - capture.steps.launched > usual + 20 * MS
    step = np.where(inside, np.where(slow & (not hard), 1, 0 if hard else -1), 0).astype(np.int8)
    request = [(cause if each in struck else HEALTHY) for each in window.tolist()]
    if not hard:  # what a struck window leaves behind is in no window of its own
        late = capture.requests.client_end >= ZERO + (window.astype(np.int64) + 1) * WINDOW * MS
        request = [NOT_JUDGED if after else each for each, after in zip(request, late.tolist(), strict=True)]
    return Labels(
        request=request,
        hard=np.array([hard and each in struck for each in window.tolist()]),
        request_window=window,
        step=step,
        step_window=step_window,
        fault=kind,
        cause=cause,
        severity="strong",
        d_prime=d_prime,
        healthy_ns=(WINDOWS - len(struck)) * WINDOW * MS,
    )


@cache
def profiled(life: int, slow: str = "aten::sdpa", ranks: int = 1) -> Episode:
    """Profiled steps without requests; in every sixth one operator is slow."""
    chance = np.random.default_rng(life)
    works = [
        Work(
            context=0,
            generation=int(chance.integers(6, 10)),
            kv=int(chance.integers(700, 900)),
            slow={slow: 12.0} if at % 6 == 3 else {},
        )
        for at in range(60)
    ]
    capture = service(works, seed=life, ranks=ranks)
    step = np.array([int(at % 6 == 3) for at in range(60)], dtype=np.int8)
    labels = Labels(
        request=[],
        hard=np.empty(0, np.bool_),
        request_window=np.empty(0, np.int32),
        step=step,
        step_window=np.arange(60, dtype=np.int32) // 6,
        operators=dict.fromkeys(np.flatnonzero(step).tolist(), (slow,)),
        fault="slow_operator",
        cause="host.slow_operator",
        severity="strong",
        d_prime=9.0,
        healthy_ns=10**9,
    )
    return Episode(f"profiled-{life}", blinded(capture), labels)
