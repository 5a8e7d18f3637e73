"""``stats-PID-NNNN.jsonl``: what vLLM counted of every step and every finished request, as our stat logger keeps it.

``P`` begins a segment, ``S`` is a step, ``F`` a finished request; ``C`` what the logger itself took, ``M`` fields that this
vLLM does not have. Times are the engine's float seconds. ``queued``, ``prefill``, ``decode`` and ``inference`` lie between
moments on the engine's clock; ``e2e`` and ``first`` (of the requests whose first token came out of a step) count on the API
server's clock from a request's arrival. Two rows of one request have that arrival in common: so the first token is joined
to the request without an id, which vLLM does not give there.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from teller_core.data.records import Interval, Iteration, Metric, Process, RequestSpan
from teller_core.ingest.decimals import NS_PER_MS, NS_PER_S, count, few, scaled, whole
from teller_core.ingest.files.file_names import pid_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_list, as_object, first_object, objects, text_of
from teller_core.ingest.recorder.zone import keep_zone

NAME = "engine_stats"
PRODUCER = "vllm.stats"
EXACT_NS = 1_000
"""Sums of float64 seconds since 1970, which are 238 ns apart, may miss by this much."""
GAUGE_EVERY_NS = 100_000_000
"""Gauges are kept ten times a second, as often as other counters are read."""
ENGINE = (
    ("queued", "queued", "scheduled"),
    ("prefill", "scheduled", "engine_first"),
    ("decode", "engine_first", "engine_last"),
)
"""Durations on the engine's clock: (name, from, until)."""
GAUGES = (("running", "running"), ("waiting", "waiting"), ("kv", "kv_usage"))
DEFERRED = "deferred"
COUNTERS = (("preempted", "preemptions"), ("queries", "prefix_queries"), ("hits", "prefix_hits"))
TOKENS = (("prompt", "prompt_tokens"), ("output", "completion_tokens"), ("cached", "cached_tokens"))
FAILED = frozenset({"abort", "error"})

Row = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Whether the first line is the beginning of a segment."""
    row = first_object(head)
    return row is not None and row.get("k") == "P" and row.get("name") == NAME


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Spans of requests, readings, and, where vLLM was asked to count its iterations, one of each step.

    Problems: ``bad_json``, ``bad_step``, ``bad_request``, ``unknown_event``, ``first_tokens_ambiguous`` (two requests that
    arrived within a microsecond), ``untested_engine_version``, and what the logger counted itself: ``recorder_lost``,
    ``recorder_error``, ``segments_dropped`` (segments), ``missing_fields``. Other: ``process``, ``cost``,
    ``step_without_counts``.
    """
    found = Found(engine="vllm")
    reading = _Reading(found, Process(place.host, pid_of(path) or 0, "frontend"))
    for row in objects(path):
        found.events += 1
        take = None if row is None else _READERS.get(text_of(row.get("k"), 1))
        if row is None or take is None:
            found.problems["bad_json" if row is None else "unknown_event"] += 1
        else:
            take(reading, row)
    found.processes.append(reading.process)
    found.spans += reading.spans()
    return found


class _Reading:
    """What is known while a file is read."""

    def __init__(self, found: Found, process: Process) -> None:
        self.found = found
        self.process = process
        self.firsts: dict[int, list[tuple[int, int]]] = {}
        """(arrival, time to the first token) of first tokens, by the arrival in whole ms."""
        self.finished: list[tuple[int, int, Row]] = []
        """(end, duration, row) of finished requests."""
        self.grown: Counter[tuple[int, str]] = Counter()
        self.shown: dict[int, int] = {}
        self.deferred: dict[int, int] = {}

    def head(self, row: Row) -> None:
        self.found.other["process"] += 1
        self.process = self.process._replace(pid=self.process.pid or count(row.get("pid")) or 0)
        keep_zone(self.found, self.process, row)
        if row.get("tested") is False:
            self.found.problems["untested_engine_version"] += 1

    def missing(self, row: Row) -> None:
        self.found.problems["missing_fields"] += 1

    def cost(self, row: Row) -> None:
        """The logger's own counters, which only grow: the last row holds all that went wrong."""
        self.found.other["cost"] += 1
        told = {
            "recorder_lost": count(row.get("lost")) or 0,
            "recorder_error": sum(count(value) or 0 for value in as_object(row.get("errors")).values()),
            "segments_dropped": count(row.get("dropped")) or 0,
        }
        self.found.problems.update({name: many - self.found.problems[name] for name, many in told.items() if many})

    def step(self, row: Row) -> None:
        engine, written = count(row.get("e")), whole(row.get("t"))
        if engine is None or written is None:
            self.found.problems["bad_step"] += 1
            return
        at = scaled(row.get("at"), NS_PER_S) or written
        for value in as_list(row.get("first")):
            since = scaled(value, NS_PER_S)
            if since is not None and since >= 0:
                self.firsts.setdefault((at - since) // NS_PER_MS, []).append((at - since, since))
        self._readings(row, engine, at)
        if "step" not in row or row.get("dummy") is True:
            self.found.other["step_without_counts"] += 1
        elif (iteration := self._iteration(row, engine, at)) is None:
            self.found.problems["bad_step"] += 1
        else:
            self.found.kept += 1
            self.found.iterations.append(iteration)

    def _iteration(self, row: Row, engine: int, at: int) -> Iteration | None:
        names = ("context", "context_tokens", "generation", "generation_tokens")
        counts = [number for name in names if (number := few(row.get(name))) is not None]
        if len(counts) < len(names):
            return None
        kv = row.get("kv")
        return Iteration(
            self.process,
            at,
            EXACT_NS,
            engine,
            count(row.get("step")),
            *counts,
            elapsed=scaled(row.get("elapsed_ms"), NS_PER_MS),
            kv_usage=_share(kv),
        )

    def _readings(self, row: Row, engine: int, at: int) -> None:
        for name, means in COUNTERS:
            self.grown[engine, means] += few(row.get(name)) or 0
        self._deferred(row, engine, at)
        if "running" not in row or at - self.shown.get(engine, at - GAUGE_EVERY_NS) < GAUGE_EVERY_NS:
            return
        self.shown[engine] = at
        for name, means in GAUGES:
            value = _share(row.get(name)) if name == "kv" else few(row.get(name))
            if value is not None:
                self._reading(at, means, "gauge", float(value), engine)
        for _, means in COUNTERS:
            self._reading(at, means, "counter", float(self.grown[engine, means]), engine)

    def _deferred(self, row: Row, engine: int, at: int) -> None:
        """How many requests were passed over because they could not run yet: kept where it changes, it is seldom more than 0."""
        many = few(row.get("deferred"))
        if many is not None and many != self.deferred.get(engine, 0):
            self.deferred[engine] = many
            self._reading(at, DEFERRED, "gauge", float(many), engine)

    def _reading(self, at: int, means: str, kind: str, value: float, engine: int) -> None:
        labels = {"engine": str(engine)}
        self.found.metrics.append(
            Metric(at, f"{PRODUCER}.{means}", labels, value, means, kind, 1.0, f"engine={engine}")
        )

    def request(self, row: Row) -> None:
        end, took = scaled(row.get("at"), NS_PER_S), scaled(row.get("e2e"), NS_PER_S)
        if end is None or took is None or took < 0:
            self.found.problems["bad_request"] += 1
            return
        self.found.kept += 1
        self.finished.append((end, took, row))

    def spans(self) -> list[RequestSpan]:
        """The finished requests, each with its first token where no other arrived in the same microsecond."""
        arrivals: Counter[int] = Counter((end - took) // EXACT_NS for end, took, _ in self.finished)
        return [self._span(end, took, row, arrivals) for end, took, row in self.finished]

    def _span(self, end: int, took: int, row: Row, arrivals: Counter[int]) -> RequestSpan:
        start = end - took
        near = [
            first for ms in range(start // NS_PER_MS - 1, start // NS_PER_MS + 2) for first in self.firsts.get(ms, ())
        ]
        fit = [since for arrival, since in near if abs(arrival - start) <= EXACT_NS and since <= took + EXACT_NS]
        twins = sum(arrivals[start // EXACT_NS + k] for k in (-1, 0, 1))
        intervals = [Interval("received", "finished", took, "front_end")]
        if len(fit) == 1 and twins == 1:
            intervals.append(Interval("received", "first_token", min(fit[0], took), "front_end"))
        elif fit:
            self.found.problems["first_tokens_ambiguous"] += 1
        engine = {name: scaled(row.get(name), NS_PER_S) for name, _, _ in ENGINE}
        intervals += [
            Interval(begin, until, ns, "engine")
            for name, begin, until in ENGINE
            if (ns := engine[name]) is not None and ns >= 0
        ]
        queued = engine["queued"]
        tokens = {f"gen_ai.usage.{kept}": few(row.get(name)) for name, kept in TOKENS} | {
            "preemptions": few(row.get("preempted"))
        }
        return RequestSpan(
            name="finished_request",
            request=text_of(row.get("rid")),
            trace_id="",
            start=start,
            end=end,
            durations={"vllm.queue_time": queued} if queued is not None and queued >= 0 else {},
            tokens={name: number for name, number in tokens.items() if number is not None},
            producer=PRODUCER,
            error=text_of(row.get("reason"), 32) in FAILED,
            resolution=1,
            intervals=intervals,
        )


def _share(value: object) -> float | None:
    """A share of 1; None where it is none."""
    billionths = scaled(value, NS_PER_S)
    return None if billionths is None or not 0 <= billionths <= NS_PER_S else billionths / NS_PER_S


_READERS: dict[str, Callable[[_Reading, Row], None]] = {
    "P": _Reading.head,
    "S": _Reading.step,
    "F": _Reading.request,
    "C": _Reading.cost,
    "M": _Reading.missing,
}
