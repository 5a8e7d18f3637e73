"""``bundle.json``: what our recorder says about the folder it wrote: the engine, and what of the recording is not there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teller_core.data.records import HostClock
from teller_core.data.table import UNKNOWN
from teller_core.errors import FormatError
from teller_core.ingest.decimals import count
from teller_core.ingest.files.source import read_whole
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_object, json_object, text_of

NAME = "bundle_file"
MAX_BYTES = 4 << 20
CLOSED_SINCE = 2
"""The first schema of which a bundle says when it was closed, and what was dropped."""


def sniff(head: bytes) -> bool:
    """Whether it is a JSON object with a schema number and an engine."""
    row = json_object(head)
    return row is not None and isinstance(row.get("schema"), int) and "engine" in row


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """The engine, and the machine's clock. Problems: ``ring_dropped`` (pieces that its bounds took), ``recording_open`` (nobody
    closed it), ``recording_lost`` (lines that the disk did not take). Errors: FormatError where it is no JSON object; LimitError.
    """
    row = json_object(read_whole(path, MAX_BYTES))
    if row is None:
        raise FormatError(path.name, "it is no bundle description", "Record the bundle again")
    found = Found(events=1, kept=1, engine=text_of(row.get("engine"), 32))
    if (count(row.get("schema")) or 0) >= CLOSED_SINCE:
        _losses(found, row)
    if clock := as_object(row.get("clock")):
        error = count(clock.get("max_error_us"))
        machine = text_of(clock.get("machine"), 64)
        found.clocks.append(HostClock(place.host, machine, UNKNOWN if error is None else error * 1000))
    return found


def _losses(found: Found, row: Mapping[str, Any]) -> None:
    gone = [as_object(one) for one in as_object(as_object(row.get("ring")).get("dropped")).values()]
    dropped = sum(max(1, count(one.get("pieces")) or 0) for one in gone)  # of one it took the beginning alone
    lost = sum(count(lines) or 0 for lines in as_object(row.get("lost")).values())
    if dropped:
        found.problems["ring_dropped"] = dropped
    if lost:
        found.problems["recording_lost"] = lost
    if "stop_ns" not in row:
        found.problems["recording_open"] = 1
