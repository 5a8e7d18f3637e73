"""``cupti-PID-N.bin``: what a process asked of its GPUs in one window, and what the GPUs did.

Calls of the runtime and the driver lie on their threads, kernels, copies and fills on their streams, joined by CUPTI's
correlation id. A call made inside a step that the recorder marked carries the step's number (``step``), so that a kernel
belongs to a step without any clock. CUPTI's times become Unix ns through the file's anchors.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from teller_core.data.records import Pause, Process, Window
from teller_core.data.table import Int32, Int64
from teller_core.data.trace import NO_LINK, Lane, Layer, Origin, Trace
from teller_core.errors import FormatError
from teller_core.ingest.collective_names import communicates
from teller_core.ingest.decimals import count
from teller_core.ingest.files.file_names import pid_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.recorder import cupti_names
from teller_core.ingest.recorder.cupti_columns import Columns, combined
from teller_core.ingest.recorder.cupti_file import LATEST, MAGIC, Blocks, Rows, read_blocks
from teller_core.ingest.recorder.nvtx_tsv import unix

NAME = "cupti_records"
LONGEST_NAME = 4096
MOST_STALLS = 8
OF_STEPS = 5
"""CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2: ours. torch's profiler has 1 and CUSTOM1."""
NO_STREAM = 0xFFFFFFFF
OF_THREAD = 2
"""CUPTI_ACTIVITY_OBJECT_THREAD."""
AFTER_STEPS = "steps"
ENDED = frozenset({"time", AFTER_STEPS, "asked", "max_records", "exit"})
"""Reasons for which a window ends as it should."""
REFUSED = frozenset(
    {
        "blinded",
        "disk",
        "gave_way",
        "layout_unreadable",
        "no_cupti",
        "no_layout",
        "no_thread",
        "other_client",
        "too_many_windows",
        "unknown_version",
    }
)
"""Reasons for which there was no window, or half of one: counted as ``cupti_REASON``."""


Add = Callable[[Columns, Rows, Blocks, int], None]
"""Adds the sound rows of one kind; the last is the pid."""


def sniff(head: bytes) -> bool:
    """Whether it begins as the library's files do."""
    return head.startswith(MAGIC)


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """A trace of calls and device work on the Unix clock.

    Problems: ``cut_file``, ``bad_record``, ``unfinished_record`` (no end, or one before its start), ``dropped_records``
    (by CUPTI, which had no buffer), ``cut_records`` (beyond what was asked for), ``no_kernels`` (a window that ended well
    without any), ``cupti_REASON`` (why none could be opened: ``other_client``, ``no_cupti``, ``unknown_version``, ...).
    Errors: FormatError, LimitError.
    """
    blocks = read_blocks(path)
    found = Found(problems=blocks.problems)
    pid = pid_of(path) or count(blocks.header.get("pid")) or 0
    found.processes.append(Process(place.host, pid))
    found.other["anchor"] = len(blocks.anchors)
    found.other["external"] = len(blocks.rows.get("external", ()))
    found.events = sum(len(rows) for rows in blocks.rows.values()) + len(blocks.anchors) + found.problems["bad_record"]
    _outcome(found, blocks)
    _stalls(found, blocks)
    if not blocks.anchors:
        if found.events:
            raise FormatError(path.name, "it holds no clock anchor", "Record it again")
        return found
    columns = Columns()
    for name, add in _READERS.items():
        if name in blocks.rows:
            rows = blocks.rows[name]
            sound = (rows["end"] >= rows["start"]) & (rows["start"] > 0) & (rows["end"] < 1 << 62)
            if bad := int(np.count_nonzero(~sound)):
                found.problems["unfinished_record"] += bad
            add(columns, rows if sound.all() else rows[sound], blocks, pid)
    if len(columns):
        found.kept = len(columns)
        origin = Origin(NAME, "unix", host=place.host or None, pid=pid)
        found.traces.append(_trace(columns, blocks, origin))
    return found


def _outcome(found: Found, blocks: Blocks) -> None:
    """Count what the footer says was lost."""
    footer = blocks.footer
    if footer is None:
        return
    for problem, *keys in (("dropped_records", "dropped", "foreign", "late"), ("cut_records", "cut")):
        if lost := sum(count(footer.get(key)) or 0 for key in keys):
            found.problems[problem] += lost
    reason = text_of(footer.get("reason"), 32)
    if reason not in ENDED:
        found.problems[f"cupti_{reason if reason in REFUSED else 'unknown'}"] += 1
    elif footer.get("kernels") == 0:
        found.problems["no_kernels"] += 1


def _stalls(found: Found, blocks: Blocks) -> None:
    """The window, and when CUPTI was made to do what the process may have felt: what the recorder itself held up is no cause."""
    footer: Mapping[str, object] = blocks.footer or {}
    process = found.processes[0]
    opened, closed = _interval(footer.get("open")), _interval(footer.get("close"))
    if opened is not None and closed is not None and opened[0] < closed[1]:
        found.windows.append(Window(process, opened[0], closed[1], "cupti"))
    stalls = footer.get("stalls")
    told = cast("list[object]", stalls if isinstance(stalls, list) else [footer.get("open")])
    for start, stop in filter(None, map(_interval, told[:MOST_STALLS])):
        if stop > start:
            found.pauses.append(Pause(process, 0, start, stop - start, "profiler_stop"))


def _interval(value: object) -> tuple[int, int] | None:
    """Two Unix ns, the second not before the first."""
    both = cast("list[object]", value if isinstance(value, list) else [])
    times = [time for one in both if (time := count(one)) is not None and 0 < time < LATEST]
    return (times[0], times[1]) if len(times) == len(both) == 2 and times[0] <= times[1] else None


def _steps(blocks: Blocks) -> tuple[Int64, Int64]:
    """(sorted correlation ids, the step's number of each). The last step is not told where the window's end cut it."""
    rows = blocks.rows.get("external")
    if rows is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    mine = rows[rows["external_kind"] == OF_STEPS]
    order = np.argsort(mine["correlation_id"], kind="stable")
    known, number = mine["correlation_id"][order].astype(np.int64), mine["external_id"][order].astype(np.int64)
    footer: Mapping[str, object] = blocks.footer or {}
    if len(number) and footer.get("reason") != AFTER_STEPS and (blocks.footer is None or footer.get("in_step")):
        whole = number != number[-1]
        known, number = known[whole], number[whole]
    return known, number


def _calls(category: str) -> Add:
    def add(columns: Columns, rows: Rows, blocks: Blocks, pid: int) -> None:
        said: Any = blocks.header["layout"].get("runtime" if category == "cuda_runtime" else "driver")
        names = cast("Mapping[str, object]", said if isinstance(said, dict) else {})

        def named(cbid: int) -> str:
            return text_of(names.get(str(cbid)), 256) or f"{category} {cbid}"

        def lane(thread: int) -> Lane:
            return Lane(str(pid), str(thread), False)

        link = rows["correlation_id"].astype(np.int64)
        arg = np.full(len(rows), -1, dtype=np.int32)
        known, number = _steps(blocks)
        if len(known):
            at = np.minimum(np.searchsorted(known, link), len(known) - 1)
            inside = known[at] == link
            arg[inside] = columns.args_of([number[at[inside]]], _in_step)
        name = columns.names_of(rows["cbid"], named)
        columns.add(
            rows,
            category,
            Layer.RUNTIME,
            name=name,
            lane=columns.lanes_of([rows["thread_id"]], lane),
            link=link,
            arg=arg,
        )

    return add


def _in_step(step: int) -> dict[str, Any]:
    return {"step": step}


def _kernels(columns: Columns, rows: Rows, blocks: Blocks, pid: int) -> None:
    texts = [text_of(text, LONGEST_NAME) for text in blocks.texts]

    def named(text: int) -> str:
        return texts[text] if text < len(texts) else "unknown kernel"

    sizes = [rows[f"{what}_{axis}"] for what in ("grid", "block") for axis in "xyz"]
    arg = columns.args_of([*sizes, rows["graph_id"], rows["graph_node_id"]], _launched)
    _work(columns, rows, "kernel", columns.names_of(rows["name"], named), arg)


def _launched(*said: int) -> dict[str, Any]:
    shape = {"grid": list(said[:3]), "block": list(said[3:6])}
    return {**shape, "graph": said[6], "graph_node": said[7]} if said[6] else shape


def _copies(columns: Columns, rows: Rows, blocks: Blocks, pid: int) -> None:
    kinds = [rows["copy_kind"], rows["src_kind"], rows["dst_kind"]]
    name = columns.names_of_rows(combined(kinds), kinds, cupti_names.copied)
    _work(columns, rows, "gpu_memcpy", name, columns.args_of([rows["bytes"]], _of_size))


def _fills(columns: Columns, rows: Rows, blocks: Blocks, pid: int) -> None:
    name = columns.names_of(rows["memory_kind"], cupti_names.filled)
    _work(columns, rows, "gpu_memset", name, columns.args_of([rows["bytes"]], _of_size))


def _of_size(size: int) -> dict[str, Any]:
    return {"bytes": size}


def _graphs(columns: Columns, rows: Rows, blocks: Blocks, pid: int) -> None:
    _work(columns, rows, "cuda_graph", columns.names_of(rows["graph_id"], cupti_names.replayed), None)


def _work(columns: Columns, rows: Rows, category: str, name: Int32, arg: Int32 | None) -> None:
    lane = columns.lanes_of([rows["device_id"], rows["stream_id"]], _stream)
    columns.add(rows, category, Layer.KERNEL, name=name, lane=lane, link=rows["correlation_id"], arg=arg)


def _stream(device: int, stream: int) -> Lane:
    return Lane(str(device), str(stream), True)


def _syncs(columns: Columns, rows: Rows, blocks: Blocks, pid: int) -> None:
    devices = _devices(blocks)

    def lane(context: int, stream: int) -> Lane:
        return Lane(devices.get(context, ""), f"{'context' if stream == NO_STREAM else stream} syncs", True)

    lanes = columns.lanes_of([rows["context_id"], rows["stream_id"]], lane)
    name = columns.names_of(rows["type"], cupti_names.waited)
    columns.add(rows, "cuda_sync", Layer.RUNTIME, name=name, lane=lanes, link=rows["correlation_id"], arg=None)


def _devices(blocks: Blocks) -> dict[int, str]:
    """The device of each context that worked."""
    pairs = [
        np.stack([rows["context_id"], rows["device_id"]], axis=1)
        for kind in ("kernel", "memcpy", "memset", "graph")
        if (rows := blocks.rows.get(kind)) is not None
    ]
    return (
        {context: str(device) for context, device in np.unique(np.concatenate(pairs), axis=0).tolist()} if pairs else {}
    )


def _overheads(columns: Columns, rows: Rows, blocks: Blocks, pid: int) -> None:
    def lane(thread: int) -> Lane:
        return Lane(str(pid), str(thread) if thread else "driver", False)

    owner = np.frombuffer(rows["object_id"].tobytes(), "<u4").reshape(-1, 3)
    lanes = columns.lanes_of([np.where(rows["object_kind"] == OF_THREAD, owner[:, 1], 0)], lane)
    name = columns.names_of(rows["overhead_kind"], cupti_names.spent)
    columns.add(rows, "overhead", Layer.RUNTIME, name=name, lane=lanes, link=None, arg=None)


_READERS: dict[str, Add] = {
    "runtime": _calls("cuda_runtime"),
    "driver": _calls("cuda_driver"),
    "kernel": _kernels,
    "memcpy": _copies,
    "memset": _fills,
    "graph": _graphs,
    "synchronization": _syncs,
    "overhead": _overheads,
}


def _trace(columns: Columns, blocks: Blocks, origin: Origin) -> Trace:
    """All rows by start, the longer first, on the Unix clock."""
    whole = columns.whole()
    anchors = [(cupti, real) for cupti, real, _, _ in blocks.anchors]
    start, end = unix(whole["start"], anchors), unix(whole["end"], anchors)
    names = list(columns.names)
    speaks = communicates(names) > 0
    layer = np.where((whole["layer"] == Layer.KERNEL) & speaks[whole["name"]], Layer.COMMUNICATION, whole["layer"])
    order = np.lexsort((start - end, start))
    link = whole["link"][order]
    return Trace(
        start=start[order],
        dur=(end - start)[order],
        name=whole["name"][order].astype(np.int32),
        lane=whole["lane"][order].astype(np.int32),
        category=whole["category"][order].astype(np.uint8),
        layer=layer[order].astype(np.uint8),
        link=np.where(link > 0, link, NO_LINK),
        arg=whole["arg"][order].astype(np.int32),
        names=names,
        lanes=list(columns.lanes),
        categories=list(columns.categories),
        args=[json.dumps(said) for said in columns.args],
        origin=origin,
    )
