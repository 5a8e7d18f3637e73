"""Samples of the published data set: ``trace.json``, which nests steps, operators, calls and kernels, and its label.

A step holds ``torch_frontend_ops``, these ``torch_backend_ops``, these ``runtime_calls`` and ``driver_calls``, and these
``kernels``; times are integer ns, a step's name tells the requests that it served. What the file says of a fault, and
``annotation.json`` beside it, are labels: they are counted and nothing else.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teller_core.data.records import Execution, Process
from teller_core.data.trace import NO_LINK, Lane, Layer, Origin
from teller_core.errors import FormatError
from teller_core.ingest.collective_names import COLLECTIVE
from teller_core.ingest.decimals import scaled
from teller_core.ingest.executions.nodes import name_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.json_stream import Stream, json_stream
from teller_core.ingest.jsonl import as_list, as_object, text_of
from teller_core.ingest.row_arrays import RowArrays

NAME = "paper_sample"
LABELS = frozenset({"is_fault", "fault_type", "root_cause", "is_anomaly"})
DEEPEST = 30
"""Backend operators within one another: the data set has one level."""
EPOCH_NS = 10**18
"""A time beyond this (September 2001) counts from 1970: no machine has been up for 31 years."""
REQUESTS = re.compile(r"\[request_ids:(?P<ids>[^\]]*)\]")
HOST, DEVICE = Lane("engine", "steps", False), Lane("device", "kernels", True)
CALLS = (("runtime_calls", "cuda_runtime"), ("driver_calls", "cuda_driver"))
Row = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Whether steps and their operators are named near the beginning."""
    return head.lstrip().startswith(b"{") and b'"torch_frontend_ops"' in head and b'"steps"' in head


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """A trace, and an execution for every step with the ids of its requests. Labels are other.

    Problems: ``bad_event`` (no object, or without a name or times, or an end before its start), ``too_deep``. Errors:
    FormatError, LimitError.
    """
    found = Found()
    sample = _Sample(found, Process(place.host, 0, "engine"))
    steps = False
    with json_stream(path) as stream:
        for key in stream.members():
            if key == "engine":
                found.engine = _engine(text_of(stream.value(), 64))
            elif key in LABELS:
                found.events += 1
                found.other["label"] += 1
            elif key == "steps":
                steps = True
                for _ in stream.elements():
                    sample.step(stream)
                    if progress:
                        progress(stream.on_disk)
    if not steps:
        raise FormatError(path.name, "it is JSON without steps", "Name the trace of a sample")
    return sample.finish()


class _Sample:
    """Rows on their way into ``found``; the one mutable thing here."""

    def __init__(self, found: Found, process: Process) -> None:
        self.found, self.process = found, process
        self.rows = RowArrays()
        self.links = 0

    def step(self, stream: Stream) -> None:
        """The step that ``stream`` stands at. Its members come in any order, its operators one by one."""
        said: dict[str, object] = {}
        row = self.rows.reserve()
        self.found.events += 1
        for key in stream.members():
            if key == "torch_frontend_ops":
                for _ in stream.elements():
                    self._operator(stream.value(), "torch_frontend_op")
            elif key in ("step_name", "start", "end"):
                said[key] = stream.value()
        times, name = _times(said), name_of(said.get("step_name"))
        if times is None or not name:
            self.found.problems["bad_event"] += 1
            return
        self.found.kept += 1
        ids = _ids(name)
        # A name with ids in it would make every step another place.
        self.rows.fill(row, *times, REQUESTS.sub("", name), HOST, category="step", layer=Layer.ENGINE)
        self.found.executions.append(Execution(self.process, *times, dict.fromkeys(ids, -1) if ids else None))

    def finish(self) -> Found:
        """What was found, on its clock."""
        starts = [execution.start for execution in self.found.executions]
        unix = 2 * sum(start >= EPOCH_NS for start in starts) > len(starts)
        self.found.clock = "unix" if unix else "local"
        host = self.process.host or None
        self.found.traces += self.rows.traces(Origin(NAME, self.found.clock, host=host, pid=self.process.pid))
        self.found.processes.append(self.process)
        return self.found

    def _operator(self, value: object, category: str, depth: int = 0) -> None:
        row = self._event(value, "op_name", category, Layer.OPERATOR)
        below = as_list(row.get("torch_backend_ops"))
        if depth < DEEPEST:
            for operator in below:
                self._operator(operator, "torch_backend_op", depth + 1)
        elif below:
            self.found.events += len(below)
            self.found.problems["too_deep"] += len(below)
        for member, kind in CALLS:
            for call in as_list(row.get(member)):
                self._call(call, kind)

    def _call(self, value: object, category: str) -> None:
        kernels = as_list(as_object(value).get("kernels"))
        self.links += bool(kernels)
        self._event(value, "name", category, Layer.RUNTIME, self.links if kernels else NO_LINK)
        for kernel in kernels:
            row = as_object(kernel)
            name, start, dur = name_of(row.get("name")), scaled(row.get("gpu_start"), 1), scaled(row.get("duration"), 1)
            self.found.events += 1
            if not name or start is None or dur is None or dur < 0:
                self.found.problems["bad_event"] += 1
                continue
            self.found.kept += 1
            layer = Layer.COMMUNICATION if COLLECTIVE.match(name) else Layer.KERNEL
            self.rows.add(start, dur, name, DEVICE, category="kernel", layer=layer, link=self.links)

    def _event(self, value: object, key: str, category: str, layer: Layer, link: int = NO_LINK) -> Row:
        """Keep a range of the host, or count it as a problem; what it holds is looked at either way."""
        row = as_object(value)
        self.found.events += 1
        times, name = _times(row), name_of(row.get(key))
        if times is None or not name:
            self.found.problems["bad_event"] += 1
            return row
        self.found.kept += 1
        if layer == Layer.OPERATOR and COLLECTIVE.match(name):
            layer = Layer.COMMUNICATION
        self.rows.add(*times, name, HOST, category=category, layer=layer, link=link)
        return row


def _times(row: Row) -> tuple[int, int] | None:
    """(start, duration) ns, None where they are not told or run backwards."""
    start, end = scaled(row.get("start"), 1), scaled(row.get("end"), 1)
    return None if start is None or end is None or end < start else (start, end - start)


def _ids(name: str) -> list[str]:
    """The requests that a step's name tells, joined by underscores."""
    match = REQUESTS.search(name)
    return [text_of(one) for one in match["ids"].split("_") if text_of(one)] if match else []


def _engine(name: str) -> str:
    return next((engine for engine in ("vllm", "sglang") if name.startswith(engine)), "")
