"""The NVTX events of an Nsight export: ranges, marks, and the names that others of them give to threads and domains."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from teller_core.data.table import Int32
from teller_core.ingest.jsonl import json_object, text_of
from teller_core.ingest.lanes import Place
from teller_core.ingest.nsight.cells import MISSING, NAME, TEXT
from teller_core.ingest.nsight.events import PROCESS, Bools, Columns, Export, Found, add, blocks, sound
from teller_core.ingest.nsight.keys import Keys, Meanings
from teller_core.ingest.nsight.names import nvtx
from teller_core.ingest.nsight.schema import Table

PUSH_POP, START_END, MARK, CATEGORY, THREAD, DOMAIN = 59, 60, 34, 33, 39, 75
"""Values of eventType. Others are ends and deletions, which their ranges tell already."""
KINDS = {PUSH_POP: "push_pop", START_END: "start_end", MARK: "mark"}
UNFINISHED = {PUSH_POP: "unmatched_push", START_END: "unmatched_range"}
BETWEEN_THREADS = 4
"""The place, beside those of layers.Place, of ranges that end on another thread than they began on."""
PAYLOADS = ("uint64Value", "int64Value", "uint32Value", "int32Value")
MEMBERS = 16
"""Members of a payload that are kept."""
COLUMNS = (
    "start", "end", "eventType", "globalTid", "endGlobalTid", "domainId", "category", "text", "textId", "jsonText",
    "jsonTextId", *PAYLOADS,
)  # fmt: skip


class Told(NamedTuple):
    """What NVTX events say besides ranges: names of threads by globalTid, and by process the rank and the size of its
    largest NCCL communicator."""

    threads: Mapping[int, str]
    ranks: Mapping[int, tuple[int, int]]


class _Names(NamedTuple):
    threads: dict[int, str]
    domains: dict[tuple[int, int], str]
    categories: dict[tuple[int, int, int], str]


def read_nvtx(export: Export, table: Table) -> Told:
    """Add the ranges and marks of ``table``."""
    meanings = Meanings(export.words, lambda code: nvtx(export.reading.text(code)))
    names, said, first = _Names({}, {}, {}), Keys(6), len(export.arguments)
    words = {kind: export.words.category(word) for kind, word in KINDS.items()}
    for block in blocks(export, table, COLUMNS, {"text": NAME, "jsonText": TEXT}):
        rows = _ranges(export, block, names)
        kept = sound(export, rows, "globalTid")
        code = rows["text"]
        add(
            export,
            Found(rows, kept, meanings.rows(code), _lanes(export, rows, kept)),
            arg=_arguments(export, rows, meanings.rows(code).said, said, first),
            category=np.select([rows["eventType"] == kind for kind in KINDS], [words[kind] for kind in KINDS]),
        )
    ranks: dict[int, tuple[int, int]] = {}
    texts = list(export.words.said)
    for key in said.rows().tolist():
        export.arguments.append(_argument(export, key, texts, names, ranks))
    return Told(names.threads, ranks)


def _ranges(export: Export, rows: Columns, names: _Names) -> Columns:
    """The ranges and marks among ``rows``, each with the number of its text and an end. The others are counted."""
    rows["text"] = np.where(rows["text"] == MISSING, export.strings.texts(rows["textId"]), rows["text"])
    ranges = np.isin(rows["eventType"], tuple(KINDS))
    if not ranges.all():
        _note(export, {name: column[~ranges] for name, column in rows.items()}, names)
        rows = {name: column[ranges] for name, column in rows.items()}
    rows["end"] = np.where((rows["eventType"] == MARK) & (rows["end"] == MISSING), rows["start"], rows["end"])
    return _without_unfinished(export, rows)


def _without_unfinished(export: Export, rows: Columns) -> Columns:
    """``rows`` without ranges that were still open when recording stopped: how long they took nobody knows."""
    opened = rows["end"] == MISSING
    if not opened.any():
        return rows
    for kind, problem in UNFINISHED.items():
        if count := int(np.count_nonzero(opened & (rows["eventType"] == kind))):
            export.problems[problem] += count
    return {name: column[~opened] for name, column in rows.items()}


def _note(export: Export, rows: Columns, names: _Names) -> None:
    """Keep the names that events give, and count these."""
    for kind, thread, domain, category, text in zip(
        *(rows[name].tolist() for name in ("eventType", "globalTid", "domainId", "category", "text")), strict=True
    ):
        name = text_of(export.reading.text(text), 64)
        if kind == THREAD:
            names.threads[thread] = name
        elif kind == DOMAIN:
            names.domains[thread & PROCESS, domain] = name
        elif kind == CATEGORY:
            names.categories[thread & PROCESS, domain, category] = name
    export.other["nvtx_name"] += len(rows["start"])


def _lanes(export: Export, rows: Columns, kept: Bools) -> Int32:
    thread, end = rows["globalTid"][kept], rows["endGlobalTid"][kept]
    crosses = (end != MISSING) & (end != thread) & (rows["eventType"][kept] == START_END)
    columns = np.zeros((5, len(thread)), dtype=np.int64)
    columns[0] = np.where(crosses, BETWEEN_THREADS, Place.THREAD)
    columns[1] = np.where(crosses, thread & PROCESS, thread)
    return export.lanes.numbers(columns)


def _arguments(export: Export, rows: Columns, said: Int32, keys: Keys, first: int) -> Int32:
    """int32 a row: the number of its arguments, -1 where it has none."""
    json = np.where(rows["jsonText"] == MISSING, export.strings.texts(rows["jsonTextId"]), rows["jsonText"])
    payload = rows[PAYLOADS[0]]
    for name in PAYLOADS[1:]:
        payload = np.where(payload == MISSING, rows[name], payload)
    domain = np.where(rows["domainId"] == MISSING, 0, rows["domainId"])
    category = np.where(rows["category"] == MISSING, 0, rows["category"])
    tells = (said > 0) | (domain != 0) | (category != 0) | (json != MISSING) | (payload != MISSING)
    arg = np.full(len(said), -1, dtype=np.int32)
    if tells.any():
        columns = np.stack([said.astype(np.int64), rows["globalTid"] & PROCESS, domain, category, json, payload])
        arg[tells] = keys.numbers(columns[:, tells]) + np.int32(first)
    return arg


def _argument(
    export: Export, key: list[int], words: list[str], names: _Names, ranks: dict[int, tuple[int, int]]
) -> dict[str, Any]:
    said, process, domain, category, json, payload = key
    found: dict[str, Any] = {"said": words[said]} if said else {}
    if name := names.domains.get((process, domain)):
        found["domain"] = name
    if name := names.categories.get((process, domain, category)):
        found["category"] = name
    if payload != MISSING:
        found["payload"] = payload
    told = json_object(export.reading.text(json)) if json != MISSING else None
    if told:
        rank, world = told.get("Rank"), told.get("No. of ranks")
        if isinstance(rank, int) and isinstance(world, int) and 0 <= rank < world > ranks.get(process, (0, 0))[1]:
            ranks[process] = rank, world
        found |= {text_of(k, 40): text_of(v, 80) if isinstance(v, str) else v for k, v in list(told.items())[:MEMBERS]}
    return found
