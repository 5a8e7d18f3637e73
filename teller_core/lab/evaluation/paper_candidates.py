"""Candidates as the paper's released code finds them: a mixture a family of operators, and how far from its middle calls lie.

Rebuilt from how it behaves: a diagonal Gaussian mixture of two components over nine numbers of a call; components that
hold 0.7 of the mass are central; a call's score is its posterior on them; of a family in a step the lowest quartile counts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.context.tpe.words import word
from teller_core.data.table import Float64, Int32, Int64, Mask
from teller_core.data.trace import Layer, Trace
from teller_core.data.tree import Tree
from teller_core.lab.evaluation.learners import Mixture, mixture
from teller_core.lab.evaluation.operator_times import Profiled
from teller_core.lab.evaluation.training import Scale, scale_of

COMPONENTS, MASS, QUARTILE, LEAST, MOST = 2, 0.7, 0.25, 0.65, 8
"""K, the mass of central components, the part of a family's calls that counts, the suspicion that is kept, candidates a step."""
LEAST_CALLS = 8
"""A mixture of fewer calls than this is none."""
MOST_CALLS = 5_000
MILLISECOND = 1e6
DRIVER = re.compile(r"cu[A-Z]")
"""How calls of CUDA's driver begin: those of its runtime begin with ``cuda``."""


class Calls(NamedTuple):
    """The outermost operators of a profiled step: ``row`` int32 of the tree, their ``family``, ``value`` float64 [calls, 9]."""

    row: Int32
    family: Sequence[str]
    value: Float64


@dataclass(frozen=True)
class Family:
    """One family's mixture and which of its components are central."""

    scale: Scale
    mixture: Mixture
    central: Sequence[int]

    def score(self, value: Float64) -> Float64:
        """float64 a call: its posterior on the central components."""
        return self.mixture.posterior(self.scale(value))[:, list(self.central)].sum(axis=1)


class Suspect(NamedTuple):
    """A family in a step: how suspicious, and the least central of its calls."""

    suspicion: float
    name: str
    row: int


def calls_of(part: Profiled) -> Calls:
    """The calls of one step with their nine numbers: duration, time of runtime calls, driver calls and kernels below (ms), how
    many of each, bytes, whether it communicates; all but the last as log1p.
    """
    trace, rows = part.tree.trace, slice(part.low, part.high)
    outer = np.flatnonzero(_outermost(part)).astype(np.int32)
    stop = part.tree.stop[rows][outer] - part.low
    layer, dur, name = trace.layer[rows], trace.dur[rows], trace.name[rows]
    called = [int(each) for each in np.unique(name[layer == Layer.RUNTIME])]
    driver = np.isin(name, [each for each in called if DRIVER.match(trace.names[each])])
    kinds = [(layer == Layer.RUNTIME) & ~driver, (layer == Layer.RUNTIME) & driver, layer == Layer.KERNEL]

    def below(value: Int64) -> Float64:
        """The sum of ``value`` over the subtree of each call."""
        before = np.append(0, np.cumsum(value))
        return (before[stop] - before[outer]).astype(np.float64)

    sums: list[Float64] = [dur[outer] / MILLISECOND]
    counts: list[Float64] = []
    for kind in kinds:
        sums.append(below(np.where(kind, dur, 0)) / MILLISECOND)
        counts.append(below(kind.astype(np.int64)))
    communicates = (below((layer == Layer.COMMUNICATION).astype(np.int64)) > 0).astype(np.float64)
    value = np.log1p(np.column_stack([*sums, *counts, below(_bytes(trace, rows))]))
    families = [word(trace.names[int(name[row])], int(layer[row])) for row in outer.tolist()]
    return Calls(outer + np.int32(part.low), families, np.column_stack([value, communicates]))


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
    mass = model.weight
    order = np.argsort(-mass, kind="stable")
    held = int(np.searchsorted(np.cumsum(mass[order]), MASS - 1e-12)) + 1
    return Family(scale, model, order[:held].tolist())


def _outermost(part: Profiled) -> Mask:
    """bool a row of the step: an operator that no other operator called."""
    operator = part.tree.trace.layer[part.low : part.high] == Layer.OPERATOR
    inside = np.zeros(len(operator) + 1, dtype=np.int64)
    inside[:-1] += operator
    np.subtract.at(inside, np.minimum(part.tree.stop[part.low : part.high][operator] - part.low, len(operator)), 1)
    return operator & (np.cumsum(inside)[:-1] == 1)


def _bytes(trace: Trace, rows: slice) -> Int64:
    """int64 a row of ``rows``: the bytes that its arguments tell, 0 where they tell none."""
    present, of = np.unique(trace.arg[rows], return_inverse=True)
    told = [_told(trace.args[each]) if each >= 0 else 0 for each in map(int, present)]
    return np.array(told, dtype=np.int64)[of]


def _told(text: str) -> int:
    try:
        found = json.loads(text).get("bytes", 0)
    except (ValueError, AttributeError):
        return 0
    return int(found) if isinstance(found, int | float) and 0 <= found < 2**62 else 0
