"""Candidates as the paper's released code finds them: a mixture a family of operators, and how far from its middle calls lie.

Rebuilt from how it behaves: a diagonal Gaussian mixture of two components over nine numbers of a call; components that
hold 0.7 of the mass are central; a call's score is its posterior on them; of a family in a step the lowest quartile counts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from teller_core.context.tpe.words import word
from teller_core.data.table import Float64, Int32, Int64
from teller_core.data.trace import Layer, Trace
from teller_core.data.tree import Tree
from teller_core.lab.evaluation.learners import mixture
from teller_core.lab.evaluation.operator_times import Profiled
from teller_core.lab.evaluation.training import Scale, scale_of

COMPONENTS, MASS, QUARTILE, LEAST, MOST = 2, 0.7, 0.25, 0.65, 8
"""K, the mass of central components, the part of a family's calls that counts, the suspicion that is kept, candidates a step."""
LEAST_CALLS = 8
"""A mixture of fewer calls than this is none."""
MOST_CALLS = 5_000
MILLISECOND = 1e6


class Calls(NamedTuple):
    """The outermost operators of a profiled step: ``row`` int32 of the tree, their ``family``, ``value`` float64 [calls, 9]."""

    row: Int32
    family: Sequence[str]
    value: Float64


@dataclass(frozen=True)
class Family:
    """One family's mixture and which of its components are central."""

    scale: Scale
    model: Any
    central: Sequence[int]

    def score(self, value: Float64) -> Float64:
        """float64 a call: its posterior on the central components."""
        posterior = np.asarray(self.model.predict_proba(self.scale(value)), dtype=np.float64)
        return posterior[:, list(self.central)].sum(axis=1)


class Suspect(NamedTuple):
    """A family in a step: how suspicious, and the least central of its calls."""

    suspicion: float
    name: str
    row: int


def calls_of(part: Profiled) -> Calls:
    """The calls of one step with their nine numbers: duration, time of runtime calls, driver calls and kernels below (ms), how
    many of each, bytes, whether it communicates; all but the last as log1p.
    """
    tree, trace = part.tree, part.tree.trace
    rows = np.arange(part.low, part.high, dtype=np.int32)
    outer = rows[_outermost(tree, part)]
    layer = trace.layer
    driver = np.array([name.startswith("cu") and name[2:3].isupper() for name in trace.names], dtype=np.bool_)[
        trace.name
    ]
    kinds = [(layer == Layer.RUNTIME) & ~driver, (layer == Layer.RUNTIME) & driver, layer == Layer.KERNEL]
    sums: list[Float64] = [trace.dur[outer] / MILLISECOND]
    counts: list[Float64] = []
    for kind in kinds:
        sums.append(_below(np.where(kind, trace.dur, 0), tree, outer) / MILLISECOND)
        counts.append(_below(kind.astype(np.int64), tree, outer))
    communicates = (_below((layer == Layer.COMMUNICATION).astype(np.int64), tree, outer) > 0).astype(np.float64)
    value = np.log1p(np.column_stack([*sums, *counts, _below(_bytes(trace), tree, outer)]))
    families = [word(trace.names[int(trace.name[row])], int(layer[row])) for row in outer.tolist()]
    return Calls(outer, families, np.column_stack([value, communicates]))


def learn(parts: Sequence[Calls], seed: int) -> Mapping[str, Family]:
    """A mixture for every family with enough calls."""
    values: dict[str, list[Float64]] = {}
    for part in parts:
        of = np.array(part.family, dtype=object)
        for name in set(part.family):
            values.setdefault(name, []).append(part.value[of == name])
    found: dict[str, Family] = {}
    for name in sorted(values):
        value = np.concatenate(values[name])
        if len(value) > MOST_CALLS:
            value = value[np.random.default_rng(seed).choice(len(value), MOST_CALLS, replace=False)]
        if len(value) >= LEAST_CALLS:
            found[name] = _family(value, seed)
    return found


def suspects(calls: Calls, families: Mapping[str, Family], tree: Tree) -> list[Suspect]:
    """The families of one step that are kept, the most suspicious first."""
    of = np.array(calls.family, dtype=object)
    found: list[Suspect] = []
    for name in sorted(set(calls.family) & set(families)):
        mine = np.flatnonzero(of == name)
        score = families[name].score(calls.value[mine])
        lowest = np.sort(score)[: max(1, int(np.ceil(QUARTILE * len(score))))]
        row = int(calls.row[mine[int(np.argmin(score))]])
        found.append(Suspect(1.0 - float(lowest.mean()), tree.trace.names[int(tree.trace.name[row])], row))
    kept = [one for one in found if one.suspicion >= LEAST]
    return sorted(kept, key=lambda one: (-one.suspicion, one.row))[:MOST]


def _family(value: Float64, seed: int) -> Family:
    scale = scale_of(value)
    model = mixture(scale(value), COMPONENTS, seed)
    mass = np.asarray(model.weights_, dtype=np.float64)
    order = np.argsort(-mass, kind="stable")
    held = int(np.searchsorted(np.cumsum(mass[order]), MASS - 1e-12)) + 1
    return Family(scale, model, order[:held].tolist())


def _outermost(tree: Tree, part: Profiled) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """bool a row of the step: an operator that no other operator called."""
    operator = tree.trace.layer[part.low : part.high] == Layer.OPERATOR
    inside = np.zeros(len(operator) + 1, dtype=np.int64)
    inside[:-1] += operator
    np.subtract.at(inside, np.minimum(tree.stop[part.low : part.high][operator] - part.low, len(operator)), 1)
    return operator & (np.cumsum(inside)[:-1] == 1)


def _below(value: Int64, tree: Tree, rows: Int32) -> Float64:
    """float64: the sum of ``value`` over the subtree of each row."""
    before = np.append(0, np.cumsum(value))
    return (before[tree.stop[rows]] - before[rows]).astype(np.float64)


def _bytes(trace: Trace) -> Int64:
    """int64 a row: the bytes that its arguments tell, 0 where they tell none."""
    told = np.array([_told(text) for text in trace.args] + [0], dtype=np.int64)
    return told[trace.arg]


def _told(text: str) -> int:
    try:
        found = json.loads(text).get("bytes", 0)
    except (ValueError, AttributeError):
        return 0
    return int(found) if isinstance(found, int | float) and 0 <= found < 2**62 else 0
