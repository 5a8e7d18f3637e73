"""What an Nsight export says about itself: when it began, where it ran, which processes and threads there were, what was lost."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from teller_core.data.table import Int64
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.nsight.cells import INTEGER, MISSING, NAME, ROW_ID, TEXT
from teller_core.ingest.nsight.events import PROCESS, Export, blocks
from teller_core.ingest.nsight.nvtx import Told
from teller_core.ingest.nsight.rows import Reading, Wanted
from teller_core.ingest.nsight.schema import Table

RANK = re.compile(r"(?:MPI )?[Rr]ank[ :_]?(\d{1,6})$")
"""Names by which MPI runs call the main thread of a process."""
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
WORLDS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS")
"""What starters of several processes put into the environment. Nothing else of it is read."""
VARIABLE = re.compile(r'(?P<name>[A-Z_]+)="?(?P<value>\d{1,6})"?$')
LOST = re.compile(
    r"\b(?:dropp|lost\b|loss\b|discard|overflow|ran out of|out of memory|incomplete|not all)", re.IGNORECASE
)
WARNING, ERROR = 2, 3
"""Severities of the profiler's messages."""
MESSAGES = "DIAGNOSTIC_EVENT"
MOST = 1 << 17
"""Rows of a table of processes, threads or settings that are looked at."""


@dataclass
class About:
    """``base`` Unix ns of the export's time 0, None where it does not say. By globalPid: ``pids``, ``ranks``; by globalTid:
    ``threads``."""

    base: int | None = None
    host: str = ""
    devices: tuple[str, ...] = ()
    pids: dict[int, int] = field(default_factory=dict[int, int])
    threads: dict[int, str] = field(default_factory=dict[int, str])
    ranks: dict[int, int] = field(default_factory=dict[int, int])
    launched: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of the environment that the profiler was started in: RANKS and WORLDS."""


def read_about(export: Export, tables: Mapping[str, Table]) -> About:
    """What the small tables say. Counts their rows, and those of the profiler's own messages."""
    about = About()
    for (epoch,) in _rows(export, tables, "TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"]):
        about.base = epoch if 0 < epoch < 1 << 61 else None
    for name, value in _texts(export, tables, "TARGET_INFO_SYSTEM_ENV", "name", "value"):
        if name == "Hostname":
            about.host = text_of(value, 128)
    gpus = _rows(export, tables, "TARGET_INFO_GPU", ["id", "name"], texts=["name"])
    about.devices = tuple(text_of(export.reading.text(name), 64) for _, name in sorted(gpus))
    for process, pid in _rows(export, tables, "PROCESSES", ["globalPid", "pid"]):
        about.pids[process] = pid
    for name, thread in _rows(export, tables, "ThreadNames", ["nameId", "globalTid"]):
        about.threads[thread] = text_of(_string(export, name), 64)
    for table in ("MPI_RANK", "MPI_RANKS"):
        by = "globalPid" if table in tables and "globalPid" in tables[table].columns else "globalTid"
        for rank, owner in _rows(export, tables, table, ["rank", by]):
            if 0 <= rank < 1 << 20 and owner != MISSING:
                about.ranks[owner & PROCESS] = rank
    settings = [*_texts(export, tables, "META_DATA_CAPTURE", "name", "value")]
    about.launched = _variables([value for name, value in settings if name.endswith(":ENVIRONMENT_VARIABLE")])
    _messages(export, tables)
    return about


def strings(reading: Reading, table: Table) -> tuple[Int64, Int64]:
    """(the ids of a StringIds table, the numbers of their texts)."""
    if not {"id", "value"} <= table.columns.keys():
        raise reading.pages.broken()
    key = ROW_ID if "id" in table.row_id else INTEGER
    wanted = (Wanted(table.columns["id"], key), Wanted(table.columns["value"], NAME))
    parts = [block.copy() for block in reading.blocks(table.root, wanted)]
    ids, texts = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), dtype=np.int64)
    return ids, texts


def ranks(about: About, told: Told) -> dict[int, tuple[int, int]]:
    """Rank and world (0 where not known) by process: as its NCCL communicator says, a table of MPI, the name of a thread."""
    found: dict[int, tuple[int, int]] = {}
    for thread, name in {**about.threads, **told.threads}.items():
        if match := RANK.match(name):
            found.setdefault(thread & PROCESS, (int(match[1]), 0))
    return {**found, **{process: (rank, 0) for process, rank in about.ranks.items()}, **told.ranks}


def _variables(values: Sequence[str]) -> dict[str, int]:
    found = [match for value in values if (match := VARIABLE.match(value))]
    return {match["name"]: int(match["value"]) for match in found if match["name"] in (*RANKS, *WORLDS)}


def _messages(export: Export, tables: Mapping[str, Table]) -> None:
    """Count what the profiler says went wrong; what it says was lost by a name of its own."""
    for severity, text in _rows(export, tables, MESSAGES, ["severity", "text"], texts=["text"]):
        if severity in (WARNING, ERROR) and LOST.search(export.reading.text(text)):
            export.problems["events_lost_by_profiler"] += 1
        elif severity == ERROR:
            export.problems["profiler_error"] += 1
        else:
            export.other["profiler_message"] += 1


def _string(export: Export, number: int) -> str:
    return export.reading.text(int(export.strings.texts(np.array([number], dtype=np.int64))[0]))


def _texts(export: Export, tables: Mapping[str, Table], name: str, *columns: str) -> list[tuple[str, ...]]:
    rows = _rows(export, tables, name, columns, texts=columns)
    return [tuple(export.reading.text(number) for number in row) for row in rows]


def _rows(
    export: Export, tables: Mapping[str, Table], name: str, columns: Sequence[str], texts: Sequence[str] = ()
) -> list[list[int]]:
    """The rows of a small table, as many as MOST; none where there is no such table."""
    if name not in tables or not set(columns) & tables[name].columns.keys():
        return []
    found: list[list[int]] = []
    for rows in blocks(export, tables[name], columns, dict.fromkeys(texts, TEXT)):
        if len(found) < MOST:
            found += [list(row) for row in zip(*(rows[column].tolist() for column in columns), strict=True)]
    return found
