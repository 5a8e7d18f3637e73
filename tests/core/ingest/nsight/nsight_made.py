"""Small exports of Nsight Systems, made with the engine that the reader does without."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

EPOCH = 1_780_000_000_000_000_000
TABLES: Mapping[str, Sequence[str]] = {
    "StringIds": ("id INTEGER NOT NULL PRIMARY KEY", "value TEXT NOT NULL"),
    "META_DATA_CAPTURE": ("name TEXT NOT NULL", "value TEXT"),
    "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs INTEGER", "utcTime TEXT", "localTime TEXT"),
    "TARGET_INFO_SYSTEM_ENV": ("globalVid INTEGER", "devStateName TEXT", "name TEXT", "nameEnum INTEGER", "value TEXT"),
    "TARGET_INFO_GPU": ("vmId INTEGER", "id INTEGER NOT NULL", "name TEXT"),
    "PROCESSES": ("globalPid INTEGER", "pid INTEGER", "name TEXT"),
    "ThreadNames": ("nameId INTEGER NOT NULL", "priority INTEGER", "globalTid INTEGER"),
    "DIAGNOSTIC_EVENT": (
        "timestamp INTEGER", "timestampType INTEGER", "source INTEGER", "severity INTEGER", "text TEXT", "globalPid INTEGER",
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start INTEGER", "end INTEGER", "eventClass INTEGER", "globalTid INTEGER", "correlationId INTEGER", "nameId INTEGER",
        "returnValue INTEGER", "callchainId INTEGER REFERENCES CUDA_CALLCHAINS(id)",
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start INTEGER", "end INTEGER", "deviceId INTEGER", "contextId INTEGER", "streamId INTEGER", "correlationId INTEGER",
        "globalPid INTEGER", "demangledName INTEGER", "shortName INTEGER", "gridX INTEGER", "gridY INTEGER", "gridZ INTEGER",
        "blockX INTEGER", "blockY INTEGER", "blockZ INTEGER", "graphNodeId INTEGER",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start INTEGER", "end INTEGER", "deviceId INTEGER", "contextId INTEGER", "streamId INTEGER", "correlationId INTEGER",
        "globalPid INTEGER", "bytes INTEGER", "copyKind INTEGER", "srcKind INTEGER", "dstKind INTEGER",
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start INTEGER", "end INTEGER", "deviceId INTEGER", "contextId INTEGER", "streamId INTEGER", "correlationId INTEGER",
        "globalPid INTEGER", "value INTEGER", "bytes INTEGER", "memKind INTEGER",
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        "start INTEGER", "end INTEGER", "deviceId INTEGER", "contextId INTEGER", "streamId INTEGER", "correlationId INTEGER",
        "globalPid INTEGER", "syncType INTEGER",
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start INTEGER", "end INTEGER", "deviceId INTEGER", "contextId INTEGER", "streamId INTEGER", "correlationId INTEGER",
        "globalPid INTEGER", "graphId INTEGER",
    ),
    "NVTX_EVENTS": (
        "start INTEGER", "end INTEGER", "eventType INTEGER", "rangeId INTEGER", "category INTEGER", "text TEXT",
        "globalTid INTEGER", "endGlobalTid INTEGER", "textId INTEGER", "domainId INTEGER", "uint64Value INTEGER",
        "doubleValue REAL", "jsonTextId INTEGER", "jsonText TEXT",
    ),
    "OSRT_API": ("start INTEGER", "end INTEGER", "eventClass INTEGER", "globalTid INTEGER", "nameId INTEGER"),
    "MPI_COLLECTIVES_EVENTS": ("start INTEGER", "end INTEGER", "globalTid INTEGER", "textId INTEGER"),
    "SCHED_EVENTS": ("start INTEGER", "cpu INTEGER", "isSchedIn INTEGER", "globalTid INTEGER"),
}  # fmt: skip
"""Columns as exports of several versions have them, as far as they are read, and some that are not."""

Row = Mapping[str, object]


def process(pid: int) -> int:
    """A globalPid."""
    return 1 << 48 | pid << 24


def thread(pid: int, tid: int) -> int:
    """A globalTid."""
    return process(pid) | tid


def made(path: Path, tables: Mapping[str, Iterable[Row]], *, page_size: int = 512, extra: str = "") -> Path:
    """Write an export that holds ``tables``: rows by column, names as text, which become ids of StringIds.

    ``extra``: statements that are run at the end.
    """
    strings: dict[str, int] = {}
    with sqlite3.connect(path) as base:
        base.execute(f"PRAGMA page_size = {page_size}")
        for name in {"StringIds": (), "TARGET_INFO_SYSTEM_ENV": (), **tables}:
            columns = TABLES[name]
            base.execute(f"CREATE TABLE {name} (\n -- as exported,\n {', '.join(map(_quoted, columns))})")
            kinds = {column.split()[0]: column.split()[1] for column in columns}
            for row in tables.get(name, ()):
                values = [_value(strings, kinds[key], value) for key, value in row.items()]
                names = ", ".join(f'"{key}"' for key in row)
                base.execute(f"INSERT INTO {name} ({names}) VALUES ({', '.join('?' * len(row))})", values)
        if "StringIds" not in tables:
            base.executemany("INSERT INTO StringIds VALUES (?, ?)", [(n, text) for text, n in strings.items()])
        base.executescript(extra)
    base.close()
    return path


def _quoted(column: str) -> str:
    name, _, rest = column.partition(" ")
    return f'"{name}" {rest}' if name == "end" else column


def _value(strings: dict[str, int], kind: str, value: object) -> object:
    if kind == "INTEGER" and isinstance(value, str):
        return strings.setdefault(value, 7 * len(strings) + 3)
    return value
