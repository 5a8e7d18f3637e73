"""What a Kineto file says, found slowly with the standard library: json, Decimal, and no code of the reader."""

import gzip
import json
from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from pathlib import Path
from typing import Any, NamedTuple, cast

from teller_core.data.trace import Lane, Layer, Trace

LIMIT = 2**63 - 1
IDS = {
    "correlation", "External id", "external id", "external ts", "Python id", "Python parent id", "Ev Idx",
    "Record function id", "Sequence number", "Profiler Event Index", "memory bandwidth (GB/s)",
}  # fmt: skip
DEVICE = {"kernel": "", "gpu_memcpy": "", "gpu_memset": "", "memcpy": "", "memset": "", "mtia_ccp_events": ""}
DEVICE |= {"gpu_user_annotation": " annotations", "cuda_profiler_range": " annotations", "cuda_sync": " syncs"}
KINDS = {
    "M": "metadata", "s": "flow", "t": "flow", "f": "flow", "C": "counter", "i": "instant", "B": "begin", "E": "end",
    "b": "async", "e": "async", "n": "async", "O": "object",
}  # fmt: skip
PREFIXES = ("nccl", "rccl", "gloo:", "c10d", "_c10d", "record_param_comms")
PARTS = (
    "all_reduce",
    "allreduce",
    "all_gather",
    "allgather",
    "reduce_scatter",
    "reducescatter",
    "all_to_all",
    "alltoall",
)
PARTS += ("all2all", "cross_device_reduce", "deep_ep", "deepep")


class Number(str):
    """A number as the file writes it."""


class Row(NamedTuple):
    """One complete event."""

    start: int
    dur: int
    name: str
    lane: Lane
    category: str
    layer: Layer
    link: int
    args: str


class Told(NamedTuple):
    """Everything a file tells."""

    rows: list[Row]
    problems: dict[str, int]
    other: dict[str, int]
    records: int
    base: int


def load(content: bytes) -> Any:
    """The document, numbers with a fraction or an exponent and constants such as NaN kept as text."""
    return json.loads(content.decode("utf-8-sig", "replace"), parse_float=Number, parse_constant=Number, strict=False)


def expand(path: Path) -> bytes:
    """All bytes of a file, gzip taken off."""
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def told(content: bytes) -> Told:
    """What the reader should find in ``content``."""
    document = load(content)
    events = document if isinstance(document, list) else document["traceEvents"]
    base = 0 if isinstance(document, list) else int(document.get("baseTimeNanoseconds", 0))
    rows: list[Row] = []
    problems: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for event in cast(list[Any], events):
        if not isinstance(event, dict):
            problems["not_an_object"] += 1
        elif "ph" not in event:
            problems["no_ph"] += 1
        elif event["ph"] != "X":
            other[KINDS.get(str(event["ph"]), "unknown")] += 1
        else:
            row = _row(cast(dict[str, Any], event), base)
            if isinstance(row, Row):
                rows.append(row)
            else:
                problems[row] += 1
    return Told(rows, dict(problems), dict(other), len(events), base)


def check(trace: Trace, content: bytes) -> None:
    """Fail unless ``trace`` is what ``content`` tells, to the last record."""
    expected = told(content)
    trace.check()
    assert rows_of(trace) == expected.rows
    assert (trace.problems, trace.events_other) == (expected.problems, expected.other)
    assert trace.events_in_file == expected.records
    assert trace.events_in_file == len(trace) + sum(trace.problems.values()) + sum(trace.events_other.values())


def rows_of(trace: Trace) -> list[Row]:
    """The rows of a trace, as :func:`told` writes them."""
    args = [
        json.dumps(json.loads(text, parse_float=Number, parse_constant=Number, strict=False)) for text in trace.args
    ] + [""]
    return [
        Row(start, dur, trace.names[int(name)], trace.lanes[lane], trace.categories[int(category)], Layer(layer), link, args[arg])
        for start, dur, name, lane, category, layer, link, arg in zip(
            trace.start.tolist(), trace.dur.tolist(), trace.name.tolist(), trace.lane.tolist(), trace.category.tolist(),
            trace.layer.tolist(), trace.link.tolist(), trace.arg.tolist(), strict=True,
        )
    ]  # fmt: skip


def _row(event: dict[str, Any], base: int) -> Row | str:  # noqa: PLR0911 - a list of refusals, in their order
    times: list[int] = []
    for key in ("ts", "dur"):
        if key not in event:
            return f"no_{key}"
        time = _ns(event[key])
        if time is None:
            return f"{key}_not_a_number"
        if abs(time) > LIMIT:
            return "time_over_int64"
        times.append(time)
    start, dur = times
    args = event.get("args")
    args = cast(dict[str, Any], args) if isinstance(args, dict) else {}
    link = args.get("correlation")
    link = link if isinstance(link, int) and not isinstance(link, bool) else -1
    if dur < 0:
        return "negative_dur"
    if start + dur > LIMIT:
        return "time_over_int64"
    if abs(link) > LIMIT:
        return "correlation_over_int64"
    if base + start + dur > LIMIT:
        return "time_over_int64"
    category = _text(event.get("cat", ""))
    name = _text(event.get("name", ""))
    lane = _lane(event, args, category.lower())
    kept = {k: v for k, v in args.items() if k not in IDS or isinstance(v, (list, dict)) or type(v) is str}
    text = json.dumps(kept) if kept else ""
    return Row(base + start, dur, name, lane, category, _layer(category.lower(), name), link if link > 0 else -1, text)


def _ns(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, Number)) or value in ("NaN", "Infinity", "-Infinity"):
        return None
    with localcontext(prec=1000):
        return int((Decimal(value) * 1000).to_integral_value(ROUND_HALF_EVEN))


def _text(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return ""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.dumps(value)


def _lane(event: dict[str, Any], args: dict[str, Any], category: str) -> Lane:
    process, thread = _text(event.get("pid", "")), _text(event.get("tid", ""))
    if category not in DEVICE:
        return Lane(process, thread, device=False)
    stream = args.get("stream")
    if isinstance(stream, int) and not isinstance(stream, bool):
        thread = str(stream)
    return Lane(process, thread + DEVICE[category], device=True)


def _layer(category: str, name: str) -> Layer:
    layer = {
        "user_annotation": Layer.ENGINE, "trace": Layer.ENGINE, "gpu_user_annotation": Layer.ENGINE,
        "cuda_profiler_range": Layer.ENGINE, "python_function": Layer.PYTHON, "cuda_runtime": Layer.RUNTIME,
        "cuda_driver": Layer.RUNTIME, "runtime": Layer.RUNTIME, "overhead": Layer.RUNTIME, "mtia_runtime": Layer.RUNTIME,
        "xpu_runtime": Layer.RUNTIME, "cuda_sync": Layer.RUNTIME,
    }.get(category, Layer.KERNEL if category in DEVICE else Layer.OPERATOR)  # fmt: skip
    begins, speaks = name.lower().startswith(PREFIXES), any(part in name.lower() for part in PARTS)
    if layer in (Layer.KERNEL, Layer.OPERATOR) and (begins or speaks):
        return Layer.COMMUNICATION
    return Layer.COMMUNICATION if category in ("user_annotation", "trace") and begins else layer
