"""``profile_export.json`` of Perf Analyzer and GenAI-Perf: every request of every experiment with the times of its responses.

``timestamp`` and ``response_timestamps`` are ns of the system's clock. Inputs and outputs of the requests are passed over.
"""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from teller_core.data.records import ClientRecord
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import whole
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.json_stream import Stream, json_stream

NAME = "perf_analyzer"
UNIX = 10**17
"""No clock that counts from a machine's start is beyond this number of ns: three years."""
TIMES = ("timestamp", "response_timestamps")


def sniff(head: bytes) -> bool:
    """Whether it is an object with experiments of a known service."""
    start = head.lstrip()
    return (
        start.startswith(b"{")
        and b'"experiments"' in start
        and (b'"service_kind"' in start or b'"response_timestamps"' in start)
    )


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Client records. Problems: ``bad_record``: times that are none, or run backwards. Errors: FormatError, LimitError."""
    found = Found()
    with json_stream(path) as stream:
        experiment = 0
        for _ in stream.documents():
            for key in stream.members():
                if key == "experiments":
                    for _ in stream.elements():
                        _experiment(stream, experiment, found)
                        experiment += 1
                        if progress is not None:
                            progress(stream.on_disk)
    if found.clients and found.clients[0].clock == "local":
        found.clock = "local"
    return found


def _experiment(stream: Stream, number: int, found: Found) -> None:
    for key in stream.members():
        if key != "requests":
            continue
        for at, _ in enumerate(stream.elements()):
            found.events += 1
            said = {name: stream.value() for name in stream.members() if name in TIMES}
            record = _record(said, f"run{number}-{at}")
            if record is None:
                found.problems["bad_record"] += 1
            else:
                found.kept += 1
                found.clients.append(record)


def _record(said: Mapping[str, Any], name: str) -> ClientRecord | None:
    start, answers = whole(said.get("timestamp")), said.get("response_timestamps")
    if start is None or start < 0 or not isinstance(answers, list):
        return None
    times = [time for answer in cast("list[object]", answers) if (time := whole(answer)) is not None]
    if len(times) < len(cast("list[object]", answers)) or any(b < a for a, b in pairwise([start, *times])):
        return None
    return ClientRecord(
        name,
        start,
        times[-1] if times else UNKNOWN,
        token_times=times,
        error=not times,
        clock="unix" if start > UNIX else "local",
    )
