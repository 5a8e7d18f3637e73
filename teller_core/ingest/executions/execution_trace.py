"""Execution traces of PyTorch (schemas 1.0.1 to 1.1.1-chakra): every operator with its shapes and types, none with its time.

1.0.1 writes a node flat; later ones group it into ``inputs``, ``outputs`` and ``attrs``, and call the parent ``ctrl_deps``.
Beside a profiler's trace of the same process its shapes and types are those of the profiled operators.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from teller_core.data.records import OperatorNode, Process
from teller_core.errors import FormatError, LimitError
from teller_core.ingest.decimals import count, whole
from teller_core.ingest.executions.nodes import Collective, arguments, collective, name_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.json_stream import json_stream
from teller_core.ingest.jsonl import as_list, as_object

NAME = "execution_trace"
MOST_NODES = 3_000_000
"""Operators of one file. A step of a large model runs some ten thousand."""
ROOT = "[pytorch|profiler|"
"""How the names of nodes begin that stand for a process or a thread."""
TELL_EVERY = 1024
_RANK = re.compile(r"(?:rank|_eg|_et|chakra)[-_.]?(?P<rank>\d{1,6})(?!\d|\.\d)", re.ASCII | re.IGNORECASE)
Row = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Whether a schema, nodes and a record-function id are among the first keys."""
    return head.lstrip().startswith(b"{") and all(key in head for key in (b'"schema"', b'"nodes"', b'"rf_id"'))


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Operators by file order. Processes and threads are other.

    Problems: ``bad_node`` (no object, or without an id or a name). Errors: FormatError where it is no JSON or holds no list
    of nodes, LimitError over MOST_NODES.
    """
    found = Found(clock="local")
    kept: dict[str, str] = {}
    header: dict[str, object] = {}
    nodes = False
    with json_stream(path) as stream:
        for key in stream.members():
            if key in ("pid", "schema"):
                header[key] = stream.value()
            elif key == "nodes":
                nodes = True
                for _ in stream.elements():
                    _add(found, stream.value(), kept)
                    check_count(path, found.events)
                    if progress and found.events % TELL_EVERY == 0:
                        progress(stream.on_disk)
    if not nodes:
        raise FormatError(path.name, "it is JSON without a list of nodes", "Name an execution trace of PyTorch")
    process = Process(place.host, count(header.get("pid")) or 0, rank=rank_of(path))
    found.processes.append(process)
    found.operators[:] = [node._replace(process=process) for node in found.operators]
    return found


def rank_of(path: Path) -> int | None:
    """The rank that the name of an execution trace tells (``dlrm_eg_3.json``, ``rank2.json``, ``chakra.0.et``), or None."""
    match = _RANK.search(path.name)
    return int(match["rank"]) if match else None


def check_count(path: Path, nodes: int) -> None:
    """Errors: LimitError where ``nodes`` are over MOST_NODES."""
    if nodes > MOST_NODES:
        raise LimitError(path.name, f"it has over {MOST_NODES:,} operators", "Record fewer steps")


def _add(found: Found, row: object, kept: dict[str, str]) -> None:
    """Append the node that ``row`` is. ``kept``: one object for all arguments with one text."""
    found.events += 1
    node = _node(as_object(row))
    if node is None:
        found.problems["bad_node"] += 1
    elif node.name.startswith(ROOT):
        found.other["process_or_thread"] += 1
    else:
        found.kept += 1
        found.operators.append(
            node._replace(
                name=kept.setdefault(node.name, node.name),
                arguments=kept.setdefault(node.arguments, node.arguments),
            )
        )


def _node(row: Row) -> OperatorNode | None:
    number, name = whole(row.get("id")), name_of(row.get("name"))
    if number is None or not name:
        return None
    flat = "inputs" not in row or isinstance(row.get("inputs"), list)
    said = row if flat else _attributes(row.get("attrs"))
    inputs = as_object(row.get("inputs"))
    values, shapes, types = (
        (row.get("inputs"), row.get("input_shapes"), row.get("input_types"))
        if flat
        else (inputs.get("values"), inputs.get("shapes"), inputs.get("types"))
    )
    about = collective(name, values, types) or Collective()
    return OperatorNode(
        process=Process("", 0),
        id=number,
        parent=_first(row.get("parent" if flat else "ctrl_deps")),
        name=name,
        record=_first(said.get("rf_id")),
        thread=_first(said.get("tid")),
        arguments=arguments(shapes, types, about),
        collective=about.kind,
        size=about.size,
        group=about.group,
    )


def _attributes(value: object) -> dict[str, object]:
    """The list of named attributes as one mapping."""
    said = [as_object(item) for item in as_list(value)]
    return {name: item.get("value") for item in said if isinstance(name := item.get("name"), str)}


def _first(value: object) -> int:
    """A number, or the first of a list of them; -1 for none."""
    listed = cast("list[object]", value) if isinstance(value, list) else [value]
    number = whole(listed[0]) if listed else None
    return -1 if number is None else number
