"""``host-PID.jsonl``: what the recorder saw inside one process. Times are Unix nanoseconds.

``P`` the process with clock anchors; ``X`` a span: the scheduler's decisions, the worker's executions, requests handed
over, and calls that become rows of a trace; ``G`` a garbage collection; ``L`` a thread, or an event loop, that ran late
(its time is when it ran again); ``I`` an instant: what happened to a request, the profiler's stall, what the recorder
itself cost; ``N``, ``M`` NVTX ranges and marks; ``K`` a collective. A process may have several files, ``host-PID-NNNN.jsonl``,
the oldest of which are gone; each begins with ``P``.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from teller_core.data.records import Pause, Process, RequestFact, Sample, Window
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Lane, Layer, Origin
from teller_core.ingest.decimals import count, few, whole
from teller_core.ingest.files.file_names import pid_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import first_object, objects, text_of
from teller_core.ingest.recorder.host_collectives import collective
from teller_core.ingest.recorder.host_steps import decision, execution, ids, outcome, with_sampling
from teller_core.ingest.recorder.zone import keep_zone
from teller_core.ingest.row_arrays import RowArrays

NAME = "host_records"
KINDS = tuple("PXGLINMK")
INSTANTS = {
    "request.received": "received",
    "request.first_token": "first_token",
    "request.queued": "queued",
    "request.finished": "finished",
    "request.preempted": "preempted",
    "request.ended": "ended",
    "request.aborted": "aborted",
}
"""Instants about a request, and the kind of fact each is."""
COUNTS = {"prompt": "prompt_tokens", "tokens": "output_tokens", "cached": "cached_tokens"}
"""Numbers beside them that are facts of their own."""
LOST = ("profile_lost", "profile_refused")
"""Windows of a profiler that left no trace: one each."""
LIBRARIES = {
    "torch": "recorder_collectives_disabled",
    "nvtx": "recorder_ranges_disabled",
    "uvicorn": "recorder_end_disabled",
}
"""Libraries with hooks, and as what it counts that these were off. What was off of an engine counts where no other one was on."""
NOTHING_TO_RECORD = "no steps run here"
"""Why a process refuses a window that would hold nothing: no loss."""
PROFILER = ("vllm.profiler_start", "vllm.profiler_stop")
"""Spans in which the engine starts or stops its own profiler, and computes nothing."""

Row = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Whether the first line is an event of the recorder."""
    row = first_object(head)
    return row is not None and row.get("ph") in KINDS and whole(row.get("t")) is not None and "tid" in row


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Decisions, executions, requests, pauses and a trace of everything else that took time.

    Problems: ``bad_json``, ``bad_event`` (no time, thread or name), ``unknown_event`` (a ``ph`` of another version),
    ``bad_token_count``, ``profile_lost``, ``profile_refused``, hooks that were off (``recorder_hooks_disabled``, and those of
    LIBRARIES), and those that the recorder counted itself (``recorder_hook_error``).
    """
    found, rows = Found(), RowArrays()
    coming: dict[str, int] = {}
    hooks: Counter[str] = Counter()
    process = Process(place.host, pid_of(path) or 0)
    for row in objects(path):
        found.events += 1
        if row is None:
            found.problems["bad_json"] += 1
            continue
        kind, start, thread = row.get("ph"), whole(row.get("t")), count(row.get("tid"))
        if start is None or thread is None or not isinstance(row.get("name"), str):
            found.problems["bad_event"] += 1
        elif kind == "P":
            process = process._replace(pid=process.pid or thread)
            keep_zone(found, process, row)
            found.other["process"] += 1
        elif kind == "I" and row["name"] in ("request.arrived", "request.added"):
            _coming(found, process, row, coming)
        elif kind == "I" and row["name"] in ("hooks", "hooks_disabled"):
            library = LIBRARIES.get(text_of(row.get("package"))) if row["name"] == "hooks_disabled" else None
            hooks[library or row["name"]] += 1
        elif isinstance(kind, str) and kind in _READERS:
            _READERS[kind](found, rows, process, row)
        else:
            found.problems["unknown_event"] += 1
    found.requests += [RequestFact(process, at, 0, front, "received") for front, at in coming.items()]
    _count_hooks(found, hooks)
    found.processes.append(process._replace(role=_role(found)))
    origin = Origin("host_records", "unix", host=place.host or None, pid=process.pid)
    found.traces += rows.traces(origin, by_start=True)
    return found


def _count_hooks(found: Found, hooks: Counter[str]) -> None:
    """Count what was off. Where an engine's hooks were on, another engine was imported beside the one in use."""
    beside = hooks["hooks"] + (hooks["hooks_disabled"] if hooks["hooks"] else 0)
    counted = {name: hooks[name] for name in LIBRARIES.values()}
    counted["recorder_hooks_disabled"] = 0 if hooks["hooks"] else hooks["hooks_disabled"]
    found.problems.update({name: count for name, count in counted.items() if count})
    found.other.update({"instant": beside} if beside else {})


def _role(found: Found) -> str:
    """What a process is by what was seen in it. One that both decides and runs is its service's only one: an engine."""
    if found.decisions:
        return "engine"
    if found.executions:
        return "worker"
    return "frontend" if any(fact.kind == "received" for fact in found.requests) else "unknown"


def _span(found: Found, rows: RowArrays, process: Process, row: Row) -> None:
    dur = count(row.get("dur"))
    if dur is None:
        found.problems["bad_event"] += 1
        return
    found.kept += 1
    match row["name"]:
        case "vllm.schedule":
            found.engine = "vllm"
            found.decisions.append(decision(found, process, row, dur))
        case "vllm.update":
            found.outcomes.append(outcome(found, process, row, dur))
        case "cb.update" if "got" in row:
            found.outcomes.append(outcome(found, process, row, dur))
            _keep(rows, process, row, dur)
        case "vllm.sample_tokens" if with_sampling(found.executions, row, dur):
            pass
        case "cb.prepare":
            found.engine = "transformers"
            _batch(found, rows, process, row, dur)
        case "vllm.execute_model" | "cb.step":
            found.executions.append(execution(found, process, row, dur))
        case "cb.add_request":
            _added(found, process, row)
        case name if name in PROFILER:
            found.pauses.append(Pause(process, row["tid"], row["t"], dur, "profiler_stop"))
            _keep(rows, process, row, dur)
        case _:
            _keep(rows, process, row, dur)


def _batch(found: Found, rows: RowArrays, process: Process, row: Row, dur: int) -> None:
    """A batch that transformers prepared: a decision. Where it prepared none, only the time it took is kept."""
    requests = ids(row.get("reqs"))
    if row.get("ok") is False or not requests:
        _keep(rows, process, row, dur)
        return
    chosen = decision(found, process, row, dur)
    found.decisions.append(chosen._replace(tokens=chosen.tokens or dict.fromkeys(requests, -1)))


def _added(found: Found, process: Process, row: Row) -> None:
    found.engine = "transformers"
    request = text_of(row.get("rid"))
    found.requests.append(RequestFact(process, row["t"], 0, request, "added"))
    if (prompt := few(row.get("prompt"))) is not None:
        found.requests.append(RequestFact(process, row["t"], 0, request, "prompt_tokens", prompt))


def _collection(found: Found, rows: RowArrays, process: Process, row: Row) -> None:
    dur = count(row.get("dur"))
    _pause(found, None if dur is None else Pause(process, row["tid"], row["t"], dur, "gc", count(row.get("gen"))))


def _lag(found: Found, rows: RowArrays, process: Process, row: Row) -> None:
    late = count(row.get("lag"))
    kind = "loop_lag" if row["name"] == "loop_lag" else "thread_lag"
    _pause(found, None if late is None else Pause(process, row["tid"], row["t"] - late, late, kind))


def _profiler_stop(found: Found, process: Process, row: Row) -> None:
    cost = count(row.get("cost"))
    start = whole(row.get("begin"))
    if cost is not None and start is None:
        start = row["t"] - cost
    _pause(found, None if cost is None or start is None else Pause(process, row["tid"], start, cost, "profiler_stop"))
    if found.windows and found.windows[-1].stop == UNKNOWN:
        found.windows[-1] = found.windows[-1]._replace(stop=row["t"])


def _profiler_start(found: Found, process: Process, row: Row) -> None:
    found.other["instant"] += 1
    found.windows.append(Window(process, row["t"] - (count(row.get("cost")) or 0), UNKNOWN, "torch"))


def _pause(found: Found, pause: Pause | None) -> None:
    if pause is None:
        found.problems["bad_event"] += 1
        return
    found.kept += 1
    found.pauses.append(pause)


def _instant(found: Found, rows: RowArrays, process: Process, row: Row) -> None:
    kind = INSTANTS.get(row["name"])
    if row["name"] == "profile_stop":
        _profiler_stop(found, process, row)
    elif row["name"] == "profile_start":
        _profiler_start(found, process, row)
    elif row["name"] == "shim_cost" and (spent := count(row.get("cpu_ns"))) is not None:
        found.kept += 1
        found.samples.append(Sample(process, row["t"], "recorder_cpu_ns", spent))
    elif kind is not None:
        found.kept += 1
        request = text_of(row.get("rid"))
        value = few(row.get("computed")) if kind == "preempted" else None
        word = text_of(row.get("reason"), 32).lower().removeprefix("finished_")
        found.requests.append(RequestFact(process, row["t"], 0, request, kind, value, word=word))
        _counted(found, process, row, request)
    elif row["name"] in LOST and row.get("reason") != NOTHING_TO_RECORD:
        found.problems[row["name"]] += 1
    elif row["name"] == "hook_error":
        found.problems["recorder_hook_error"] += 1
    else:
        found.other["instant"] += 1


def _counted(found: Found, process: Process, row: Row, request: str) -> None:
    for name, kind in COUNTS.items():
        if (tokens := few(row.get(name))) is not None:
            found.requests.append(RequestFact(process, row["t"], 0, request, kind, tokens))


def _coming(found: Found, process: Process, row: Row, coming: dict[str, int]) -> None:
    """A request that a front end got, under the name of its answer, and the same one as it hands it to the engine.

    One that is handed over is known by its engine's id from its coming on; of one that never is, the first name stays.
    """
    found.kept += 1
    if row["name"] == "request.arrived":
        coming.setdefault(text_of(row.get("rid")), row["t"])
        return
    request = text_of(row.get("rid"))
    coming.pop(text_of(row.get("front")), None)
    for name, kind in (("at", "received"), ("tokenized", "tokenized"), ("t", "added")):
        if (time := whole(row.get(name))) is not None:
            found.requests.append(RequestFact(process, time, 0, request, kind))
    _counted(found, process, row, request)


def _range(found: Found, rows: RowArrays, process: Process, row: Row) -> None:
    dur = count(row.get("dur", 0))
    if dur is None:
        found.problems["bad_event"] += 1
        return
    found.kept += 1
    _keep(rows, process, row, dur, "nvtx")


def _keep(rows: RowArrays, process: Process, row: Row, dur: int, category: str = "call") -> None:
    said = {key: value for key, value in row.items() if key in ("err", "domain", "n", "ok") and value is not None}
    name = text_of(row["name"])
    lane = Lane(str(process.pid), str(row["tid"]), False)
    argument = json.dumps(said, sort_keys=True, default=str) if said else ""
    rows.add(row["t"], dur, name, lane, category=category, layer=Layer.ENGINE, argument=argument)


_READERS: dict[object, Callable[[Found, RowArrays, Process, Row], None]] = {
    "X": _span,
    "G": _collection,
    "L": _lag,
    "I": _instant,
    "N": _range,
    "M": _range,
    "K": lambda found, rows, process, row: collective(found, process, row),
}
