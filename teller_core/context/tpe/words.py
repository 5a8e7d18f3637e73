"""What a span is called in Trace Pair Encoding: its layer and its name without what differs from call to call.

C++ names lose their template arguments and parameters, as in the reference rule of the paper (section 4.2).
"""

import re
import zlib

from teller_core.data.plain_names import NAME_LENGTH, plain_name
from teller_core.data.trace import Layer, Trace

CPLUSPLUS = (Layer.RUNTIME, Layer.KERNEL, Layer.COMMUNICATION)
NOISE = re.compile(r"^(?:void|int|bool) |\(anonymous namespace\)::")
ARGUMENTS = re.compile(r"[<(].*", re.DOTALL)
FIRST_WORD = re.compile(r"[A-Za-z]+")
LAYERS = tuple(layer.name.lower() for layer in Layer)


def word(name: str, layer: int) -> str:
    """The word of one span: ``layer name``."""
    name = plain_name(name[: 4 * NAME_LENGTH], layer)
    if layer in CPLUSPLUS:
        name = ARGUMENTS.sub("", NOISE.sub("", name)) or name
    return f"{LAYERS[layer]} {' '.join(name[:NAME_LENGTH].split())}"


def words(trace: Trace) -> tuple[list[str], "list[int]"]:
    """The distinct words of ``trace`` and, a row, the position of its word among them."""
    found: dict[str, int] = {}
    pairs: dict[tuple[int, int], int] = {}
    of: list[int] = []
    for pair in zip(trace.name.tolist(), trace.layer.tolist(), strict=True):
        at = pairs.get(pair)
        if at is None:
            at = pairs[pair] = found.setdefault(word(str(trace.names[pair[0]]), pair[1]), len(found))
        of.append(at)
    return list(found), of


def bucket(text: str, buckets: int) -> int:
    """Where an unknown word goes: 0 to ``len(LAYERS) * buckets``, by its layer and a hash of the first run of letters in its
    name, so that variants of one kernel meet.
    """
    layer, _, name = text.partition(" ")
    letters = FIRST_WORD.search(name)
    piece = letters.group() if letters else name
    return LAYERS.index(layer) * buckets + zlib.crc32(piece.encode("utf-8", "replace")) % buckets
