"""The symbols of all rows of a tree: a name is looked at once a trace, not once a row."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock

import numpy as np

from teller_core.context.tpe.forest import NONE
from teller_core.context.tpe.words import LAYER_COUNT, REMEMBERED, calls, names_and_layers, word
from teller_core.data.compiled import compiled
from teller_core.data.table import Int32, Int64, UInt8
from teller_core.data.trace import Trace

MOST_NAMES = 1 << 16
MOST_TRACES = 16
"""So many traces, with so many names together, are remembered besides the last one: the ranks of a capture are asked about in
turn."""


class Symbols:
    """Gives the symbols of traces, and remembers those of all names of the traces that it was last asked about.

    ``symbol``: gives the symbol of a word; those from ``known`` on stand for unknown words.
    """

    def __init__(self, symbol: Callable[[str], int], known: int) -> None:
        def symbol_of(name: str, layer: int) -> int:
            return symbol(word(name, layer))

        self._symbol = lru_cache(REMEMBERED)(symbol_of)
        self._known = known
        self._recent: tuple[_Names, ...] = ()

    def of(self, trace: Trace) -> tuple[Int32, list[str]]:
        """int32 a row: its symbol; and, of rows whose word is unknown, the words, in the order of the rows."""
        last = self._names(trace.names)
        symbol, strange = np.empty((2, len(trace)), dtype=np.int32)
        row, count = _look_up((trace.name, trace.layer), last.table, (symbol, strange), (0, 0))
        if row < len(trace):
            self._learn(last, calls(trace)[0])
            _, count = _look_up((trace.name, trace.layer), last.table, (symbol, strange), (row, count))
        return symbol, last.texts_at(strange[:count])

    def remembered(self) -> list[Sequence[str]]:
        """The names of each trace that is remembered."""
        return [each.names for each in self._recent]

    def _names(self, names: Sequence[str]) -> "_Names":
        for each in self._recent:
            if each.names is names:
                return each
        made, total = _Names(names), len(names)
        kept = [made]
        for each in self._recent[:MOST_TRACES]:
            total += len(each.names)
            kept += [each] * (total <= MOST_NAMES)
        self._recent = tuple(kept)
        return made

    def _learn(self, last: "_Names", called: Int64) -> None:
        called = called[last.table[called, 0] == NONE]
        found = np.fromiter(map(self._symbol, *names_and_layers(last.names, called)), np.int32, len(called))
        last.add(called[found >= self._known])
        last.table[called, 0] = found


class _Names:
    """What is known of the names of one trace: ``table`` int32 [names * layers, 2]: the symbol, NONE for not known yet; of an
    unknown word its position in ``texts``, NONE for a known one.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.table = np.full((len(names) * LAYER_COUNT, 2), NONE, dtype=np.int32)
        self.texts: list[str] = []
        self.lock = Lock()

    def add(self, called: Int64) -> None:
        """Keep the words of these calls, which are unknown."""
        texts = list(map(word, *names_and_layers(self.names, called)))
        with self.lock:
            self.table[called, 1] = np.arange(len(self.texts), len(self.texts) + len(texts))
            self.texts += texts

    def texts_at(self, at: Int32) -> list[str]:
        """The words at these positions."""
        return np.take(np.array(self.texts, dtype=np.object_), at).tolist() if len(at) else []


@compiled
def _look_up(
    called: tuple[Int32, UInt8], table: Int32, made: tuple[Int32, Int32], begin: tuple[int, int]
) -> tuple[int, int]:
    """Write symbols and, of unknown words, positions, from row ``begin[0]`` and position ``begin[1]`` on, to the first call that
    ``table`` does not know. Returns the row of that one, or the end, and how many positions there are.
    """
    name, layer = called
    symbol, strange = made
    row, count = begin
    while row < len(name):
        call = int(name[row]) * LAYER_COUNT + int(layer[row])
        if table[call, 0] == NONE:
            break
        symbol[row] = table[call, 0]
        if table[call, 1] != NONE:
            strange[count] = table[call, 1]
            count += 1
        row += 1
    return row, count
