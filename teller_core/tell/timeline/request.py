"""What one request went through, row by row: its own times and tokens, the steps that served it, what stood still, its log."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture, processes
from teller_core.data.report_findings import Finding
from teller_core.data.report_timeline import Kind
from teller_core.data.said import PHASES
from teller_core.data.steps import Steps, StepWork
from teller_core.data.table import UNKNOWN, Int64, Mask
from teller_core.tell.layout import many, milliseconds, plain
from teller_core.tell.timeline.marks import Lane, Thing, Told, lane, long_lane, not_drawn
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


class RequestRows(NamedTuple):
    """The rows of a request, its beginning and its length in ns (UNKNOWN where nobody timed it), and in words what has no row."""

    lanes: list[Lane]
    begin: int
    length: int
    left_out: str


def request_lanes(capture: Capture, at: int, findings: Sequence[Finding], took: Int64) -> RequestRows:
    """The rows of the request at position ``at``. ``took`` int64 ns a step as in StepExpectations."""
    begin, end = int(capture.requests.begin()[at]), int(capture.requests.end()[at])
    if UNKNOWN in (begin, end) or end <= begin:
        return RequestRows([], UNKNOWN, UNKNOWN, "")
    mine = np.unique(capture.participation.step[capture.participation.request == at]).astype(np.int64)
    low, high = extents(capture.steps, took)
    inside = np.flatnonzero((low != UNKNOWN) & (low < end) & (high > begin)).astype(np.int64)
    others = np.setdiff1d(inside, mine)
    mine = mine[low[mine] != UNKNOWN]
    texts = _Texts(capture.steps, low, high)
    stages, pauses = list(_stages(capture, at)), list(paused(capture.pauses, begin, end))
    known = _Drawn({step: texts.of(step) for step in inside.tolist()}, stages, [one[1:] for one in pauses])
    things, numbers, unmarked = _found(findings, known)
    still, pauses_left = pause_lanes(pauses)
    ranks, ranks_left = _ranks(capture, mine)
    log, lines_left = _log(capture, at, mine, findings, (begin, end))
    lanes = [
        lane("what was found", "found", "", things, numbers),
        lane("request", "request", "its times", stages),
        lane("request", "request", "its tokens", list(_tokens(capture, at))),
        *_steps(texts, mine, "steps with it"),
        lane("engine", "engine", "for others only", [_for_others(known.steps[step]) for step in others.tolist()]),
        *still,
        *ranks,
        log,
    ]
    left_out = [
        not_drawn((ranks_left, "rank"), (pauses_left, "pause"), (lines_left, "log line")),
        f"not marked as blamed: {many(unmarked, 'pause')}" if unmarked else "",
    ]
    drawn = [_within(one, begin, end) for one in lanes if len(one.start)]
    return RequestRows(drawn, begin, end - begin, "; ".join(filter(None, left_out)))


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


def _found(findings: Sequence[Finding], rows: _Drawn) -> tuple[list[Thing], list[int], int]:
    """What findings blame, and the number of each: their step, else the pauses or the phase that they are about; and how many
    pauses they blame that are not marked.
    """
    things: list[Thing] = []
    numbers: list[int] = []
    unmarked = 0
    for number, finding in enumerate(findings, 1):
        step = finding.step
        if step is not None and step in rows.steps:
            blamed = [rows.steps[step]]
        else:
            kinds = PAUSES_OF.get(finding.cause, ())
            longest = sorted((one for kind, one in rows.pauses if kind in kinds), key=lambda one: -one[1])
            unmarked += len(longest[MARKED:])
            blamed = longest[:MARKED] or [one for one in rows.stages if one[2] == PHASE_OF.get(finding.cause)]
        for low, lasted, _, _ in blamed:
            things.append((low, lasted, "found", f"{number}. {finding.title}"))
            numbers.append(number)
    return things, numbers, unmarked


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


def _ranks(capture: Capture, mine: Int64) -> tuple[list[Lane], int]:
    """When each of several ranks ran its steps, and waited in collectives for another; and how many ranks have no row. Of a
    process that two recorders saw, the steps of the first, and the waits of both: one may tell of its operators, the other of
    its collectives. There may be millions of waits: no words are made of them here.
    """
    work, collectives = capture.work, capture.collectives
    ours: Mask = np.isin(work.step, mine)
    process = processes(capture.ranks)
    traces: dict[int, list[int]] = {}
    for at in np.unique(work.rank[ours]).tolist():
        traces.setdefault(int(process[at]), []).append(at)
    if len(traces) < 2:
        return [], 0
    met: Mask = np.isin(collectives.step, mine) & (collectives.wait > 0)
    lanes: list[Lane] = []
    for own in list(traces.values())[:RANK_ROWS]:
        ran = np.flatnonzero(ours & (work.rank == own[0]))
        waits = np.flatnonzero(met & np.isin(collectives.rank, own))
        lanes += [_ran(work, ran, f"rank {capture.ranks[own[0]].rank}"), _waits(capture, waits)]
    return lanes, len(list(traces)[RANK_ROWS:])


def _ran(work: StepWork, rows: Int64, label: str) -> Lane:
    time = work.start[rows], work.stop[rows] - work.start[rows]
    return long_lane("ranks", "engine", label, time, kind="rank", of=lambda at: f"step {int(work.step[rows[at]])}")


def _waits(capture: Capture, rows: Int64) -> Lane:
    time = capture.collectives.start[rows], capture.collectives.wait[rows]
    return long_lane(
        "ranks", "communication", "its waits", time, kind="wait", of=lambda at: _waited(capture, int(rows[at]))
    )


def _waited(capture: Capture, at: int) -> str:
    late = int(capture.collectives.late[at])
    whom = f"for rank {capture.ranks[late].rank}" if late >= 0 else "for another rank"
    return f"waited {milliseconds(int(capture.collectives.wait[at]) / 1e6)} {whom}"


def _log(
    capture: Capture, at: int, mine: Int64, findings: Sequence[Finding], time: tuple[int, int]
) -> tuple[Lane, int]:
    """The lines that a finding names, those that speak of the request, and the loud ones of its steps, as far as they are of its
    ``time``; and how many of them have no mark.
    """
    lines = capture.lines
    named = [(item.log_line, k) for k, one in enumerate(findings, 1) for item in one.evidence if item.log_line]
    blamed = {row: k for place, k in reversed(named) for row in _rows_at(capture, place)}
    beside = np.flatnonzero(np.isin(lines.step, mine) & (lines.step >= 0)).tolist()
    loud = [i for i in beside if lines.level[i].upper() not in QUIET]
    those = np.array([*blamed, *np.flatnonzero(lines.request == at).tolist(), *loud], dtype=np.int64)
    those = those[(lines.time[those] >= time[0]) & (lines.time[those] <= time[1])]
    every: list[int] = list(dict.fromkeys(those.tolist()))
    shown = sorted(every[:LINES], key=lambda i: int(lines.time[i]))
    kinds: list[Kind] = ["log"] * len(shown)
    row = Lane(
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
    return row, len(every[LINES:])


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
    kept = np.flatnonzero((stop >= begin) & (one.start <= end))
    low, high = np.maximum(one.start[kept], begin), np.minimum(stop[kept], end)
    return one._replace(
        start=low,
        dur=high - low,
        kind=Told(one.kind.__getitem__, kept),
        text=Told(one.text.__getitem__, kept),
        finding=one.finding[kept],
        said=Told(one.said.__getitem__, kept) if one.said else (),
    )
