"""What spans are called, how often and where each longest one is: one row a name and layer, beside the spans of a rank.

A million spans have some thousand names. Whoever looks for a name reads these rows and no span: a tenth of a millisecond
where decoding the spans' own columns of names takes fifty. They take 20 bytes a name, packed.
"""

import sqlite3
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int32, Int64, UInt8
from teller_core.data.trace import Layer
from teller_core.errors import StoreError, UnknownName
from teller_core.store.chunks import LEVEL, damaged
from teller_core.store.columns import ColumnSet, find_set, read_values, write_set
from teller_core.store.spans import KIND as SPANS
from teller_core.store.spans import find_tree

KIND = "span_names"


class SpanNames(NamedTuple):
    """Ordered by ``name`` and ``layer``: int32 into the names of the rank's spans, uint8. int64 each: how many ``calls``,
    ``total`` ns of them, ``row`` of the longest (the first of several), and its ``start`` and ``dur`` in ns, by its rank's clock.
    """

    name: Int32
    layer: UInt8
    calls: Int64
    total: Int64
    row: Int64
    start: Int64
    dur: Int64


def names_of(name: Int32, layer: UInt8, start: Int64, dur: Int64) -> SpanNames:
    """The names of spans given as columns, in the order of their rows."""
    code = name.astype(np.int64) * len(Layer) + layer
    count = np.bincount(code)
    used = np.flatnonzero(count)
    place = np.cumsum(count > 0) - 1
    code = place[code]
    total, longest = np.zeros(len(used), np.int64), np.full(len(used), np.iinfo(np.int64).min)
    np.add.at(total, code, dur)  # in integers: sums of times have more digits than a float
    np.maximum.at(longest, code, dur)
    row = np.zeros(len(used), np.int64)
    as_long = np.flatnonzero(dur == longest[code])[::-1]
    row[code[as_long]] = as_long  # the first row is assigned last, and stays
    names, layers = (used // len(Layer)).astype(np.int32), (used % len(Layer)).astype(np.uint8)
    return SpanNames(names, layers, count[used], total, row, start[row], longest)


def write_names(con: sqlite3.Connection, capture: int, rank: int, found: SpanNames, level: int) -> None:
    """Insert the names of the rank at position ``rank``."""
    values = dict(found._asdict())
    write_set(con, capture, KIND, rank=rank, values=values, strings={}, about={}, level=level)


def read_names(con: sqlite3.Connection, capture: int, rank: int) -> SpanNames:
    """Those of a rank that has spans."""
    stored = find_set(con, capture, KIND, rank)
    spans = find_tree(con, capture, rank)
    if stored is None:
        raise damaged()
    found = SpanNames(**read_values(con, stored.key, SpanNames._fields, 0, stored.rows))
    if np.any((found.name < 0) | (found.name >= spans.about["tables"]["name"]) | (found.layer >= len(Layer))):
        raise damaged()
    return found


def fill(con: sqlite3.Connection) -> None:
    """Make those of captures that were stored before there were any. Spans that are damaged have none."""
    sql = "SELECT capture, rank FROM column_sets WHERE kind = ? ORDER BY key"
    for capture, rank in con.execute(sql, (SPANS,)).fetchall():
        try:
            found = _of_spans(con, find_tree(con, capture, rank))
        except (StoreError, UnknownName):
            continue
        write_names(con, capture, rank, found, LEVEL)


def _of_spans(con: sqlite3.Connection, spans: ColumnSet) -> SpanNames:
    read = read_values(con, spans.key, ["name", "layer", "start", "dur"], 0, spans.rows)
    if np.any(read["name"] < 0) or np.any(read["layer"] >= len(Layer)):
        raise damaged()
    return names_of(**read)
