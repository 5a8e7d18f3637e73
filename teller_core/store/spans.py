"""The spans of a rank: the columns of its tree, in pre-order, so that a subtree is a few neighbouring chunks.

``parent`` and ``stop`` are kept as distances from their row: small numbers, and a part can be read without the rest.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from teller_core.data.table import Int32
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.data.tree import ROOT, Tree
from teller_core.errors import UnknownName
from teller_core.store.chunks import Array, damaged
from teller_core.store.columns import ColumnSet, find_set, read_strings, read_values, write_set

KIND = "spans"
TRACE_COLUMNS: dict[str, Any] = {
    "start": np.int64,
    "dur": np.int64,
    "name": np.int32,
    "lane": np.int32,
    "category": np.uint8,
    "layer": np.uint8,
    "link": np.int64,
    "arg": np.int32,
}
"""The columns of a trace and their dtypes."""


def write_tree(con: sqlite3.Connection, capture: int, rank: int, tree: Tree, level: int) -> None:
    """Insert the spans of the rank at position ``rank``."""
    trace = tree.trace
    row = np.arange(len(tree), dtype=np.int32)
    values: dict[str, Array] = {name: getattr(trace, name) for name in TRACE_COLUMNS}
    values["parent"] = np.where(tree.parent == ROOT, np.int32(0), row - tree.parent)
    values["size"] = tree.stop - row
    about = {
        "origin": asdict(trace.origin),
        "tables": {"name": len(trace.names), "arg": len(trace.args)},
        "lanes": trace.lanes,
        "categories": list(trace.categories),
        "problems": trace.problems,
        "events_in_file": trace.events_in_file,
        "events_other": trace.events_other,
        "crossings": tree.crossings,
        "unlaunched": tree.unlaunched,
    }
    strings = {"names": trace.names, "args": trace.args}
    write_set(con, capture, KIND, rank=rank, values=values, strings=strings, about=about, level=level)


def find_tree(con: sqlite3.Connection, capture: int, rank: int) -> ColumnSet:
    """The stored spans of a rank. Raises UnknownName where no trace of it was recorded."""
    stored = find_set(con, capture, KIND, rank)
    if stored is None:
        raise UnknownName(f"rank {rank}", "the capture holds no trace of it", "See the ranks that `captures` lists")
    return stored


def read_tree(
    con: sqlite3.Connection,
    stored: ColumnSet,
    low: int,
    high: int,
    wanted: Sequence[str] | None,
) -> Tree:
    """Rows ``low`` to ``high`` as a tree of their own: parents outside are ROOT, and no row stops behind the last.

    All rows come with the tables they were stored with. A part comes with those names and args alone that it uses, in
    their order: its numbers are its own. ``wanted`` names the trace's columns to read; the others are empty, so that using
    one fails instead of misleading. ``parent`` and ``stop`` are always there.
    """
    names = [name for name in TRACE_COLUMNS if wanted is None or name in wanted]
    read = read_values(con, stored.key, [*names, "parent", "size"], low, high)
    tables: dict[str, list[str]] = {"name": [], "arg": []}
    for column in tables.keys() & read.keys():
        if np.any(read[column] < -1) or np.any(read[column] >= stored.about["tables"][column]):
            raise damaged()
        if (low, high) == (0, stored.rows):
            tables[column] = read_strings(con, stored.key, f"{column}s")
        else:
            used, read[column] = _renumbered(read[column])
            tables[column] = read_strings(con, stored.key, f"{column}s", used)
    about = stored.about
    for column, most in (("layer", len(Layer)), ("lane", len(about["lanes"]))):  # compiled loops take both for places
        if column in read and np.any((read[column] < 0) | (read[column] >= most)):
            raise damaged()
    columns = {name: read.get(name, np.empty(0, dtype=dtype)) for name, dtype in TRACE_COLUMNS.items()}
    trace = Trace(
        **columns,
        names=tables["name"],
        lanes=[Lane(*lane) for lane in about["lanes"]],
        categories=about["categories"],
        args=tables["arg"],
        origin=_origin(about["origin"]),
        problems=about["problems"],
        events_in_file=about["events_in_file"],
        events_other=about["events_other"],
    )
    row = np.arange(high - low, dtype=np.int32)
    above = row - read["parent"]
    parent: Int32 = np.where((read["parent"] == 0) | (above < 0), np.int32(ROOT), above)
    stop: Int32 = np.minimum(row + read["size"], np.int32(high - low))
    return Tree(trace, parent, stop, about["crossings"], about["unlaunched"])


def read_arguments(con: sqlite3.Connection, stored: ColumnSet, codes: Int32) -> list[str]:
    """The arguments of these codes as text; empty for -1, which is none."""
    used = np.unique(codes[codes >= 0])
    if len(used) and int(used[-1]) >= stored.about["tables"]["arg"]:
        raise damaged()
    texts = (
        dict(zip(used.tolist(), read_strings(con, stored.key, "args", used.tolist()), strict=True)) if len(used) else {}
    )
    return [texts.get(one, "") for one in codes.tolist()]


def _renumbered(codes: Int32) -> tuple[list[int], Int32]:
    """The distinct codes in use, ascending, and the codes as positions among them; -1 stays."""
    present = np.bincount(codes + 1, minlength=1)  # five times as fast as np.unique: codes are small
    present[0] = 0
    place = np.cumsum(present > 0, dtype=np.int32) - np.int32(1)
    return (np.flatnonzero(present) - 1).tolist(), place[codes + 1]


def _origin(said: Mapping[str, Any]) -> Origin:
    """The origin that ``asdict`` gave to JSON: lists become tuples again."""
    groups: Any = tuple((name, tuple(ranks)) for name, ranks in said["groups"])
    changed: dict[str, Any] = {**said, "devices": tuple(said["devices"]), "groups": groups}
    return Origin(**changed)
