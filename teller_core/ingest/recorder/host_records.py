"""``host-PID.jsonl``: what the recorder saw inside one process. Times are Unix nanoseconds.

``P`` the process with clock anchors; ``X`` a span: the scheduler's decisions, the worker's executions, requests handed
over, and calls that become rows of a trace; ``G`` a garbage collection; ``L`` a thread that got the processor late (its
time is when it ran again); ``I`` an instant: what happened to a request, the profiler's stall; ``N``, ``M`` NVTX ranges
and marks.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from teller_core.data.records import Decision, Execution, Pause, Process, RequestFact
from teller_core.data.trace import Lane, Layer, Origin
from teller_core.ingest.decimals import count, few, whole
from teller_core.ingest.files.file_names import pid_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import first_object, objects, text_of
from teller_core.ingest.row_arrays import RowArrays

NAME = "host_records"
KINDS = tuple("PXGLINM")
INSTANTS = {
    "request.received": "received",
    "request.first_token": "first_token",
    "request.finished": "finished",
    "request.aborted": "aborted",
}
"""Instants about a request, and the kind of fact each is."""

Row = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Whether the first line is an event of the recorder."""
    row = first_object(head)
    return row is not None and row.get("ph") in KINDS and whole(row.get("t")) is not None and "tid" in row


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Decisions, executions, requests, pauses and a trace of everything else that took time.

    Problems: ``bad_json``, ``bad_event`` (no time, thread or name), ``unknown_event`` (a ``ph`` of another version),
    ``bad_token_count``, and those that the recorder counted itself (``recorder_hook_error``, ...).
    """
    found, rows = Found(), RowArrays()
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
            found.other["process"] += 1
        elif isinstance(kind, str) and kind in _READERS:
            _READERS[kind](found, rows, process, row)
        else:
            found.problems["unknown_event"] += 1
    found.processes.append(process._replace(role=_role(found)))
    origin = Origin("host_records", "unix", host=place.host or None, pid=process.pid)
    found.traces += rows.traces(origin, by_start=True)
    return found


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
            found.decisions.append(_decision(found, process, row, dur))
        case "cb.prepare":
            found.engine = "transformers"
            _batch(found, rows, process, row, dur)
        case "vllm.execute_model" | "cb.step":
            tokens = _counts(found, row.get("tokens")) if isinstance(row.get("tokens"), dict) else None
            found.executions.append(Execution(process, row["t"], dur, tokens, count(row.get("n"))))
        case "cb.add_request":
            _added(found, process, row)
        case _:
            _keep(rows, process, row, dur)


def _decision(found: Found, process: Process, row: Row, dur: int) -> Decision:
    return Decision(
        process,
        row["t"],
        dur,
        _counts(found, row.get("tokens")),
        preempted=_ids(row.get("preempted")),
        finished=_ids(row.get("finished")),
        prompt=_counts(found, row.get("prompt")),
        computed=_counts(found, row.get("computed")),
        cached=_counts(found, row.get("cached")),
        resumed=_ids(row.get("resumed")),
        output=_ids(row["output"]) if isinstance(row.get("output"), list) else None,
        waiting=few(row.get("waiting")),
        number=count(row.get("n")),
    )


def _batch(found: Found, rows: RowArrays, process: Process, row: Row, dur: int) -> None:
    """A batch that transformers prepared: a decision. Where it prepared none, only the time it took is kept."""
    requests = _ids(row.get("reqs"))
    if row.get("ok") is False or not requests:
        _keep(rows, process, row, dur)
        return
    decision = _decision(found, process, row, dur)
    found.decisions.append(decision._replace(tokens=decision.tokens or dict.fromkeys(requests, -1)))


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
    _pause(found, None if late is None else Pause(process, row["tid"], row["t"] - late, late, "thread_lag"))


def _profiler_stop(found: Found, process: Process, row: Row) -> None:
    cost = count(row.get("cost"))
    start = whole(row.get("begin"))
    if cost is not None and start is None:
        start = row["t"] - cost
    _pause(found, None if cost is None or start is None else Pause(process, row["tid"], start, cost, "profiler_stop"))


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
    elif kind is not None:
        found.kept += 1
        request = text_of(row.get("rid"))
        found.requests.append(RequestFact(process, row["t"], 0, request, kind))
        if (tokens := few(row.get("tokens"))) is not None:
            found.requests.append(RequestFact(process, row["t"], 0, request, "output_tokens", tokens))
    elif row["name"] in ("hook_error", "fr_error", "ctl_error", "hooks_disabled"):
        found.problems["recorder_" + row["name"]] += 1
    else:
        found.other["instant"] += 1


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


def _ids(value: object) -> tuple[str, ...]:
    listed = cast("list[object]", value if isinstance(value, list) else [])
    return tuple(text_of(item) for item in listed if isinstance(item, str))


def _counts(found: Found, value: object) -> dict[str, int]:
    counted = cast("dict[str, object]", value if isinstance(value, dict) else {})
    good = {text_of(key): tokens for key, number in counted.items() if (tokens := few(number)) is not None}
    if len(good) < len(counted):
        found.problems["bad_token_count"] += len(counted) - len(good)
    return good


_READERS: dict[object, Callable[[Found, RowArrays, Process, Row], None]] = {
    "X": _span,
    "G": _collection,
    "L": _lag,
    "I": _instant,
    "N": _range,
    "M": _range,
}
