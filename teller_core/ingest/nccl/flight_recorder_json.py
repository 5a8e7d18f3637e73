"""The JSON dump of torch's flight recorder: which collectives a rank called, with their sequence numbers.

It tells when a collective was called, rarely when it ran: ``gloo`` leaves its state at ``scheduled`` for ever.
"""

from pathlib import Path

from teller_core.errors import FormatError
from teller_core.ingest.files.source import read_whole
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import json_object
from teller_core.ingest.nccl.flight_recorder_entries import found_in

NAME = "flight_recorder_json"
MAX_BYTES = 64 << 20
"""A ring of 20,000 entries is some 12 MB. One that is nothing but empty lists takes 1.2 GB once it is read."""


def sniff(head: bytes) -> bool:
    """Whether the keys of a dump are there: entries that have sequence numbers, or the groups that they are of."""
    keys = b'"collective_seq_id"' in head or b'"pg_config"' in head
    return head.lstrip().startswith(b"{") and b'"entries"' in head and keys


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Collectives by call. Problems: those of :func:`found_in`. Errors: FormatError, LimitError."""
    document = json_object(read_whole(path, MAX_BYTES))
    if document is None or not isinstance(document.get("entries"), list):
        raise FormatError(path.name, "the JSON ends early or is broken", "Copy or record the file again")
    return found_in(document, path, place)
