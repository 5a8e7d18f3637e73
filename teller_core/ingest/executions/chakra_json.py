"""Chakra workloads in JSON: a ``workload_graph`` of nodes with ``Id``, ``Name``, ``NodeType``, ``runtime`` and ``data_deps``.

The keys are those that Chakra's feeder asks for (mlcommons/chakra, src/feeder/json_node.cpp); ``runtime`` is microseconds,
as ``duration_micros`` of the protobuf.
"""

import json
from pathlib import Path

from teller_core.data.records import Process
from teller_core.errors import FormatError
from teller_core.ingest.decimals import count
from teller_core.ingest.executions.chakra import Gathered, Node
from teller_core.ingest.executions.execution_trace import TELL_EVERY, check_count, rank_of
from teller_core.ingest.executions.nodes import name_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.json_stream import json_stream
from teller_core.ingest.jsonl import as_list, as_object, text_of

NAME = "chakra_json"
SAID = ("is_cpu_op", "comm_type", "comm_size", "pg_name", "tid", "rf_id")
"""Members of a node that the protobuf keeps as attributes."""
KINDS = {
    "MEM_LOAD_NODE": 2, "MEM_STORE_NODE": 3, "COMP_NODE": 4, "COMM_SEND_NODE": 5, "COMM_RECV_NODE": 6, "COMM_COLL_NODE": 7,
}  # fmt: skip


def sniff(head: bytes) -> bool:
    """Whether a graph and the capital keys of its nodes are there."""
    return head.lstrip().startswith(b"{") and all(key in head for key in (b'"workload_graph"', b'"Id"', b'"NodeType"'))


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """As :func:`chakra.read`. Problems: ``bad_node``. Errors: FormatError, LimitError."""
    found = Found(clock="local")
    gathered = Gathered(found, Process(place.host, 0, rank=rank_of(path)))
    graph = False
    with json_stream(path) as stream:
        for key in stream.members():
            if key != "workload_graph":
                continue
            graph = True
            for _ in stream.elements():
                found.events += 1
                _add(gathered, stream.value())
                check_count(path, found.events)
                if progress and found.events % TELL_EVERY == 0:
                    progress(stream.on_disk)
    if not graph:
        raise FormatError(path.name, "it is JSON without a graph", "Name a workload of Chakra")
    return gathered.finish(path)


def _add(gathered: Gathered, value: object) -> None:
    row = as_object(value)
    number = count(row.get("Id"))
    if number is None:
        gathered.found.problems["bad_node"] += 1
        return
    kind = row.get("NodeType")
    inputs = as_object(row.get("inputs"))
    gathered.add(
        Node(
            number=number,
            name=name_of(row.get("Name")),
            kind=KINDS.get(kind, 0) if isinstance(kind, str) else count(kind) or 0,
            control=_ids(row.get("ctrl_deps")),
            data=_ids(row.get("data_deps")),
            start=count(row.get("start_time_micros")) or 0,
            dur=count(row.get("runtime", row.get("duration_micros"))) or 0,
            shapes=_text(inputs.get("shapes")),
            types=_text(inputs.get("types")),
            said={key: row[key] for key in SAID if key in row},
        )
    )


def _ids(value: object) -> list[int]:
    return [number for item in as_list(value) if (number := count(item)) is not None]


def _text(value: object) -> str:
    """A list as the protobuf writes it: as text."""
    return text_of(value, 1 << 20) if isinstance(value, str) else json.dumps(value, default=str) if value else ""
