"""Chakra execution traces in Protocol Buffers (``.et``): operators with their dependencies, most with how long they took.

A stream of messages: ``GlobalMetadata``, then one ``Node`` each. Field numbers are those of ``et_def.proto`` in
mlcommons/chakra (schema 0.0.4): Node id 1, name 2, type 3, ctrl_deps 4, data_deps 5, start_time_micros 6, duration_micros 7,
inputs 8, outputs 9, attr 10; IOInfo values 1, shapes 2, types 3; AttributeProto name 1, a value from 3 on.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from teller_core.data.records import OperatorNode, Process
from teller_core.data.table import UNKNOWN
from teller_core.errors import FormatError
from teller_core.ingest.decimals import LARGEST, NS_PER_US, count
from teller_core.ingest.executions.chakra_trace import Timed, traces_of
from teller_core.ingest.executions.execution_trace import check_count, rank_of
from teller_core.ingest.executions.nodes import Collective, arguments, name_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.wire import BYTES, VARINT, Damaged, fields, messages, signed, varint, varints

NAME = "chakra"
COMMUNICATION = frozenset({5, 6, 7})
"""NodeType of a send, a receive and a collective."""
KINDS = (
    "all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all", "reduce_scatter",
    "reduce_scatter_block", "barrier",
)  # fmt: skip
"""CollectiveCommType, in its order."""
POINT_TO_POINT = {5: "send", 6: "recv"}
TEXT, TRUTH = 29, 27
"""Fields of AttributeProto: string_val and bool_val."""
SIGNED = frozenset({7, 9})
"""int32_val and int64_val."""
TELL_EVERY = 1024


class Node(NamedTuple):
    """A node as any form of Chakra tells it: microseconds, 0 for none; attributes by name."""

    number: int
    name: str
    kind: int
    control: list[int]
    data: list[int]
    start: int
    dur: int
    shapes: str
    types: str
    said: dict[str, Any]


def sniff(head: bytes) -> bool:
    """Whether the first message is a GlobalMetadata and the second a Node with an id and a name."""
    try:
        size, at = varint(head, 0)
        if size > 1 << 16 or at + size > len(head) or not _is_metadata(head[at : at + size]):
            return False
        size, begin = varint(head, at + size)
        node = _node(head[begin : begin + size])
        return begin + size <= len(head) and bool(node.name) and node.name.isprintable()
    except Damaged:
        return False


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Operators by file order, and a trace of those whose duration is known (see :mod:`chakra_trace`).

    Metadata is other. Problems: ``bad_node`` (damaged, or without a name). Errors: FormatError, LimitError.
    """
    found = Found(clock="local")
    gathered = Gathered(found, Process(place.host, 0, rank=rank_of(path)))
    for message, on_disk in messages(path):
        found.events += 1
        try:
            if found.events == 1:
                gathered.process = gathered.process._replace(pid=count(_metadata(message).get("pid")) or 0)
                found.other["metadata"] += 1
                continue
            gathered.add(_node(message))
        except Damaged:
            found.problems["bad_node"] += 1
        check_count(path, found.events)
        if progress and found.events % TELL_EVERY == 0:
            progress(on_disk)
    return gathered.finish(path)


@dataclass
class Gathered:
    """Nodes on their way into ``found``. ``kept``: one object for all texts that are equal."""

    found: Found
    process: Process
    timed: list[Timed] = field(default_factory=list[Timed])
    kept: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, node: Node) -> None:
        """Keep ``node``, or count it as a problem where it has no name."""
        if not node.name:
            self.found.problems["bad_node"] += 1
            return
        self.found.kept += 1
        row = _operator(node, self.process, self.kept)
        self.found.operators.append(row)
        self.timed.append(Timed(row, node.said.get("is_cpu_op") is not False, node.data))

    def finish(self, path: Path) -> Found:
        """The operators, and the trace of those with a duration. Errors: FormatError where there is no node."""
        if not self.timed:
            raise FormatError(path.name, "it holds no node", "Name an execution trace of Chakra")
        traces = traces_of(self.timed, self.process)
        self.found.processes.append(self.process)
        self.found.traces += traces
        self.found.clock = traces[0].origin.clock if traces else "local"
        return self.found


def _operator(node: Node, process: Process, kept: dict[str, str]) -> OperatorNode:
    about = _collective(node)
    said = arguments(_listed(node.shapes), _listed(node.types), about)
    return OperatorNode(
        process=process,
        id=node.number,
        parent=node.control[0] if node.control else -1,
        name=kept.setdefault(node.name, node.name),
        record=_number(node.said.get("rf_id")),
        thread=_number(node.said.get("tid")),
        arguments=kept.setdefault(said, said),
        start=node.start * NS_PER_US if 0 < node.start < LARGEST // NS_PER_US else UNKNOWN,
        dur=node.dur * NS_PER_US if 0 < node.dur < LARGEST // NS_PER_US else UNKNOWN,
        collective=about.kind,
        size=about.size,
        group=about.group,
    )


def _collective(node: Node) -> Collective:
    """A node of a host operator of communication hands it over, and names neither kind nor size."""
    if node.kind not in COMMUNICATION:
        return Collective()
    which = _number(node.said.get("comm_type"))
    kind = POINT_TO_POINT.get(node.kind, KINDS[which] if 0 <= which < len(KINDS) else "")
    group = node.said.get("pg_name", "")
    return Collective(kind, None, count(node.said.get("comm_size")), "", group[:64] if isinstance(group, str) else "")


def _number(value: object) -> int:
    return value if type(value) is int and -LARGEST < value < LARGEST else -1


def _listed(text: str) -> object:
    """The list that a text in Python's notation holds, None where it holds none: a converter wrote ``str(list)``."""
    try:
        return json.loads(text.replace("'", '"'))
    except (ValueError, RecursionError):
        return None


def _node(message: bytes) -> Node:
    number = kind = start = dur = 0
    name = shapes = types = ""
    control: list[int] = []
    data: list[int] = []
    said: dict[str, Any] = {}
    for which, wire, value in fields(message):
        if isinstance(value, int):
            number = value if which == 1 else number
            kind = value if which == 3 else kind
            start = value if which == 6 else start
            dur = value if which == 7 else dur
        elif which == 2:
            name = _text(value)
        elif which == 8:
            shapes, types = _inputs(value)
        elif which == 10:
            said |= _attribute(value)
        if which in (4, 5) and wire in (VARINT, BYTES):
            (control if which == 4 else data).extend(varints(value))
    return Node(number, name, kind, control, data, start, dur, shapes, types, said)


def _inputs(message: bytes) -> tuple[str, str]:
    found = {which: _text(value) for which, _, value in fields(message) if isinstance(value, bytes)}
    return found.get(2, ""), found.get(3, "")


def _attribute(message: bytes) -> dict[str, Any]:
    """Name and value of an attribute; lists and fractions are not needed."""
    name, told = "", None
    for which, _, value in fields(message):
        if isinstance(value, int):
            told = bool(value) if which == TRUTH else signed(value) if which in SIGNED else value
        elif which == 1:
            name = _text(value)
        elif which == TEXT:
            told = _text(value)
    return {name: told} if name else {}


def _metadata(message: bytes) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for which, _, value in fields(message):
        if which == 2 and isinstance(value, bytes):
            said |= _attribute(value)
    return said


def _is_metadata(message: bytes) -> bool:
    """Whether it holds a version and attributes, and nothing else."""
    for which, _, value in fields(message):
        if not isinstance(value, bytes) or which not in (1, 2):
            return False
        if which == 1 and not _text(value).isprintable():
            return False
        if which == 2 and not _attribute(value):
            return False
    return True


def _text(value: bytes) -> str:
    return name_of(value.decode("utf-8", "replace")) if len(value) <= 1 << 20 else ""
