"""Records of NCCL's Inspector plugin (NCCL 2.28, RCCL): JSON lines, one a completed collective or point-to-point operation.

A line has a header (communicator, rank in it, ranks), metadata (host, pid) and what one operation took; since format 4.3 header
and metadata stand once before the lines that they are about. Verbose records have times. Source: the plugin's README.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from teller_core.data.records import CollectiveFact, Process
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_US, count, scaled
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_list, as_object, objects, text_of

NAME = "nccl_inspector"
BODIES = ("coll_perf", "p2p_perf")
OTHERS = ("dump_stats", "proxy_trace")
LOST = ("coll_dropped_since_last_dump", "p2p_dropped_since_last_dump", "proxy_dropped_since_last_dump")
MOST_CHANNELS = 1024


class _About(NamedTuple):
    """Whose operations they are. ``rank`` is that in the communicator."""

    process: Process
    group: str
    rank: int
    size: int


def sniff(head: bytes) -> bool:
    """Whether its lines are Inspector's: its version, or an operation with its serial number."""
    if not head.lstrip().startswith(b"{"):
        return False
    return b'"inspector_output_format_version"' in head or (b'"coll_perf"' in head and b'"coll_sn"' in head)


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Collectives that ended. The process's rank is the one that it has in its largest communicator.

    Problems: ``bad_line``, ``bad_entry`` (without a communicator, a number or a size), ``overwritten_before_dump`` (operations
    that the plugin says it lost; no lines of this file). Errors: those of reading the file.
    """
    found = Found()
    about: _About | None = None
    seen: dict[_About, None] = {}
    for line in objects(path):
        found.events += 1
        if line is None:
            found.problems["bad_line"] += 1
            continue
        about = _about(line, place) or about
        kind = next((kind for kind in (*BODIES, *OTHERS) if kind in line), "")
        if kind not in BODIES:
            found.other[kind or "metadata"] += 1
            _count_lost(as_object(line.get(kind)), found)
            continue
        fact = _fact(about, as_object(line[kind]), "coll" if kind == "coll_perf" else "p2p") if about else None
        if fact is None or about is None:
            found.problems["bad_entry"] += 1
            continue
        found.kept += 1
        found.collectives.append(fact)
        seen[about] = None
    found.processes += _ranked(seen)
    return found


def _about(line: Mapping[str, Any], place: Place) -> _About | None:
    header, metadata = as_object(line.get("header")), as_object(line.get("metadata"))
    group, rank, size = text_of(header.get("id"), 64), count(header.get("rank")), count(header.get("n_ranks"))
    if not group or rank is None:
        return None
    host = place.host if place.bundle else text_of(metadata.get("hostname"), 128) or place.host
    return _About(Process(host, count(metadata.get("pid")) or 0), group, rank, size or 0)


def _ranked(seen: Mapping[_About, None]) -> list[Process]:
    """The processes, each with its rank in its largest communicator where that is the same in all of that size."""
    own: defaultdict[Process, list[_About]] = defaultdict(list)
    for about in seen:
        own[about.process].append(about)
    ranked: list[Process] = []
    for process, abouts in own.items():
        largest = max(about.size for about in abouts)
        ranks = {about.rank for about in abouts if about.size == largest}
        ranked.append(process._replace(rank=ranks.pop() if len(ranks) == 1 else None))
    return ranked


def _fact(about: _About, body: Mapping[str, Any], kind: str) -> CollectiveFact | None:
    sequence = count(body.get(f"{kind}_sn"))
    if sequence is None:
        return None
    name, peer = text_of(body.get(kind), 64), count(body.get("p2p_peer"))
    trace = as_object(body.get("event_trace_ts"))
    kernels = [as_object(channel) for channel in as_list(trace.get("kernel_events"))[:MOST_CHANNELS]]
    started = [time for kernel in kernels if (time := _us(kernel.get("kernel_start_ts"))) != UNKNOWN]
    ended = [time for kernel in kernels if (time := _us(kernel.get("kernel_stop_ts"))) != UNKNOWN]
    return CollectiveFact(
        about.process,
        _us(trace.get(f"{kind}_start_ts")),
        about.group,
        (),
        sequence,
        name if peer is None else f"{name} with {peer}",
        kind == "p2p",
        state="completed",
        started=min(started, default=UNKNOWN),
        finished=max(ended, default=UNKNOWN),
        done=True,
        duration=_took(body.get(f"{kind}_exec_time_us")),
        size=about.size,
        bytes=count(body.get(f"{kind}_msg_size_bytes")),
        timed=bool(started and ended),
    )


def _us(value: object) -> int:
    """Unix ns; 0 stands for an event that was not seen."""
    return scaled(value, NS_PER_US) or UNKNOWN if count(value) else UNKNOWN


def _took(value: object) -> int:
    took = scaled(value, NS_PER_US)
    return UNKNOWN if took is None or took < 0 else took


def _count_lost(stats: Mapping[str, Any], found: Found) -> None:
    lost = sum(count(stats.get(name)) or 0 for name in LOST)
    if lost:
        found.problems["overwritten_before_dump"] += lost
