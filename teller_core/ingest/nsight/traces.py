"""From the pieces of an export to one trace for each process."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from teller_core.data.table import Int32, Int64
from teller_core.data.trace import Lane, Origin, Trace
from teller_core.ingest.lanes import SUFFIX, Place
from teller_core.ingest.nsight.about import RANKS, WORLDS, About
from teller_core.ingest.nsight.cells import MISSING
from teller_core.ingest.nsight.events import PROCESS, Export
from teller_core.ingest.nsight.nvtx import BETWEEN_THREADS

EPOCH_NS = 10**18
"""A time beyond this (September 2001) counts from 1970 already: exports may be asked to shift their times there."""
COLUMNS = ("start", "dur", "name", "lane", "category", "layer", "link", "arg")
HOST_LANES = (int(Place.THREAD), BETWEEN_THREADS)


def traces(export: Export, about: About, ranks: Mapping[int, tuple[int, int]], host: str) -> list[Trace]:
    """The traces of the processes that did anything, those with work on a device first, in the order of their devices.

    ``ranks``: rank and world (0 where not known) by process. Uses the pieces up.
    """
    keys = export.lanes.rows()
    owner = keys[:, 1] & PROCESS
    columns = _columns(export)
    rows = np.bincount(columns["lane"], minlength=len(keys)) if len(keys) else np.empty(0, np.int64)
    order = _processes(keys[rows > 0])
    base = about.base if about.base is not None and not _since_1970(columns["start"]) else None
    clock = "unix" if about.base is not None or _since_1970(columns["start"]) else "local"
    if base is not None:
        columns["start"] += base
    on_device = [process for process, device in order if device]
    found: list[Trace] = []
    for process, _ in order:
        if len(order) > 1:
            mine = np.flatnonzero((owner == process)[columns["lane"]])
            part = {name: column[mine] for name, column in columns.items()}
        else:
            part = columns
        rank, world = ranks.get(process) or _launched(about, process, on_device)
        pid = about.pids.get(process, process >> 24 & 0xFFFFFF)
        origin = Origin("nsight", clock, rank, world or None, host or None, pid, about.devices)
        found.append(_trace(export, about, part, origin))
    return found


def _columns(export: Export) -> dict[str, Any]:
    """Whole columns of all pieces, made one by one so that little stands twice in memory."""
    found: dict[str, Any] = {}
    for name in COLUMNS:
        parts = [getattr(piece, name) for piece in export.pieces]
        found[name] = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
        for piece in export.pieces:
            setattr(piece, name, None)
    export.pieces.clear()
    return found


def _since_1970(start: Int64) -> bool:
    return 2 * int(np.count_nonzero(start >= EPOCH_NS)) > len(start)


def _processes(keys: Int64) -> list[tuple[int, bool]]:
    """(process, whether it used a device): by device and number, those without one last."""
    devices: dict[int, int] = {}
    for place, owner, device in keys[:, :3].tolist():
        number = device if place == Place.STREAM else 1 << 40
        process = owner & PROCESS
        devices[process] = min(devices.get(process, number), number)
    ordered = sorted(devices.items(), key=lambda item: (item[1], item[0]))
    return [(process, number < 1 << 40) for process, number in ordered]


def _launched(about: About, process: int, on_device: list[int]) -> tuple[int | None, int | None]:
    """Rank and world of the environment that the profiler was started in: true of its only process on a device."""
    if on_device != [process]:
        return None, None
    rank = next((about.launched[name] for name in RANKS if name in about.launched), None)
    world = next((about.launched[name] for name in WORLDS if name in about.launched), None)
    return rank, world if rank is not None else None


def _trace(export: Export, about: About, part: dict[str, Any], origin: Origin) -> Trace:
    names, name = _renumbered(part["name"], list(export.words.names))
    args, arg = _renumbered(part["arg"], export.arguments)
    keys = export.lanes.rows()
    used, lane = _renumbered(part["lane"], list(range(len(keys))))
    return Trace(
        start=part["start"],
        dur=part["dur"],
        name=name,
        lane=lane,
        category=part["category"].astype(np.uint8, copy=False),
        layer=part["layer"].astype(np.uint8, copy=False),
        link=part["link"],
        arg=arg,
        names=names,
        lanes=_lanes(keys[used], about, origin),
        categories=list(export.words.categories),
        args=[json.dumps(said, default=str) for said in args],
        origin=origin,
        events_in_file=len(name),
    )


def _renumbered(column: Int32, table: list[Any]) -> tuple[list[Any], Int32]:
    """(the entries of ``table`` in use, ``column`` as places among them). -1 stays."""
    present = np.bincount(column + 1, minlength=len(table) + 1)
    if present[1:].all():
        return table, column
    present[0] = 0
    place = np.cumsum(present > 0, dtype=np.int32) - np.int32(1)
    place[0] = -1
    return [table[i] for i in (np.flatnonzero(present) - 1).tolist()], place[column + 1]


def _lanes(keys: Int64, about: About, origin: Origin) -> list[Lane]:
    several = len({(device, context) for place, _, device, context, _ in keys.tolist() if place == Place.STREAM}) > len(
        {device for place, _, device, _, _ in keys.tolist() if place == Place.STREAM}
    )
    found: list[Lane] = []
    for place, owner, device, context, stream in keys.tolist():
        if place in HOST_LANES:
            name = about.threads.get(owner, "")
            number = "ranges" if place == BETWEEN_THREADS else str(owner & ~PROCESS)
            found.append(Lane(str(origin.pid), f"{number} {name}" if name else number, False))
        else:
            where = "context" if stream == MISSING else str(stream)
            where = f"{context}/{where}" if several else where
            found.append(Lane("" if device == MISSING else str(device), where + SUFFIX[Place(place)], True))
    return found
