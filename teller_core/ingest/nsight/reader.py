"""Nsight Systems reports exported to SQLite: ``nsys export --type sqlite``, of the schemas 2.9 to 3.25 and any between.

Tables and columns are read by name, as far as they are there. The rows of every table are accounted for: kept, counted
by kind, or counted by what is wrong with them. One trace for each process: correlation ids are numbers of a process, and
two processes use the same ones.
"""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from teller_core.data.records import Process
from teller_core.errors import FormatError, LimitError
from teller_core.ingest.files.source import open_source
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.nsight.tables import MARKS, NVTX, STRINGS

if TYPE_CHECKING:
    from teller_core.data.trace import Trace
    from teller_core.ingest.nsight.events import Export

NAME = "nsight_sqlite"
MAGIC = b"SQLite format 3\0"
INTERIOR = b"\5"
"""The kind of a first page that holds no table itself but points to the pages that do."""
MAX_EXPANDED = 32 << 30
"""Bytes that a compressed export may take when it is expanded into a temporary file."""
BLOCK = 1 << 20


def sniff(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a SQLite database with tables of Nsight Systems, or one whose list of
    tables is longer than its first page: that may stand anywhere.
    """
    return head.startswith(MAGIC) and (any(mark in head for mark in MARKS) or head[100:101] == INTERIOR)


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """One trace a process, on the Unix clock where the export says when it began.

    Problems: ``no_ts``, ``no_dur``, ``negative_dur``, ``time_over_int64``, ``no_process`` (rows left out for it),
    ``unmatched_push``, ``unmatched_range`` (still open at the end), ``damaged_row``, ``record_too_long``,
    ``profiler_error``, ``events_lost_by_profiler`` (messages of the profiler). Errors: FormatError for a file that is cut
    or damaged or no export of Nsight Systems; those of :func:`open_source`.
    """
    with _database(path, progress) as (file, size):
        return _read(path, file, size, place, progress)


def _read(path: Path, file: BinaryIO, size: int, place: Place, progress: Progress | None) -> Found:
    # Compiled: only where such a file is really read.
    from teller_core.ingest.nsight import about as nsight_about
    from teller_core.ingest.nsight import events as nsight_events
    from teller_core.ingest.nsight import nvtx as nsight_nvtx
    from teller_core.ingest.nsight import tables as nsight_tables
    from teller_core.ingest.nsight.keys import Strings
    from teller_core.ingest.nsight.pages import open_pages
    from teller_core.ingest.nsight.rows import Reading
    from teller_core.ingest.nsight.schema import tables as tables_of
    from teller_core.ingest.nsight.traces import traces

    pages = open_pages(file, path.name, size)
    tables = tables_of(pages)
    hosts = {name: host for name, table in tables.items() if (host := nsight_tables.host(name, table.columns))}
    devices = [name for name in tables if name in nsight_tables.DEVICE and "start" in tables[name].columns]
    if STRINGS not in tables or not (hosts or devices or "TARGET_INFO_SYSTEM_ENV" in tables):
        raise FormatError(path.name, "a database, but no export of Nsight Systems", "Name a trace, a log or an export")
    reading = Reading(pages)
    export = nsight_events.Export(reading, Strings(*nsight_about.strings(reading, tables[STRINGS])))
    if progress:
        export.progress = lambda: progress(min(pages.read, size))
    about = nsight_about.read_about(export, tables)
    told = nsight_nvtx.Told({}, {})
    for name in sorted(hosts, key=lambda name: hosts[name].order):
        if name == NVTX:
            told = nsight_nvtx.read_nvtx(export, tables[name])
        else:
            nsight_events.read_host(export, tables[name], hosts[name])
    for name in devices:
        nsight_events.read_device(export, tables[name])
    for name in tables.keys() - hosts.keys() - set(devices) - {nsight_about.MESSAGES}:
        export.other[nsight_tables.other(name)] += reading.count(tables[name].root)
    export.problems["damaged_row"] += reading.damaged
    export.problems["record_too_long"] += reading.too_long
    host = place.host if place.bundle else about.host
    return _found(export, traces(export, about, nsight_about.ranks(about, told), host), host)


def _found(export: "Export", traces: list["Trace"], host: str) -> Found:
    found = Found(clock=traces[0].origin.clock if traces else "local", traces=traces)
    found.kept = sum(len(trace) for trace in traces)
    found.other.update({kind: count for kind, count in export.other.items() if count})
    found.problems.update({name: count for name, count in export.problems.items() if count})
    found.events = found.kept + found.other.total() + found.problems.total()
    found.processes = [Process(host, trace.origin.pid or 0, rank=trace.origin.rank) for trace in traces]
    return found


@contextmanager
def _database(path: Path, progress: Progress | None) -> Generator[tuple[BinaryIO, int]]:
    """(the database, its bytes); a compressed one expanded into a file that has no name and goes with the process."""
    with open_source(path) as source:
        if not source.compressed:
            source.file.seek(0)
            yield source.file, path.stat().st_size
            return
        with tempfile.TemporaryFile() as whole:
            room = bytearray(BLOCK)
            while got := source.fill(memoryview(room)):
                whole.write(memoryview(room)[:got])
                if source.expanded > MAX_EXPANDED:
                    raise LimitError(path.name, f"over {MAX_EXPANDED >> 30} GiB when expanded", "Expand it yourself")
                if progress:
                    progress(source.on_disk)
            whole.flush()
            yield whole, source.expanded
