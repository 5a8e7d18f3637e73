"""How much each span bears on those that numbers suspect: the rule of the paper, over the dependencies of the spans.

The paper: a candidate has relevance 1; parents and children, and the other side of a communication, ``beta``; neighbors in time
``gamma * exp(-dt / tau)``; ancestors up to two hops; kept is what has ``kappa`` and more, 80 nodes at most. Here relations add
up, for a span between two candidates bears on both. What differs from the paper:

- What a wait waited for, the call of the rank that came last to a collective and what kept it there count as the other side of
  a communication: the paper pairs communications alone.
- Neighbors in time are the span before and the span behind on the same thread or stream. On a host and device that work ahead of
  each other, what else runs within two milliseconds has as a rule nothing to do with a candidate.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.graph import Graph, Kind
from teller_core.data.table import Float64, Int64, Mask


@dataclass(frozen=True)
class Rule:
    """The constants of the rule (TELLER, arXiv 2608.01975, section on causal-context slicing)."""

    pair: float = 0.35
    """beta: of a parent, a child, or the other side of a communication or a wait."""
    near: float = 0.25
    """gamma: of a neighbor in time that touches the candidate."""
    fades: int = 2_000_000
    """tau, ns: a neighbor this far away has a relevance of ``near / e``."""
    hops: int = 2
    """How far up ancestors count."""
    least: float = 0.25
    """kappa: what has less is left out."""
    nodes: int = 80
    """What is kept at most, candidates included."""


RULE = Rule()


class Bearing(NamedTuple):
    """One entry a row. ``value`` float64, 0 to 1: how much it bears on the candidates. ``paired`` bool: it is the other side of a
    communication or a wait of one.
    """

    value: Float64
    paired: Mask


def bearing(
    start: Int64, end: Int64, graph: Graph, candidates: Int64, *, rule: Rule = RULE, least_wait: int = 1
) -> Bearing:
    """How much each of ``graph.rows`` rows bears on the rows ``candidates``. ``start``, ``end``: int64 ns of each row, on a clock
    that rows of one tree share; ``least_wait``: ns, a call that waited for less paid nothing for it. Linear in the edges.
    """
    chosen = np.zeros(graph.rows, dtype=np.bool_)
    chosen[candidates] = True
    value = np.zeros(graph.rows)
    family = graph.of(Kind.CHILD, Kind.LAUNCH)
    above, below = graph.before[family], graph.after[family]
    np.add.at(value, below[chosen[above]], rule.pair)
    reached = chosen
    for _ in range(rule.hops):
        upper = np.zeros(graph.rows, dtype=np.bool_)
        upper[above[reached[below]]] = True
        value[upper] += rule.pair
        reached = upper
    paired = _pairs(graph, chosen, (start, end), least_wait)
    value[paired] += rule.pair
    beside = graph.of(Kind.ORDER, Kind.STREAM)
    early, late = graph.before[beside], graph.after[beside]
    close = np.flatnonzero(chosen[early] | chosen[late])
    early, late = early[close], late[close]
    weight = rule.near * np.exp(-np.maximum(start[late] - end[early], 0) / rule.fades)
    np.add.at(value, late[chosen[early]], weight[chosen[early]])
    np.add.at(value, early[chosen[late]], weight[chosen[late]])
    value[chosen] = 1.0
    return Bearing(np.minimum(value, 1.0), paired)


def kept(found: Bearing, weight: Int64, rule: Rule = RULE) -> Int64:
    """The rows that the rule keeps, the most relevant first and of equals the one of more ``weight``."""
    rows = np.flatnonzero(found.value >= rule.least)
    return rows[np.lexsort((rows, -weight[rows], -found.value[rows]))][: rule.nodes]


def _pairs(graph: Graph, chosen: Mask, times: tuple[Int64, Int64], least_wait: int) -> Mask:
    """bool a row: the other side of a wait that took time, of a stream that was held, or of a collective."""
    start, end = times
    edge = graph.of(Kind.HOLD, Kind.COLLECTIVE, Kind.MET, Kind.KEPT)
    waits = np.flatnonzero(graph.of(Kind.WAIT))
    edge[waits] = end[graph.before[waits]] - start[graph.after[waits]] >= least_wait
    one, other = graph.before[edge], graph.after[edge]
    paired = np.zeros(graph.rows, dtype=np.bool_)
    paired[other[chosen[one]]] = True
    paired[one[chosen[other]]] = True
    return paired & ~chosen
