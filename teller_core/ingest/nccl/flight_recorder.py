"""The pickled dump of torch's flight recorder, ``nccl_trace_rank_N``: which collectives a rank called, and which ended.

It is written when a collective times out, or when asked for. :mod:`teller_core.ingest.nccl.pickled` reads it: no code runs.
"""

from pathlib import Path
from typing import cast

from teller_core.errors import FormatError
from teller_core.ingest.files.source import read_whole
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_object
from teller_core.ingest.nccl.flight_recorder_entries import found_in
from teller_core.ingest.nccl.pickled import load_plain

NAME = "flight_recorder"
MAX_BYTES = 64 << 20
"""A ring of 20,000 entries is some 3 MB without and 30 MB with the frames of its callers."""
PROTOCOLS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def sniff(head: bytes) -> bool:
    """Whether it is a pickle with the keys of a dump."""
    if not head.startswith(PROTOCOLS):
        return False
    listed = b"profiling_name" in head and b"seq_id" in head
    return listed or (b"entries" in head and b"pg_config" in head)


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Collectives by call. Problems: those of :func:`found_in`. Errors: FormatError, LimitError."""
    value = load_plain(read_whole(path, MAX_BYTES), path.name)
    # The first dumps were the list of their entries.
    document = as_object({"entries": cast("object", value)} if isinstance(value, list) else value)
    if not isinstance(document.get("entries"), list):
        raise FormatError(path.name, "the pickle is no dump of a flight recorder", "Name the recorder's own file")
    return found_in(document, path, place)
