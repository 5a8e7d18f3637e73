"""The JSON dump of torch's flight recorder: which collectives a rank called, with their sequence numbers.

The recorder counts the calls of every process group, so the same number of the same group is the same collective on every
rank. It tells when a collective was called, rarely when it ran: ``gloo`` leaves its state at ``scheduled`` for ever.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from teller_core.data.records import CollectiveFact, Process
from teller_core.data.table import UNKNOWN
from teller_core.errors import FormatError
from teller_core.ingest.decimals import count
from teller_core.ingest.file_names import pid_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import json_object, text_of
from teller_core.ingest.source import read_whole

NAME = "flight_recorder_json"
MAX_BYTES = 256 << 20
"""A ring of 20,000 entries is some 12 MB."""


def sniff(head: bytes) -> bool:
    """Whether the keys of a dump are there: entries that have sequence numbers."""
    return head.lstrip().startswith(b"{") and b'"entries"' in head and b'"collective_seq_id"' in head


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Collectives by call. Problems: ``bad_entry`` (without a time, group or number). Errors: FormatError, LimitError."""
    document = _document(path)
    found = Found()
    process = Process(place.host, pid_of(path) or 0, rank=_rank(document))
    members = _members(document)
    entries = cast("list[object]", document.get("entries") or [])
    for entry in entries:
        found.events += 1
        fact = _fact(process, members, cast("Mapping[str, Any]", entry)) if isinstance(entry, dict) else None
        if fact is None:
            found.problems["bad_entry"] += 1
        else:
            found.kept += 1
            found.collectives.append(fact)
    found.processes.append(process)
    return found


def _document(path: Path) -> dict[str, Any]:
    document = json_object(read_whole(path, MAX_BYTES))
    if document is None or not isinstance(document.get("entries"), list):
        raise FormatError(path.name, "the JSON ends early or is broken", "Copy or record the file again")
    return document


def _rank(document: Mapping[str, Any]) -> int | None:
    """The dump does not name its rank; a group's status may list it."""
    return count(document.get("rank"))


def _members(document: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Ranks by group: ``pg_config`` holds lists of ranks, as a list or as its text. The only group may have no name."""
    config = document.get("pg_config")
    groups: dict[str, tuple[int, ...]] = {}
    for name, about in cast("dict[str, Any]", config if isinstance(config, dict) else {}).items():
        ranks = cast("Mapping[str, Any]", about if isinstance(about, dict) else {}).get("ranks")
        groups[text_of(name, 64)] = (
            tuple(int(r) for r in re.findall(r"\d{1,6}", str(ranks)[: 1 << 16])) if ranks else ()
        )
    return groups


def _fact(process: Process, members: Mapping[str, tuple[int, ...]], entry: Mapping[str, Any]) -> CollectiveFact | None:
    called = count(entry.get("time_created_ns"))
    group = entry.get("process_group")
    point_to_point = entry.get("is_p2p") is True
    sequence = count(entry.get("p2p_seq_id" if point_to_point else "collective_seq_id"))
    if called is None or sequence is None or not isinstance(group, list) or not group:
        return None
    name = text_of(cast("list[object]", group)[0], 64)
    return CollectiveFact(
        process,
        called,
        name,
        members.get(name) or (next(iter(members.values())) if len(members) == 1 else ()),
        sequence,
        text_of(entry.get("profiling_name"), 128),
        point_to_point,
        _elements(entry.get("input_sizes")),
        _dtype(entry.get("input_dtypes")),
        text_of(entry.get("state"), 32),
        _reached(entry.get("time_discovered_started_ns")),
        _reached(entry.get("time_discovered_completed_ns")),
    )


def _reached(value: object) -> int:
    """The recorder writes 0 for a time that did not come."""
    return count(value) or UNKNOWN


def _elements(sizes: object) -> int | None:
    if not isinstance(sizes, list):
        return None
    total = 0
    for shape in cast("list[object]", sizes):
        product = 1
        for size in cast("list[object]", shape if isinstance(shape, list) else []):
            product *= min(count(size) or 0, 1 << 40)
            product = min(product, 1 << 60)
        total += product
    return min(total, 1 << 60)


def _dtype(dtypes: object) -> str:
    listed = cast("list[object]", dtypes if isinstance(dtypes, list) else [])
    return text_of(listed[0], 32) if listed else ""
