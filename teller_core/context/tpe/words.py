"""What a span is called in Trace Pair Encoding: its layer and its name without what differs from call to call.

C++ names lose their template arguments and parameters, as in the reference rule of the paper (section 4.2).
"""

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from teller_core.context.tpe.forest import NONE
from teller_core.data.compiled import compiled
from teller_core.data.plain_names import NAME_LENGTH, plain_name
from teller_core.data.table import Int32, Int64, UInt8
from teller_core.data.trace import Layer, Trace

CPLUSPLUS = (Layer.RUNTIME, Layer.KERNEL, Layer.COMMUNICATION)
NOISE = re.compile(r"^(?:void|int|bool) |\(anonymous namespace\)::")
ARGUMENTS = re.compile(r"[<(].*", re.DOTALL)
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""What does not show: it drives terminals, hides text, or is no text. What Python calls printable differs by its version."""
FIRST_WORD = re.compile(r"[A-Za-z]+")
LAYERS = tuple(layer.name.lower() for layer in Layer)
LAYER_COUNT = len(LAYERS)
REMEMBERED = 1 << 13
"""Words that are made once: the steps of a service call the same things again and again."""


@lru_cache(REMEMBERED)
def word(name: str, layer: int) -> str:
    """The word of one span: ``layer name``, with a blank for what does not show."""
    name = plain_name(HIDDEN.sub(" ", name[: 4 * NAME_LENGTH]), layer)
    if layer in CPLUSPLUS:
        name = ARGUMENTS.sub("", NOISE.sub("", name)) or name
    return f"{LAYERS[layer]} {' '.join(name[:NAME_LENGTH].split())}"


def is_word(text: str) -> bool:
    """Whether :func:`word` may have made it."""
    layer, blank, name = text.partition(" ")
    return layer in LAYERS and bool(blank) and len(name) <= NAME_LENGTH and HIDDEN.search(name) is None


def words(trace: Trace) -> tuple[list[str], Int32]:
    """The distinct words of ``trace``, as they first occur, and, int32 a row, the position of its word among them."""
    found: dict[str, int] = {}
    distinct, of = calls(trace)
    texts = map(word, *names_and_layers(trace.names, distinct))
    number = [found.setdefault(text, len(found)) for text in texts]
    if len(found) < len(number):
        of = np.take(np.array(number, dtype=np.int32), of)
    return list(found), of


def names_and_layers(names: Sequence[str], called: Int64) -> tuple[list[str], list[int]]:
    """What these calls are of."""
    name, layer = np.divmod(called, LAYER_COUNT)
    return list(map(names.__getitem__, name.tolist())), layer.tolist()


def calls(trace: Trace) -> tuple[Int64, Int32]:
    """The distinct calls of ``trace`` (int64, ``name * LAYER_COUNT + layer``), as they first occur, and, int32 a row, the
    position of its own among them.
    """
    called = min(len(trace), len(trace.names) * LAYER_COUNT)
    table = np.full((1 << max(4, (2 * called).bit_length()), 2), NONE, dtype=np.int64)
    distinct, of = np.empty(called, dtype=np.int64), np.empty(len(trace), dtype=np.int32)
    count = int(_pairs(trace.name, trace.layer, table, distinct, of))
    return distinct[:count], of


@compiled
def _pairs(name: Int32, layer: UInt8, table: Int64, distinct: Int64, of: Int32) -> int:
    """Number the pairs of name and layer as they first occur, into ``distinct`` (``name * LAYER_COUNT + layer``) and, a row,
    ``of``; returns how many there are. ``table`` int64 [a power of two, 2], all NONE: an open hash table of pairs and numbers.
    """
    mask, count = len(table) - 1, 0
    for row in range(len(name)):
        pair = int(name[row]) * LAYER_COUNT + int(layer[row])
        place = (pair ^ (pair >> 13)) & mask
        while table[place, 0] != NONE and table[place, 0] != pair:
            place = (place + 1) & mask
        if table[place, 0] == NONE:
            table[place, 0], table[place, 1] = pair, count
            distinct[count] = pair
            count += 1
        of[row] = table[place, 1]
    return count


@lru_cache(REMEMBERED)
def bucket(text: str, buckets: int) -> int:
    """Where an unknown word goes: 0 to ``len(LAYERS) * buckets``, by its layer and a hash of the first run of letters in its
    name, so that variants of one kernel meet.
    """
    layer, _, name = text.partition(" ")
    letters = FIRST_WORD.search(name)
    piece = letters.group() if letters else name
    return LAYERS.index(layer) * buckets + zlib.crc32(piece.encode("utf-8", "replace")) % buckets
