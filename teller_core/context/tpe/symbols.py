"""The symbols of all rows of a tree: a name is looked at once a trace, not once a row."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from teller_core.context.tpe.forest import NONE
from teller_core.context.tpe.words import LAYER_COUNT, REMEMBERED, calls, names_and_layers, word
from teller_core.data.compiled import compiled
from teller_core.data.table import Int32, UInt8
from teller_core.data.trace import Trace

MOST_NAMES = 1 << 16
MOST_TRACES = 64
"""So many traces, with so many names together, are remembered besides the last one: the ranks of a capture are asked about in
turn."""


class Symbols:
    """Gives the symbols of traces by ``symbol``, which gives that of a word, and remembers those of all names of the traces
    that it was last asked about.
    """

    def __init__(self, symbol: Callable[[str], int]) -> None:
        def symbol_of(name: str, layer: int) -> int:
            return symbol(word(name, layer))

        self._symbol = lru_cache(REMEMBERED)(symbol_of)
        self._recent: tuple[_Names, ...] = ()

    def of(self, trace: Trace) -> Int32:
        """int32 a row: its symbol."""
        names = self._names(trace.names)
        symbol = np.empty(len(trace), dtype=np.int32)
        row = int(_look_up((trace.name, trace.layer), names.table, symbol, 0))
        if row < len(trace):
            called = calls(trace)[0]
            found = map(self._symbol, *names_and_layers(trace.names, called))
            names.table[called] = np.fromiter(found, np.int32, len(called))
            _look_up((trace.name, trace.layer), names.table, symbol, row)
        return symbol

    def remembered(self) -> list[Sequence[str]]:
        """The names of each trace that is remembered."""
        return [each.names for each in self._recent]

    def _names(self, names: Sequence[str]) -> "_Names":
        for each in self._recent:
            if each.names is names:
                return each
        made, total = _Names(names, np.full(len(names) * LAYER_COUNT, NONE, dtype=np.int32)), len(names)
        kept = [made]
        for each in self._recent[:MOST_TRACES]:
            total += len(each.names)
            kept += [each] * (total <= MOST_NAMES)
        self._recent = tuple(kept)
        return made


class _Names(NamedTuple):
    """The names of a trace, and what is known of them: ``table`` int32 [names * layers]: the symbol, NONE for not known yet."""

    names: Sequence[str]
    table: Int32


@compiled
def _look_up(called: tuple[Int32, UInt8], table: Int32, symbol: Int32, row: int) -> int:
    """Write symbols from ``row`` on, up to the first call that ``table`` does not know. Returns the row of that, or the end."""
    name, layer = called
    while row < len(name):
        known = table[int(name[row]) * LAYER_COUNT + int(layer[row])]
        if known == NONE:
            break
        symbol[row] = known
        row += 1
    return row
