"""Where a span stands: its name and its chain of operators, modules and annotations, alike in every step and layer."""

from hashlib import blake2b

import numpy as np

from teller_core.data.plain_names import NAME_LENGTH, is_frame, plain_name
from teller_core.data.table import Int32, Int64
from teller_core.data.trace import Layer, Trace
from teller_core.data.tree import ROOT, Tree

KINDS = len(Layer)
PLACE_LENGTH = 240
BETWEEN = " > "


def symbols(trace: Trace) -> tuple[Int32, Int64, Int64]:
    """``kind`` int32 a row; and a kind each, int64: a number for its plain name (never 0), and the same as a link of chains:
    0 for Python frames that are no modules.
    """
    kind = trace.name * np.int32(KINDS) + trace.layer
    used = np.flatnonzero(np.bincount(kind, minlength=KINDS * len(trace.names)))
    kinds: list[tuple[int, int]] = [divmod(int(key), KINDS) for key in used]
    table = np.array([_digest(trace.names[n], layer) for n, layer in kinds], dtype=np.int64)
    frame = np.array([is_frame(trace.names[n], layer) for n, layer in kinds], dtype=np.bool_)
    lookup = np.zeros(KINDS * len(trace.names), dtype=np.int32)
    lookup[used] = np.arange(len(used), dtype=np.int32)
    return lookup[kind], table, np.where(frame, 0, table)


def place_of(tree: Tree, row: int, top: int, path: int, passed: dict[int, int]) -> str:
    """The chain above ``row`` down from ``top``, as text. What is too long loses its beginning and gains a short hash of the
    whole, so that equal text means an equal place.

    ``passed``: shared by all calls for one tree, empty at first. It remembers what lies above Python frames, so that each
    is passed over once, however many rows lie below it.
    """
    trace = tree.trace
    names: list[str] = []
    length = 0
    above = _above(tree, row, passed)
    while above != ROOT and above >= top and length <= PLACE_LENGTH + len(BETWEEN):
        name = plain_name(trace.names[int(trace.name[above])], int(trace.layer[above]))[:NAME_LENGTH]
        names.append(name)
        length += len(name) + len(BETWEEN)
        above = _above(tree, above, passed)
    text = BETWEEN.join(reversed(names))
    return text if len(text) <= PLACE_LENGTH else f"{path:016x}{BETWEEN}{text[-PLACE_LENGTH:].partition(BETWEEN)[2]}"


def _above(tree: Tree, row: int, passed: dict[int, int]) -> int:
    """The nearest row above ``row`` that is no Python frame, ROOT where there is none."""
    trace = tree.trace
    frames: list[int] = []
    above = int(tree.parent[row])
    while above != ROOT and is_frame(trace.names[int(trace.name[above])], int(trace.layer[above])):
        frames.append(above)
        above = passed[above] if above in passed else int(tree.parent[above])
    passed.update(dict.fromkeys(frames, above))
    return above


def step_rows(rows: int, step: Int32, low: Int32, high: Int32) -> tuple[Int32, Int32]:
    """int32 a row: the step it belongs to, -1 for none, and the first row of that step (the row itself for none).

    Steps own ``range(low, high)``; of nested ranges the inner one owns its rows.
    """
    order = np.lexsort((-high, low))
    low, high, step = low[order], high[order], step[order]
    edge = np.stack([low, high], axis=1).ravel()
    if np.all(edge[1:] >= edge[:-1]):  # no range in another: one repeat does it
        length = np.diff(edge, prepend=0, append=rows)
        owner = np.repeat(np.append(np.stack([np.full(len(step), -1), step], axis=1).ravel(), -1), length)
        top = np.repeat(np.append(np.stack([np.full(len(step), -1), low], axis=1).ravel(), -1), length)
    else:
        owner, top = np.full(rows, -1), np.full(rows, -1)
        for i in np.argsort(low - high, kind="stable").tolist():
            owner[low[i] : high[i]], top[low[i] : high[i]] = step[i], low[i]
    return owner.astype(np.int32), np.where(top < 0, np.arange(rows), top).astype(np.int32)


def own_time(tree: Tree) -> Int64:
    """int64 ns: what each row takes itself. On the host: its time less that of its children on the same lane. On a device:
    what it adds to the end of its stream, so that of two kernels that overlap the second counts what it adds.
    """
    own = tree.self_time()
    trace = tree.trace
    device = np.flatnonzero(trace.on_device)
    if not len(device):
        return own
    order = device[np.lexsort((trace.start[device], trace.lane[device]))]
    start, lane = trace.start[order], trace.lane[order].astype(np.int64)
    end = start + trace.dur[order]
    zero = int(start.min())
    shift = lane * (int(end.max()) - zero + 1)  # lanes one after another: one running maximum serves all of them
    reach = np.maximum.accumulate(end - zero + shift)
    before = np.append(np.int64(-1), reach[:-1])
    own[order] = np.maximum(end - zero + shift - np.maximum(start - zero + shift, before), 0)
    return own


def _digest(name: str, layer: int) -> int:
    text = plain_name(name, layer).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little", signed=True) | 1
