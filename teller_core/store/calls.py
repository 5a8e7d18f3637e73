"""The calls of a rank by name, and which name stands below which: what a question about one operator reads."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from teller_core.data.calls import Calls, Edges, calls_of, edges_of
from teller_core.data.table import columns
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.store.chunks import damaged
from teller_core.store.columns import find_set, read_strings, read_values, write_set
from teller_core.store.spans import find_tree

CALLS, EDGES, FIRST = "calls", "call_edges", "call_starts"
SIDES = ("above", "below")
KEPT = tuple(field.name for field in fields(Calls) if field.name != "name")
"""The columns that are kept: where the calls of a name begin is told by how many each name has."""


class NamedCalls(NamedTuple):
    """The calls of some names, the edges at them, the table of names that both count in, and the devices of the process."""

    names: Sequence[str]
    calls: Calls
    edges: Edges
    devices: Sequence[str]


def write_calls(con: sqlite3.Connection, capture: int, rank: int, tree: Tree, level: int) -> None:
    """Insert the calls of the rank at position ``rank``, and what stands below what."""
    calls, edges = calls_of(tree), edges_of(tree)
    first = np.searchsorted(calls.name, np.arange(len(tree.trace.names) + 1)).astype(np.int64)
    kept = {CALLS: {name: getattr(calls, name) for name in KEPT}, EDGES: columns(edges), FIRST: {"start": first}}
    for kind, values in kept.items():
        write_set(con, capture, kind, rank=rank, values=values, strings={}, about={}, level=level)


def read_calls(
    con: sqlite3.Connection, capture: int, rank: int, wanted: Callable[[Sequence[str]], list[int]]
) -> NamedCalls | None:
    """The calls of the names that ``wanted`` of a rank's table of names gives, ascending, and the edges at them; None where the
    capture was stored without.
    """
    sets = {kind: find_set(con, capture, kind, rank) for kind in (CALLS, EDGES, FIRST)}
    calls, pairs, begins = sets[CALLS], sets[EDGES], sets[FIRST]
    if calls is None or pairs is None or begins is None:
        return None
    tree = find_tree(con, capture, rank)
    names = read_strings(con, tree.key, "names")
    first = read_values(con, begins.key, ["start"], 0, begins.rows)["start"]
    edges = read_values(con, pairs.key, ["above", "below", "count"], 0, pairs.rows)
    if len(first) != len(names) + 1 or any(np.any((edges[side] < 0) | (edges[side] >= len(names))) for side in SIDES):
        raise damaged()
    codes = wanted(names)
    parts = [read_values(con, calls.key, KEPT, int(first[code]), int(first[code + 1])) for code in codes]
    parts = parts or [read_values(con, calls.key, KEPT, 0, 0)]
    told = {name: np.concatenate([part[name] for part in parts]) for name in KEPT}
    if np.any((told["above"] < -1) | (told["above"] >= len(names)) | (told["layer"] >= len(Layer))):
        raise damaged()
    if np.any((told["operator"] < 0) | (told["operator"] >= len(names))):
        raise damaged()
    named = np.repeat(np.array(codes, dtype=np.int32), [int(first[code + 1] - first[code]) for code in codes])
    near = np.isin(edges["above"], codes) | np.isin(edges["below"], codes)
    near_edges = Edges(**{name: column[near] for name, column in edges.items()})
    return NamedCalls(names, Calls(named, **told), near_edges, tree.about["origin"]["devices"])
