"""Who took part in each step where ids are hidden: from counts, order and what is known of the requests.

All ways in which the engine may have come to the counts of its steps are followed side by side (a beam over the states of
:mod:`infer_moves`), those that end in one state being merged, and weighed by how hard they are to believe. The confidence of
a pair is the weight of the ways that hold it: forward to the end, then backward, as in a hidden Markov model. Weight that
was cut off because there were too many ways is taken off the confidence of the steps it concerned.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.steps import Role
from teller_core.data.table import Float64
from teller_core.rebuild.infer_moves import (
    FOREVER,
    ODD,
    Count,
    Event,
    State,
    Want,
    answer_limit,
    moves,
)

BEAM = 256
"""States followed side by side."""
FAINT = 0.001
"""A state this much less likely than the best is given up."""
SETTLED = 0.99
"""A state with so much of the weight settles what came before: what was cut off earlier no longer matters later."""
LEAST = 0.5
"""A pair less likely than this is not claimed."""
SURPRISE = 0.7
"""What is left of the confidence around a step that only an odd move explains."""
LOST_LINE = 0.8
"""What is left around a step whose line was lost."""


class Claim(NamedTuple):
    """A request in a step, with the confidence that it was there."""

    step: int
    request: int
    role: Role
    tokens: int
    confidence: float


@dataclass(slots=True)
class _Node:
    """A state reached at a step: by which ways, each with its share of the weight, and what happened on each."""

    step: int
    parents: list[tuple["_Node", float, tuple[Event, ...]]]
    mass: float = 0.0


class _Alive(NamedTuple):
    node: _Node
    weight: float
    due: int


def infer(counts: Sequence[Count | None], wants: Sequence[Want]) -> list[Claim]:
    """Pairs of the steps of one engine and its requests, by step. ``wants`` in the order of the queue; None is a lost line."""
    root = _Node(-1, [])
    beam: dict[State, _Alive] = {State(): _Alive(root, 1.0, FOREVER)}
    nodes = [root]
    trust = np.ones(len(counts), dtype=np.float64)
    since, left = 0, 1.0
    before: Count | None = None
    for k, seen in enumerate(counts):
        count = seen or _unchanged(before)
        if seen is None:
            left *= LOST_LINE
        beam, least, cut = _step(beam, k, wants, (before, count), nodes)
        left *= (1.0 - cut) * (SURPRISE if least >= ODD else 1.0)
        before = count
        if max(alive.weight for alive in beam.values()) >= SETTLED or k == len(counts) - 1:
            trust[since : k + 1] = left
            since, left = k + 1, 1.0
    total = sum(alive.weight for alive in beam.values())
    for alive in beam.values():
        alive.node.mass += alive.weight / total
    return _claims(nodes, counts, wants, trust)


def _unchanged(before: Count | None) -> Count:
    if before is None:
        return Count(0, 0, 0, 0, -FOREVER, FOREVER)
    running = before.context + before.generation
    return before._replace(context=0, context_tokens=0, generation=running, generation_tokens=running)


def _step(
    beam: dict[State, _Alive],
    k: int,
    wants: Sequence[Want],
    counts: tuple[Count | None, Count],
    nodes: list[_Node],
) -> tuple[dict[State, _Alive], float, float]:
    """(the states after the step, the least cost of a move, the share of the weight that was cut off).

    ``counts``: of the step before and of this one.
    """
    before, count = counts
    quiet = count.context == 0 and count.generation > 0
    reached: dict[State, list[tuple[_Node, float, tuple[Event, ...]]]] = defaultdict(list)
    after: dict[State, _Alive] = {}
    least = math.inf
    for state, alive in beam.items():
        if quiet and not state.filling and not state.held and k < alive.due and len(state.decoding) == count.generation:
            after[state] = alive
            least = 0.0
            continue
        for move in moves(state, count, k, wants, before):
            reached[move.state].append((alive.node, alive.weight * math.exp(-move.cost), move.events))
            least = min(least, move.cost)
    for state, ways in reached.items():
        weight = sum(share for _, share, _ in ways)
        if state in after:
            ways.append((after[state].node, after[state].weight, ()))
            weight += after[state].weight
        node = _Node(k, [(parent, share / weight, events) for parent, share, events in ways])
        after[state] = _Alive(node, weight, _due(state, wants))
    total = sum(alive.weight for alive in after.values())
    kept = sorted(after.items(), key=lambda item: -item[1].weight)[:BEAM]
    kept = [item for item in kept if item[1].weight >= FAINT * kept[0][1].weight]
    rest = sum(alive.weight for _, alive in kept)
    nodes += [alive.node for _, alive in kept if alive.node.step == k]
    return {state: alive._replace(weight=alive.weight / rest) for state, alive in kept}, least, 1.0 - rest / total


def _due(state: State, wants: Sequence[Want]) -> int:
    """The first step before which an answer of ``state`` is complete."""
    return min((born + answer_limit(wants, request) for request, born in state.decoding), default=FOREVER)


def _claims(
    nodes: Sequence[_Node], counts: Sequence[Count | None], wants: Sequence[Want], trust: Float64
) -> list[Claim]:
    """Weigh every event by the ways through it, from the last step back, and read off who was where."""
    change: defaultdict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    fills: defaultdict[tuple[int, int], float] = defaultdict(float)
    for node in reversed(nodes):
        for parent, share, events in node.parents:
            mass = node.mass * share
            parent.mass += mass
            for event in events:
                if event.kind == "fill":
                    fills[node.step, event.request] += mass
                else:
                    change[event.request][node.step] += mass if event.kind == "begin" else -mass
    mates: defaultdict[int, list[int]] = defaultdict(list)
    for step, request in fills:
        mates[step].append(request)
    claims = [
        Claim(step, request, Role.PREFILL, _fill_tokens(request, counts[step], mates[step], wants), mass * trust[step])
        for (step, request), mass in fills.items()
    ]
    for request, at in change.items():
        steps = sorted(at)
        level = np.zeros(len(counts) + 1, dtype=np.float64)
        level[steps] = [at[step] for step in steps]
        share = np.cumsum(level)[: len(counts)] * trust
        claims += [
            Claim(step, request, Role.DECODE, 1, share[step]) for step in np.flatnonzero(share >= LEAST).tolist()
        ]
    return sorted(
        claim._replace(confidence=min(1.0, float(claim.confidence))) for claim in claims if claim.confidence >= LEAST
    )


def _fill_tokens(request: int, count: Count | None, mates: Sequence[int], wants: Sequence[Want]) -> int:
    """Prompt tokens computed: known where the request was alone in prefill, or where the prompts fill the step."""
    if count is None:
        return -1
    if count.context == 1:
        return count.context_tokens
    prompts = [wants[mate].prompt for mate in mates]
    whole = len(mates) == count.context and min(prompts) >= 0 and sum(prompts) == count.context_tokens
    return wants[request].prompt if whole else -1
