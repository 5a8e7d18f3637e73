"""Shapes and types of operators whose profile did not record them, from the execution trace of the same process.

Both list the operators of each thread in the order in which they began, and that order is what joins them: the profiler's
``External id`` counts operators too, but not from the same one on, and in older files it is the correlation id of a call
(in a real pair of torch 2.0, 79 of 1,672 equal ids are of one operator, all 1,672 are in one order).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from teller_core.data.records import OperatorNode, known
from teller_core.data.shapes import TOLD
from teller_core.data.table import Int32, Int64
from teller_core.data.trace import Trace
from teller_core.data.tree import Tree
from teller_core.rebuild.sequences import aligned, offsets

NOTED = frozenset({"cpu_op", "operator", "user_annotation"})
"""Categories of the spans that an execution trace lists as well."""
COLLECTIVE = '"Collective name"'
"""What newer profilers tell of a collective, older ones leave to the execution trace."""
LEAST_SHARE = 0.5
"""Threads that share less of their operators, of the shorter one, are not the same."""


class Shaped(NamedTuple):
    """A tree with what an execution trace gave to it: operators ``matched``, and of these ``used``, which had no shapes.
    ``ambiguous``: operators that may be any of several with other shapes.
    """

    tree: Tree
    matched: int
    used: int
    ambiguous: int


class _Pairs(NamedTuple):
    row: Int64
    node: list[OperatorNode]
    ambiguous: int


def with_shapes(tree: Tree, operators: Sequence[OperatorNode]) -> Shaped:
    """``tree`` with the arguments of ``operators``, which are those of its process, where its spans have none."""
    number: dict[str, int] = {}
    threads = _threads(operators)
    sequences = {
        thread: np.array([number.setdefault(node.name, len(number)) for node in nodes], dtype=np.int32)
        for thread, nodes in threads.items()
    }
    lanes = _lanes(tree, number)
    found = _Pairs(np.empty(0, dtype=np.int64), [], 0)
    free = dict(lanes)
    for thread in sorted(threads, key=lambda one: -len(threads[one])):
        lane = _likest(sequences[thread], {at: number_of for at, (_, number_of) in free.items()})
        if lane is None:
            continue
        rows, names = free.pop(lane)
        pairs = _paired(threads[thread], sequences[thread], rows, names)
        found = _Pairs(np.append(found.row, pairs.row), [*found.node, *pairs.node], found.ambiguous + pairs.ambiguous)
    changed, used = _with_arguments(tree.trace, found)
    return Shaped(replace(tree, trace=changed), len(found.node), used, found.ambiguous)


def _threads(operators: Sequence[OperatorNode]) -> dict[int, list[OperatorNode]]:
    """Operators by thread, in the order in which they began."""
    threads: defaultdict[int, list[OperatorNode]] = defaultdict(list)
    for node in operators:
        if node.record > 0:
            threads[node.thread].append(node)
    for nodes in threads.values():
        nodes.sort(key=lambda node: node.record)
    return dict(threads)


def _lanes(tree: Tree, number: dict[str, int]) -> dict[int, tuple[Int64, Int32]]:
    """By lane, the rows that an execution trace would list, in their order, and a number for the name of each."""
    trace = tree.trace
    noted = np.array([category.lower() in NOTED for category in trace.categories], dtype=np.bool_)
    host = np.array([not lane.device for lane in trace.lanes], dtype=np.bool_)
    if not noted.any() or not host.any():
        return {}
    rows = np.flatnonzero(noted[trace.category] & host[trace.lane])
    of_name = np.full(len(trace.names), -1, dtype=np.int32)
    for used in map(int, np.unique(trace.name[rows])):
        of_name[used] = number.setdefault(trace.names[used], len(number))
    lanes = trace.lane[rows]
    return {
        lane: (rows[lanes == lane].astype(np.int64), of_name[trace.name[rows[lanes == lane]]])
        for lane in np.unique(lanes).tolist()
    }


def _likest(sequence: Int32, lanes: Mapping[int, Int32]) -> int | None:
    """The lane that shares most names with ``sequence``, counted; None where none shares LEAST_SHARE."""
    size = int(max([sequence.max(initial=0), *(int(names.max(initial=0)) for names in lanes.values())])) + 1
    have = np.bincount(sequence, minlength=size)
    shared = {lane: int(np.minimum(have, np.bincount(names, minlength=size)).sum()) for lane, names in lanes.items()}
    best = max(shared, key=lambda lane: shared[lane], default=None)
    if best is None or shared[best] < LEAST_SHARE * min(len(sequence), len(lanes[best])):
        return None
    return best


def _paired(nodes: Sequence[OperatorNode], sequence: Int32, rows: Int64, names: Int32) -> _Pairs:
    """The rows that have a node, each with it."""
    places = offsets(names, sequence) if len(names) <= len(sequence) else []
    if len(places) > 1:
        return _everywhere(nodes, rows, places)
    if places:
        return _Pairs(rows, list(nodes[places[0] : places[0] + len(rows)]), 0)
    to = aligned(names, sequence)
    matched = np.flatnonzero(to >= 0)
    return _Pairs(rows[matched], [nodes[i] for i in to[matched].tolist()], 0)


def _everywhere(nodes: Sequence[OperatorNode], rows: Int64, places: Sequence[int]) -> _Pairs:
    """Rows that stand at several places among the nodes: each has a node where all agree on the arguments."""
    sure = [k for k in range(len(rows)) if len({nodes[place + k].arguments for place in places}) == 1]
    return _Pairs(rows[sure], [nodes[places[0] + k] for k in sure], len(rows) - len(sure))


def _with_arguments(trace: Trace, pairs: _Pairs) -> tuple[Trace, int]:
    """``trace`` with the arguments of the nodes where its own tell no shapes, and how many rows got any."""
    texts = list(trace.args)
    number = {text: i for i, text in reversed(list(enumerate(texts)))}
    lacks_shapes = [TOLD not in text for text in texts]
    lacks_name = [COLLECTIVE not in text for text in texts]
    arg = trace.arg.copy()
    merged: dict[tuple[int, str], int] = {}
    used = 0
    for row, node in zip(pairs.row.tolist(), pairs.node, strict=True):
        own = int(arg[row])
        lacks = own < 0 or lacks_shapes[own] or (node.collective and lacks_name[own])
        if not node.arguments or not lacks:
            continue
        key = (own, node.arguments)
        if key not in merged:
            text = node.arguments if own < 0 else _merged(texts[own], node.arguments)
            merged[key] = number.setdefault(text, len(texts))
            if merged[key] == len(texts):
                texts.append(text)
        arg[row] = merged[key]
        used += 1
    return replace(trace, arg=arg, args=texts), used


def _merged(own: str, more: str) -> str:
    """One object of both; what the profiler itself said stays."""
    try:
        said: object = json.loads(own)
        added = cast("dict[str, object]", json.loads(more))
    except (ValueError, RecursionError):
        return own
    if not isinstance(said, dict):
        return own
    return json.dumps({**added, **cast("dict[str, object]", said)}, separators=(",", ":"))


def of_process(operators: Sequence[OperatorNode]) -> dict[tuple[str, int, int], list[OperatorNode]]:
    """Operators by host, pid and rank (-1 for none) of their process."""
    found: defaultdict[tuple[str, int, int], list[OperatorNode]] = defaultdict(list)
    for node in operators:
        process = node.process
        found[process.host, process.pid, -1 if process.rank is None else process.rank].append(node)
    return dict(found)


def count_times(operators: Sequence[OperatorNode], problems: Counter[str]) -> None:
    """Count operators with a duration and no start: where they stand in time follows from their order alone."""
    problems["starts_not_recorded"] += sum(known(node.dur) and not known(node.start) for node in operators)
