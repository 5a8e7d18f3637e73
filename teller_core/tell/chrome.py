"""Spans of some ranks as a Chrome trace, which Perfetto and chrome://tracing open, and which we read again like any other.

The format: "Trace Event Format" (Google, 2016), complete events ``X`` and metadata ``M`` in the words of PyTorch's profiler, with
its ``baseTimeNanoseconds``: times in microseconds since 1970 are longer than the numbers of a browser keep exactly.
"""

import json
from collections.abc import Iterator, Sequence

from teller_core.data.capture import Rank
from teller_core.data.linked import StepSpans
from teller_core.data.replays import captured_rows
from teller_core.data.trace import NO_LINK, Layer
from teller_core.tell.layout import plain
from teller_core.tell.visible import visible

CATEGORIES: dict[Layer, str] = {
    Layer.REQUEST: "user_annotation",
    Layer.ENGINE: "user_annotation",
    Layer.PYTHON: "python_function",
    Layer.OPERATOR: "cpu_op",
    Layer.RUNTIME: "cuda_runtime",
    Layer.KERNEL: "kernel",
    Layer.COMMUNICATION: "cpu_op",
    Layer.LOG: "user_annotation",
}
"""The profiler's word for a layer."""
LONGEST = 1000
"""Characters of a name that are written: kernels have names of thousands, and a viewer shows a hundred."""


def chrome_trace(spans: Sequence[StepSpans], ranks: Sequence[Rank], about: str) -> Iterator[str]:
    """The pieces of a file of JSON: the rows of ``spans`` on the capture's clock, a process a rank, a thread a lane. Every event
    has its ``handle``. ``about``: what it is of. Operators that a graph repeats without running them are left out.
    """
    spans = [mine for mine in spans if len(mine.tree)]
    base = min((int(mine.tree.trace.start.min()) + mine.shift for mine in spans), default=0)
    header = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": base, "trace_name": plain(about)}
    yield json.dumps(header)[:-1] + ', "traceEvents": [\n'
    first = True
    for mine in spans:
        for event in (*_names(mine, ranks[mine.rank]), *_events(mine, base)):
            yield event if first else f",\n{event}"
            first = False
    yield "\n]}\n"


def events_in(spans: Sequence[StepSpans]) -> int:
    """How many complete events :func:`chrome_trace` writes of ``spans``."""
    return sum(int((~captured_rows(mine.tree)).sum()) for mine in spans)


def _names(mine: StepSpans, rank: Rank) -> Iterator[str]:
    """What the process and its threads are called, and their order: threads before streams."""
    called = plain(f"rank {rank.rank} {rank.role} {rank.host}/{rank.pid}", 120)
    yield _meta("process_name", mine.rank, 0, {"name": called})
    yield _meta("process_sort_index", mine.rank, 0, {"sort_index": mine.rank})
    for at, lane in enumerate(mine.tree.trace.lanes):
        kind = "stream" if lane.device else "thread"
        yield _meta("thread_name", mine.rank, at, {"name": plain(f"{kind} {lane.thread}", 120)})
        yield _meta("thread_sort_index", mine.rank, at, {"sort_index": at + 1000 * lane.device})


def _meta(name: str, pid: int, tid: int, said: dict[str, str | int]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": said})


def _events(mine: StepSpans, base: int) -> Iterator[str]:
    trace = mine.tree.trace
    names = [json.dumps(visible(name[:LONGEST])) for name in trace.names]
    device = [lane.device for lane in trace.lanes]
    repeated = captured_rows(mine.tree).tolist()
    columns = (trace.start, trace.dur, trace.name, trace.lane, trace.layer, trace.link)
    for row, (start, dur, name, lane, layer, link) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        if repeated[row]:
            continue
        category = "kernel" if device[lane] and layer == Layer.COMMUNICATION else CATEGORIES[Layer(layer)]
        category = "gpu_user_annotation" if device[lane] and category == "user_annotation" else category
        linked = f', "correlation": {link}' if link != NO_LINK else ""
        yield (
            f'{{"ph": "X", "cat": "{category}", "name": {names[name]}, "pid": {mine.rank}, "tid": {lane}, '
            f'"ts": {_us(start + mine.shift - base)}, "dur": {_us(dur)}, '
            f'"args": {{"handle": "{mine.rank}:{mine.first + row}"{linked}}}}}'
        )


def _us(ns: int) -> str:
    """``ns`` in microseconds, exactly."""
    return f"{ns // 1000}.{ns % 1000:03d}"
