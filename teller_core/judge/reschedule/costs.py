"""What a step of some work takes in this capture, learned from its own steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from teller_core.data.table import Float64, Int64
from teller_core.judge.regress import MIN_PEERS, fit
from teller_core.judge.reschedule.batches import Batches
from teller_core.judge.reschedule.scheduler import Share

FEATURES = (
    "a step",
    "a context token",
    "a request that decodes",
    "a token in the cache",
    "a pair of a context token and one before it",
)


@dataclass(frozen=True)
class Costs:
    """``cost`` float64: ns for each of FEATURES; ``shift`` float64: how far steps of decodes alone, of both, and of prompts
    alone lie from that in log time.
    """

    cost: Float64
    shift: Float64

    @cached_property
    def _plain(self) -> tuple[list[float], list[float]]:
        return self.cost.tolist(), np.exp(self.shift).tolist()

    def of(self, batch: Sequence[Share]) -> float:
        """ns that a step of this work should take."""
        (step, context, decode, cache, pair), factor = self._plain
        total, filling = step, 0
        for share in batch:
            total += cache * (share.held + share.tokens)
            if share.filling:
                filling += 1
                total += share.tokens * (context + pair * (share.held + share.tokens / 2))
            else:
                total += decode
        return total * factor[2 if filling == len(batch) else 1 if filling else 0]

    def predict(self, features: Float64) -> Float64:
        """float64 ns for every row of :func:`features`."""
        usual: Float64 = np.asarray(features @ self.cost, dtype=np.float64)
        factor: Float64 = np.exp(self.shift[phases(features)])
        return np.asarray(usual * factor, dtype=np.float64)


def features(ran: Batches) -> Float64:
    """float64: the work of every step, a column each of FEATURES."""
    count = len(ran.step)
    filling = ran.ahead > 0
    after = ran.held + ran.tokens
    pairs = np.where(filling, ran.tokens * (ran.held + ran.tokens / 2), 0.0)
    columns = (np.where(filling, ran.tokens, 0), ~filling, after, pairs)
    sums = [np.bincount(ran.at, weights=column.astype(np.float64), minlength=count) for column in columns]
    return np.column_stack([np.ones(count), *sums]).astype(np.float64)


def phases(work: Float64) -> Int64:
    """int64 a row of :func:`features`: 0 where it is of decodes alone, 1 of both, 2 of prompts alone."""
    return np.where(work[:, 1] == 0, 0, np.where(work[:, 2] > 0, 1, 2))


def took(ran: Batches) -> Int64:
    """int64 ns a step: from its decision, or from the end of the step before where that came later, to its end."""
    before = np.append(np.int64(np.iinfo(np.int64).min), ran.ended[:-1])
    return np.maximum(ran.ended - np.maximum(ran.decided, before), 1)


def learn(work: Float64, taken: Int64) -> Costs | None:
    """Costs from steps of some work and what they took; None for too few. What hardly varies is left out."""
    if len(taken) < MIN_PEERS:
        return None
    varies = np.array([True, *(len(np.unique(column)) > 1 for column in work[:, 1:].T)])
    found = fit(work[:, varies], taken.astype(np.float64))
    if found is None:
        return None
    cost = np.zeros(work.shape[1])
    cost[varies] = found.cost
    apart = np.log(taken / np.maximum(work @ cost, 1.0))
    phase = phases(work)
    shift = [float(np.median(apart[phase == kind])) if (phase == kind).sum() >= MIN_PEERS else 0.0 for kind in range(3)]
    return Costs(cost, np.array(shift))
