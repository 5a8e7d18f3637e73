"""What one request went through, row by row: its own times and tokens, the steps that served it, what stood still, its log."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.report_findings import Finding
from teller_core.data.report_timeline import Kind
from teller_core.data.said import PHASES
from teller_core.data.steps import Steps
from teller_core.data.table import UNKNOWN, Int64, Mask
from teller_core.tell.layout import milliseconds, plain
from teller_core.tell.timeline.marks import Lane, Thing, lane
from teller_core.tell.timeline.still import pause_lanes, paused

TIMES: Sequence[tuple[str, str, Kind]] = (
    ("client_start", "sent", "before_server"),
    ("received", "received", "front_end"),
    ("queued", "queued", "queue"),
    ("scheduled", "scheduled", "own_prefill"),
    ("first_token", "first token", "decode"),
    ("last_token", "last token", "delivery"),
    ("finished", "finished", "delivery"),
    ("client_end", "answered", "delivery"),
)
"""The times of a request in their order, what each is called, and what the request is in from then on."""
STEP_KINDS: dict[str, Kind] = {
    "prefill": "prefill_step",
    "decode": "decode_step",
    "mixed": "mixed_step",
    "": "step",
}
STEP_ROWS = 2
"""Rows of steps that overlap: an engine may schedule one ahead."""
RANK_ROWS = 16
"""Ranks that are drawn: those of the positions before the others."""
MARKED = 100
"""Pauses that a finding marks, the longest: each mark stands alone, and there may be thousands."""
PAUSES_OF: Mapping[str, Sequence[str]] = {
    "host.gc_pause": ("gc",),
    "host.observer_overhead": ("profiler_stop",),
    "host.interpreter_lock": ("thread_lag", "loop_lag", "stop_signal"),
    "host.cpu_starvation": ("thread_lag",),
}
"""The pauses that a cause is about, where it blames no step."""
PHASE_OF: Mapping[str, Kind] = {
    "scheduler.queue_saturation": "queue",
    "scheduler.dp_imbalance": "queue",
    "scheduler.prefix_cache_miss": "own_prefill",
    "frontend.gateway_overhead": "before_server",
    "frontend.input_processing": "front_end",
    "scheduler.grammar": "front_end",
    "frontend.detok_stream": "delivery",
}
"""The phase that a cause is about, where it blames neither."""
LINES = 400
"""Log lines that are drawn: those of the request itself before those of its steps."""
QUIET = frozenset({"", "INFO", "DEBUG", "TRACE"})
"""Levels of which a line is drawn only where it speaks of the request."""


def request_lanes(capture: Capture, at: int, findings: Sequence[Finding], took: Int64) -> tuple[list[Lane], int, int]:
    """The rows of the request at position ``at`` with its beginning and its length in ns, UNKNOWN where nobody timed it.
    ``took`` int64 ns a step as in StepExpectations.
    """
    begin, end = int(capture.requests.begin()[at]), int(capture.requests.end()[at])
    if UNKNOWN in (begin, end) or end <= begin:
        return [], UNKNOWN, UNKNOWN
    mine = np.unique(capture.participation.step[capture.participation.request == at]).astype(np.int64)
    low, high = extents(capture.steps, took)
    inside = np.flatnonzero((low != UNKNOWN) & (low < end) & (high > begin)).astype(np.int64)
    others = np.setdiff1d(inside, mine)
    mine = mine[low[mine] != UNKNOWN]
    texts = _Texts(capture.steps, low, high)
    stages, pauses = list(_stages(capture, at)), list(paused(capture.pauses, begin, end))
    known = _Drawn({step: texts.of(step) for step in inside.tolist()}, stages, [one[1:] for one in pauses])
    lanes = [
        lane("what was found", "found", "", *_found(findings, known)),
        lane("request", "request", "its times", stages),
        lane("request", "request", "its tokens", list(_tokens(capture, at))),
        *_steps(texts, mine, "steps with it"),
        lane("engine", "engine", "for others only", [_for_others(known.steps[step]) for step in others.tolist()]),
        *pause_lanes(pauses),
        *_ranks(capture, mine),
        _log(capture, at, mine, findings),
    ]
    return [_within(one, begin, end) for one in lanes if len(one.start)], begin, end - begin


def extents(steps: Steps, took: Int64) -> tuple[Int64, Int64]:
    """int64 ns: when each step began and ended, UNKNOWN both where no time of it is known. Of a step with one time, the other
    is placed by how long it ``took``.
    """
    low, high = steps.begin(), steps.end()
    lasted = np.where(took > 0, took, 0)
    only_high = (low == UNKNOWN) & (high != UNKNOWN)
    only_low = (low != UNKNOWN) & (high == UNKNOWN)
    low = np.where(only_high, high - np.where(only_high, lasted, 0), low)
    high = np.where(only_low, low + np.where(only_low, lasted, 0), high)
    return low, np.maximum(low, high)


class _Drawn(NamedTuple):
    """What a finding may blame: the steps by position, the stages, the pauses with their kind."""

    steps: Mapping[int, Thing]
    stages: Sequence[Thing]
    pauses: Sequence[tuple[str, Thing]]


class _Texts:
    """How steps are told: their extent, kind and words."""

    def __init__(self, steps: Steps, low: Int64, high: Int64) -> None:
        self.low, self.high, self.phases = low, high, steps.phases()
        self.prompts, self.answers = steps.context_tokens, steps.generation_requests

    def of(self, step: int) -> Thing:
        low, lasted = int(self.low[step]), int(self.high[step] - self.low[step])
        known = [
            f"{int(column[step])} {what}"
            for column, what in ((self.prompts, "prompt tokens"), (self.answers, "requests decoding"))
            if int(column[step]) > 0
        ]
        words = ", ".join([f"step {step}", milliseconds(lasted / 1e6), *known])
        return low, lasted, STEP_KINDS[self.phases[step]], words


def _for_others(thing: Thing) -> Thing:
    return thing[0], thing[1], "others_step", thing[3]


def _found(findings: Sequence[Finding], rows: _Drawn) -> tuple[list[Thing], list[int]]:
    """What findings blame: their step, else the pauses or the phase that they are about."""
    things: list[Thing] = []
    numbers: list[int] = []
    for number, finding in enumerate(findings, 1):
        step = finding.step
        if step is not None and step in rows.steps:
            blamed = [rows.steps[step]]
        else:
            kinds = PAUSES_OF.get(finding.cause, ())
            blamed = sorted((one for kind, one in rows.pauses if kind in kinds), key=lambda one: -one[1])[:MARKED]
            blamed = blamed or [one for one in rows.stages if one[2] == PHASE_OF.get(finding.cause)]
        for low, lasted, _, _ in blamed:
            things.append((low, lasted, "found", f"{number}. {finding.title}"))
            numbers.append(number)
    return things, numbers


def _stages(capture: Capture, at: int) -> Iterator[Thing]:
    """From each time that is known to the next one behind it."""
    since: tuple[int, int] | None = None
    for order, (name, called, _) in enumerate(TIMES):
        time = int(getattr(capture.requests, name)[at])
        if time == UNKNOWN or (since is not None and time < since[0]):
            continue
        if since is not None and time > since[0]:
            lasted = time - since[0]
            _, before, kind = TIMES[since[1]]
            words = PHASES[kind] if order == since[1] + 1 else f"from {before} to {called}"
            yield since[0], lasted, kind, f"{words}, {milliseconds(lasted / 1e6)}"
        since = time, order


def _tokens(capture: Capture, at: int) -> Iterator[Thing]:
    times = capture.tokens.of(at) if len(capture.tokens.offset) > at + 1 else np.empty(0, dtype=np.int64)
    for k, time in enumerate(times.tolist()):
        gap = f", {milliseconds((time - int(times[k - 1])) / 1e6)} after the one before" if k else ""
        yield time, 0, "token", f"token {k + 1}{gap}"


def _steps(texts: _Texts, mine: Int64, label: str) -> list[Lane]:
    """The steps in as few rows as they need, those that overlap one below the other."""
    rows: list[list[Thing]] = [[] for _ in range(STEP_ROWS)]
    until = [UNKNOWN] * STEP_ROWS
    for step in mine[np.argsort(texts.low[mine], kind="stable")].tolist():
        thing = texts.of(step)
        free = next((row for row, end in enumerate(until) if end <= thing[0]), STEP_ROWS - 1)
        rows[free].append(thing)
        until[free] = thing[0] + thing[1]
    return [lane("engine", "engine", label if k == 0 else "", row) for k, row in enumerate(rows)]


def _ranks(capture: Capture, mine: Int64) -> Iterator[Lane]:
    """When each of several ranks ran its steps, and waited in collectives for another. Of a process that two recorders saw, the
    steps of the first, and the waits of both: one may tell of its operators, the other of its collectives.
    """
    work, collectives = capture.work, capture.collectives
    ours: Mask = np.isin(work.step, mine)
    positions: list[int] = np.unique(work.rank[ours]).tolist()
    processes: dict[tuple[str, int], list[int]] = {}
    for at in positions:  # where nobody knows its pid, which is 0 then, each is a process of its own
        processes.setdefault((capture.ranks[at].host, capture.ranks[at].pid or -at), []).append(at)
    if len(processes) < 2:
        return
    met: Mask = np.isin(collectives.step, mine) & (collectives.wait > 0)
    for traces in list(processes.values())[:RANK_ROWS]:
        rank = traces[0]
        rows = np.flatnonzero(ours & (work.rank == rank))
        ran: list[Thing] = [
            (int(work.start[i]), int(work.stop[i] - work.start[i]), "rank", f"step {int(work.step[i])}") for i in rows
        ]
        yield lane("ranks", "engine", f"rank {capture.ranks[rank].rank}", ran)
        waits = np.flatnonzero(met & np.isin(collectives.rank, traces))
        waited: list[Thing] = [
            (int(collectives.start[i]), int(collectives.wait[i]), "wait", _waited(capture, i)) for i in waits.tolist()
        ]
        yield lane("ranks", "communication", "its waits", waited)


def _waited(capture: Capture, at: int) -> str:
    late = int(capture.collectives.late[at])
    whom = f"for rank {capture.ranks[late].rank}" if late >= 0 else "for another rank"
    return f"waited {milliseconds(int(capture.collectives.wait[at]) / 1e6)} {whom}"


def _log(capture: Capture, at: int, mine: Int64, findings: Sequence[Finding]) -> Lane:
    """The lines that speak of the request, those that a finding names, and the loud ones of its steps."""
    lines = capture.lines
    named = [(item.log_line, k) for k, one in enumerate(findings, 1) for item in one.evidence if item.log_line]
    blamed = {row: k for place, k in reversed(named) for row in _rows_at(capture, place)}
    beside = np.flatnonzero(np.isin(lines.step, mine) & (lines.step >= 0)).tolist()
    loud = [i for i in beside if lines.level[i].upper() not in QUIET]
    shown = list(dict.fromkeys([*blamed, *np.flatnonzero(lines.request == at).tolist(), *loud]))[:LINES]
    shown.sort(key=lambda i: int(lines.time[i]))
    kinds: list[Kind] = ["log"] * len(shown)
    return Lane(
        "log",
        "log",
        "log lines",
        lines.time[shown].astype(np.int64),
        np.zeros(len(shown), dtype=np.int64),
        kinds,
        [plain(f"{lines.level[i]} {lines.process[i]}".strip(), 60) or "a line" for i in shown],
        np.array([blamed.get(i, 0) for i in shown], dtype=np.int64),
        [plain(lines.untrusted_text[i]) for i in shown],
    )


def _rows_at(capture: Capture, place: str) -> list[int]:
    """The line that ``FILE:LINE`` names."""
    name, _, number = place.rpartition(":")
    files = [k for k, read in enumerate(capture.files) if read.name == name]
    if not number.isdecimal() or len(number) > 9:
        return []
    here: Mask = np.isin(capture.lines.file, files) & (capture.lines.number == int(number))
    return np.flatnonzero(here).tolist()


def _within(one: Lane, begin: int, end: int) -> Lane:
    """What of the row lies between ``begin`` and ``end``, cut there."""
    stop = one.start + one.dur
    kept: list[int] = np.flatnonzero((stop >= begin) & (one.start <= end)).tolist()
    low, high = np.maximum(one.start[kept], begin), np.minimum(stop[kept], end)
    return one._replace(
        start=low,
        dur=high - low,
        kind=[one.kind[i] for i in kept],
        text=[one.text[i] for i in kept],
        finding=one.finding[kept],
        said=[one.said[i] for i in kept] if one.said else [],
    )
