"""``bundle.json``: what our recorder says about the folder it wrote. The engine is what reading needs of it."""

from pathlib import Path

from teller_core.errors import FormatError
from teller_core.ingest.files.source import read_whole
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import json_object, text_of

NAME = "bundle_file"
MAX_BYTES = 1 << 20


def sniff(head: bytes) -> bool:
    """Whether it is a JSON object with a schema number and an engine."""
    row = json_object(head)
    return row is not None and isinstance(row.get("schema"), int) and "engine" in row


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """The engine. Errors: FormatError where it is no JSON object; LimitError."""
    row = json_object(read_whole(path, MAX_BYTES))
    if row is None:
        raise FormatError(path.name, "it is no bundle description", "Record the bundle again")
    return Found(events=1, kept=1, engine=text_of(row.get("engine"), 32))
