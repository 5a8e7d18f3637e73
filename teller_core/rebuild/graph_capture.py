"""Graphs as they were captured: which operators launched the work that a replayed graph repeats without them.

While a stream is captured, launches are recorded and nothing runs: a profile of the capture has the operators, one of the
execution the kernels, all below one graph launch. Both have them in one order, which is what joins them: by the kernels'
names where the calls tell them (HIP), by their number and order alone where they do not (CUDA) and one stream runs them.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from teller_core.data.plain_names import MODULE
from teller_core.data.replays import GRAPH_LAUNCH
from teller_core.data.table import Int32, Int64
from teller_core.data.trace import Layer, Trace
from teller_core.data.tree import ROOT, Tree
from teller_core.rebuild.sequences import aligned

BEGIN = re.compile(r"(?:cuda|hip|mu)?StreamBeginCapture|cuStreamBeginCapture")
END = re.compile(r"(?:cuda|hip|mu)?StreamEndCapture|cuStreamEndCapture")
LAUNCH = re.compile(r"(?:cuda|hip|cu|mu)\w*Launch(?:Cooperative)?Kernel")
COPY = re.compile(r"(?:cuda|hip|cu|mu)Memcpy")
FILL = re.compile(r"(?:cuda|hip|cu|mu)Memset")
LABEL = re.compile(r"capture", re.IGNORECASE)
"""How annotations begin that an engine opens around one capture: ``capture_32_FULL``."""
COPIED, FILLED = "(copy)", "(fill)"
"""Instead of the names of copies and fills, which calls and activities call differently."""
LEAST_SHARE = 0.9
"""A replay that shares less of its kernels with a graph is another graph's."""
PATH_LAYERS = (Layer.ENGINE, Layer.OPERATOR, Layer.COMMUNICATION)


@dataclass(frozen=True)
class Graph:
    """A captured graph: ``names`` of its kernels, copies and fills in order, empty where calls do not tell them.

    ``path``: rows of the capture's trace that led to them, ascending, ``above`` int32 the position in ``path`` of the one over
    each (-1), ``node`` int32 a kernel the one right above it (-1).
    """

    tree: Tree
    label: str
    names: Sequence[str]
    path: Int64
    above: Int32
    node: Int32


class Replay(NamedTuple):
    """A graph launch: its ``row``; all below it is device work. ``names`` as in :class:`Graph`; ``streams``: how many ran it."""

    row: int
    names: tuple[str, ...]
    streams: int


class Fit(NamedTuple):
    """Which kernel of the graph each of a replay's is, -1 for none, and whether names told so, not their order alone."""

    graph: int
    kernel: Int64
    named: bool


def graphs_of(tree: Tree) -> list[Graph]:
    """The graphs whose capture ``tree`` recorded, by time."""
    trace = tree.trace
    captures = list(_captures(trace))
    if not captures:
        return []
    adding = np.array([any(kind.match(name) for kind in (LAUNCH, COPY, FILL)) for name in trace.names], dtype=np.bool_)
    rows = np.flatnonzero(adding[trace.name] & (trace.layer == Layer.RUNTIME))
    rows = rows[np.argsort(trace.start[rows], kind="stable")]
    found: list[Graph] = []
    passed: dict[int, int] = {}
    for begin, end in captures:
        low, high = np.searchsorted(trace.start[rows], [trace.start[begin], trace.start[end] + 1])
        calls = rows[low:high]
        calls = calls[trace.lane[calls] == trace.lane[begin]].tolist()
        if calls:
            found.append(_graph(tree, begin, [(row, _launched(trace, row)) for row in calls], passed))
    return found


def replays_of(tree: Tree) -> Iterator[Replay]:
    """The graph launches of ``tree`` that have device work, and nothing else, below them."""
    trace = tree.trace
    launch = np.array([GRAPH_LAUNCH.match(name) is not None for name in trace.names], dtype=np.bool_)
    if not launch.any():
        return
    device = trace.on_device
    rows = np.flatnonzero(launch[trace.name] & (trace.layer == Layer.RUNTIME) & (tree.stop - np.arange(len(tree)) > 1))
    kinds = [
        COPIED if "memcpy" in word else FILLED if "memset" in word else "" for word in map(str.lower, trace.categories)
    ]
    for row in rows.tolist():
        below = slice(row + 1, int(tree.stop[row]))
        if bool(device[below].all()) and bool((tree.parent[below] == row).all()):
            pairs = zip(trace.category[below].tolist(), trace.name[below].tolist(), strict=True)
            names = tuple(kinds[int(category)] or trace.names[int(name)] for category, name in pairs)
            yield Replay(row, names, len(np.unique(trace.lane[below])))


def fit(replay: Replay, graphs: Sequence[Graph]) -> Fit | None:
    """The graph that ``replay`` repeats: the one with its kernels' names in its order, or most of them; else the only one, but
    for copies of itself, with as many kernels, where calls tell no names. None for none.
    """
    told = [i for i, graph in enumerate(graphs) if any(name not in ("", COPIED, FILLED) for name in graph.names)]
    for i in told:
        if tuple(graphs[i].names) == replay.names:
            return Fit(i, np.arange(len(replay.names), dtype=np.int64), True)
    best = _nearest(replay, graphs, told)
    if best is not None:
        return best
    alike = [i for i, graph in enumerate(graphs) if i not in told and _same_kinds(graph.names, replay.names)]
    paths = {_spelled(graphs[i]) for i in alike}
    if len(paths) == 1 and replay.streams == 1:
        return Fit(alike[0], np.arange(len(replay.names), dtype=np.int64), False)
    return None


def _captures(trace: Trace) -> Iterator[tuple[int, int]]:
    """(row of the call that began a capture, row of the one that ended it) on each thread."""
    opening = np.array([BEGIN.match(name) is not None for name in trace.names], dtype=np.bool_)
    closing = np.array([END.match(name) is not None for name in trace.names], dtype=np.bool_)
    rows = np.flatnonzero((opening | closing)[trace.name] & (trace.layer == Layer.RUNTIME))
    begun: dict[int, int] = {}
    for row in rows[np.argsort(trace.start[rows], kind="stable")].tolist():
        lane = int(trace.lane[row])
        if opening[trace.name[row]]:
            begun[lane] = row
        elif lane in begun:
            yield begun.pop(lane), row


def _launched(trace: Trace, row: int) -> str:
    """What the call at ``row`` adds to a graph: a kernel's name, empty where it does not tell, or a copy or a fill."""
    call = trace.names[int(trace.name[row])]
    return COPIED if COPY.match(call) else FILLED if FILL.match(call) else _kernel(trace, row)


def _kernel(trace: Trace, row: int) -> str:
    arg = int(trace.arg[row])
    if arg < 0:
        return ""
    try:
        said: object = json.loads(trace.args[arg])
    except (ValueError, RecursionError):
        return ""
    name: object = said.get("kernel") if isinstance(said, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] -- JSON
    return name if isinstance(name, str) else ""


def _graph(tree: Tree, begin: int, calls: Sequence[tuple[int, str]], passed: dict[int, int]) -> Graph:
    """``passed`` as in :func:`_above`."""
    trace = tree.trace
    label, top = "", begin
    while (top := _above(tree, top, passed)) != ROOT:
        label = trace.names[int(trace.name[top])]
        if trace.layer[top] == Layer.ENGINE and LABEL.match(label):
            break
    chains = [_chain(tree, row, top, passed) for row, _ in calls]
    path = sorted({row for chain in chains for row in chain})
    at = {row: i for i, row in enumerate(path)}
    above = np.full(len(path), -1, dtype=np.int32)
    for chain in chains:
        for over, row in pairwise(chain):
            above[at[row]] = at[over]
    node = np.array([at[chain[-1]] if chain else -1 for chain in chains], dtype=np.int32)
    names = [name for _, name in calls]
    return Graph(tree, label if top != ROOT else "", names, np.array(path, dtype=np.int64), above, node)


def _chain(tree: Tree, row: int, top: int, passed: dict[int, int]) -> list[int]:
    """Operators, annotations and modules above ``row``, the outermost first, down from below ``top``."""
    rows: list[int] = []
    while (row := _above(tree, row, passed)) not in (top, ROOT):
        rows.append(row)
    return rows[::-1]


def _above(tree: Tree, row: int, passed: dict[int, int]) -> int:
    """The nearest operator, annotation or module above ``row``, ROOT for none. ``passed`` remembers what lies above the other
    frames, so that each is passed over once; it is shared by all calls for one tree.
    """
    trace = tree.trace
    over: list[int] = []
    above = int(tree.parent[row])
    while above != ROOT and not _leads(trace, above):
        over.append(above)
        above = passed[above] if above in passed else int(tree.parent[above])
    passed.update(dict.fromkeys(over, above))
    return above


def _leads(trace: Trace, row: int) -> bool:
    layer = trace.layer[row]
    return layer in PATH_LAYERS or (layer == Layer.PYTHON and trace.names[int(trace.name[row])].startswith(MODULE))


def _nearest(replay: Replay, graphs: Sequence[Graph], told: Sequence[int]) -> Fit | None:
    """The graph that shares most kernels with ``replay`` in one order, at least LEAST_SHARE of them."""
    number: dict[str, int] = {}
    mine = np.array([number.setdefault(name, len(number)) for name in replay.names], dtype=np.int32)
    have = Counter(replay.names)
    shared = {i: (have & Counter(graphs[i].names)).total() for i in told}
    best: Fit | None = None
    found = LEAST_SHARE * len(replay.names)
    for i in sorted(told, key=lambda i: -shared[i]):
        if shared[i] < found or (best is not None and shared[i] <= found):
            break
        theirs = np.array([number.setdefault(name, len(number)) for name in graphs[i].names], dtype=np.int32)
        kernel = aligned(mine, theirs)
        if (count := int((kernel >= 0).sum())) >= found:
            best, found = Fit(i, kernel, True), count
    return best


def _same_kinds(graph: Sequence[str], replay: Sequence[str]) -> bool:
    """Whether both have kernels, copies and fills at the same places."""
    if len(graph) != len(replay):
        return False
    return all(a == (b if b in (COPIED, FILLED) else "") for a, b in zip(graph, replay, strict=True))


def _spelled(graph: Graph) -> tuple[object, ...]:
    """What tells graphs apart by the names that lead to their kernels."""
    trace = graph.tree.trace
    names = tuple(trace.names[n] for n in trace.name[graph.path].tolist())
    return names, graph.above.tobytes(), graph.node.tobytes()
