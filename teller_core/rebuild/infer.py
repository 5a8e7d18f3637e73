"""Who took part in each step where ids are hidden: from counts, order and what is known of the requests.

All ways in which the engine may have come to the counts of its steps are followed side by side (a beam over the states of
:mod:`infer_moves`), those that end in one state being merged, and weighed by how hard they are to believe. The confidence of
a pair is the weight of the ways that hold it: forward to the end, then backward, as in a hidden Markov model. Weight that
was cut off because there were too many ways is taken off the confidence of the steps it concerned. Where following them
would take too much work, inference gives up: from the last step that was settled on, nothing is claimed.
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
MOST_REQUESTS = 4096
"""Requests in a step; a line that counts more is taken for a lost one. It is SGLang's upper bound of what it runs at once;
vLLM's default is 1024 at most."""
MOST_WORK_A_STEP = 500_000
"""Work in one step: about a second. A move is MOVE_WORK and one for each request that it looks at."""
MOST_WORK = 4_000_000
"""Work in all steps of a recording, to which WORK_A_STEP is added for each step that was recorded."""
WORK_A_STEP = 100
MOVE_WORK = 32
CLAIM_WORK = 2
"""Work for each request of a step, which may be claimed."""


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


class Inferred(NamedTuple):
    """The claims; how many recorded steps inference gave up on; the work that it took, in looks at a request."""

    claims: list[Claim]
    given_up: int
    work: int


class _Way(NamedTuple):
    """A way to a state: from which, how hard it is to believe from the start, and what happened."""

    parent: _Node
    cost: float
    events: tuple[Event, ...]


class _Stepped(NamedTuple):
    """The states after a step, best first; the least cost of a move; the shares of the weight that were cut off, for being
    faint, and that were not followed to the end, for the work it takes; and the work."""

    beam: dict[State, _Alive]
    least: float
    cut: float
    untried: float
    work: int


def infer(counts: Sequence[Count | None], wants: Sequence[Want], most: int = MOST_WORK) -> Inferred:
    """Pairs of the steps of one engine and its requests, by step. ``wants`` in the order of the queue; None is a lost line.

    ``most``: the work after which it gives up, beside that which each recorded step adds.
    """
    root = _Node(-1, [])
    beam: dict[State, _Alive] = {State(): _Alive(root, 1.0, FOREVER)}
    nodes = [root]
    trust = np.ones(len(counts), dtype=np.float64)
    since, left, work = 0, 1.0, 0
    before: Count | None = None
    for k, seen in enumerate(counts):
        usable = _usable(seen)
        count = usable or _unchanged(before)
        most += WORK_A_STEP if seen is not None else 0
        step = _step(beam, k, wants, (before, count), min(MOST_WORK_A_STEP, most - work))
        work += step.work
        if step.untried >= LEAST:
            trust[since:] = 0.0
            break
        beam = step.beam
        nodes += [alive.node for alive in beam.values() if alive.node.step == k]
        left *= LOST_LINE if usable is None else 1.0
        left *= (1.0 - step.cut) * (1.0 - step.untried) * (SURPRISE if step.least >= ODD else 1.0)
        before = count
        if max(alive.weight for alive in beam.values()) >= SETTLED or k == len(counts) - 1:
            trust[since : k + 1] = left
            since, left = k + 1, 1.0
    for alive in beam.values():
        alive.node.mass += alive.weight
    trust[[k for k, seen in enumerate(counts) if _usable(seen) is None]] = 0.0
    given_up = sum(seen is not None and (k >= since or _usable(seen) is None) for k, seen in enumerate(counts))
    return Inferred(_claims(nodes, counts, wants, trust), given_up, work)


def _usable(count: Count | None) -> Count | None:
    return count if count is not None and max(count.context, count.generation) <= MOST_REQUESTS else None


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
    most: int,
) -> _Stepped:
    """Follow the states of ``beam``, best first, until that takes the ``most`` work.

    ``counts``: of the step before and of this one.
    """
    before, count = counts
    quiet = count.context == 0 and count.generation > 0
    reached: dict[State, list[_Way]] = defaultdict(list)
    same: dict[State, _Alive] = {}
    least, untried, work = math.inf, 0.0, 1 + CLAIM_WORK * (count.context + count.generation)
    for state, alive in beam.items():
        if quiet and not state.filling and not state.held and k < alive.due and len(state.decoding) == count.generation:
            same[state] = alive
            least = 0.0
            work += 1 + len(state.decoding) // MOVE_WORK
            continue
        size = _size(state, count)
        far = -math.log(alive.weight)
        for move in moves(state, count, k, wants, before) if work + size <= most else ():
            reached[move.state].append(_Way(alive.node, far + move.cost, move.events))
            least = min(least, move.cost)
            work += size
            if work > most:
                break
        if work + size > most:
            untried += alive.weight
    after, cut = _best(_merged(reached, same, k, wants))
    return _Stepped(after, least, cut, untried, work)


def _size(state: State, count: Count) -> int:
    """The work of a move from ``state``."""
    held = len(state.decoding) + len(state.filling) + len(state.evicted) + len(state.skipped)
    return MOVE_WORK + held + count.context + count.generation


def _merged(
    reached: dict[State, list[_Way]], same: dict[State, _Alive], k: int, wants: Sequence[Want]
) -> dict[State, _Alive]:
    """The states after the ``k``-th step, with the weight of all ways to each.

    Weights are told from that of the best way: what is hard to believe may be too little for a number.
    """
    costs = [-math.log(alive.weight) for alive in same.values()]
    best = min([*costs, *(way.cost for ways in reached.values() for way in ways)], default=0.0)
    after = {
        state: alive._replace(weight=math.exp(best - cost))
        for (state, alive), cost in zip(same.items(), costs, strict=True)
    }
    for state, ways in reached.items():
        if state in same:
            ways.append(_Way(same[state].node, -math.log(same[state].weight), ()))
        shares = [math.exp(best - way.cost) for way in ways]
        weight = sum(shares)
        if weight > 0.0:
            parents = [(way.parent, share / weight, way.events) for way, share in zip(ways, shares, strict=True)]
            after[state] = _Alive(_Node(k, parents), weight, _due(state, wants))
    return after


def _best(after: dict[State, _Alive]) -> tuple[dict[State, _Alive], float]:
    """(the states that are followed further, best first and with weights that sum to 1; the share of all others)."""
    total = sum(alive.weight for alive in after.values())
    kept = sorted(after.items(), key=lambda item: -item[1].weight)[:BEAM]
    kept = [item for item in kept if item[1].weight >= FAINT * kept[0][1].weight]
    rest = sum(alive.weight for _, alive in kept)
    return {state: alive._replace(weight=alive.weight / rest) for state, alive in kept}, (
        1.0 - rest / total if kept else 0.0
    )


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
    whole = {step for step, of in mates.items() if _fill_whole(counts[step], of, wants)}
    claims = [
        Claim(
            step,
            request,
            Role.PREFILL,
            _fill_tokens(request, counts[step], wants, whole=step in whole),
            mass * trust[step],
        )
        for (step, request), mass in fills.items()
    ]
    for request, at in change.items():
        claims += [Claim(step, request, Role.DECODE, 1, share) for step, share in _decoded(at, trust)]
    return sorted(Claim(*claim[:4], min(1.0, float(claim.confidence))) for claim in claims if claim.confidence >= LEAST)


def _decoded(at: dict[int, float], trust: Float64) -> list[tuple[int, float]]:
    """(step, confidence) of a request's decode, of which ``at`` are the changes: looks only where there is any."""
    steps = sorted(at)
    first, last = steps[0], steps[-1]
    stays = sum(at.values()) >= LEAST
    level = np.zeros((len(trust) if stays else last + 1) - first, dtype=np.float64)
    level[[step - first for step in steps]] = [at[step] for step in steps]
    share = np.cumsum(level) * trust[first : first + len(level)]
    sure = np.flatnonzero(share >= LEAST)
    return list(zip((sure + first).tolist(), share[sure].tolist(), strict=True))


def _fill_whole(count: Count | None, mates: Sequence[int], wants: Sequence[Want]) -> bool:
    """The prompts of ``mates`` fill the step."""
    prompts = [wants[mate].prompt for mate in mates]
    return (
        count is not None and len(mates) == count.context and min(prompts) >= 0 and sum(prompts) == count.context_tokens
    )


def _fill_tokens(request: int, count: Count | None, wants: Sequence[Want], *, whole: bool) -> int:
    """Prompt tokens computed: known where the request was alone in prefill, or where the prompts fill the step."""
    if count is None:
        return -1
    if count.context == 1:
        return count.context_tokens
    return wants[request].prompt if whole else -1
