"""A score a step made a whole method: a threshold from the training side, and causes by the learned map."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from teller_core.data.table import Float64
from teller_core.lab.evaluation import cause_map
from teller_core.lab.evaluation.cause_map import CauseMap
from teller_core.lab.evaluation.detection import PRIORS, at_prior
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Judged, Method, Options, nothing
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.evaluation.training import fresh

Names = Sequence[Sequence[str]]
Ranks = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Scorer:
    """``learn`` sees the training side; ``score``: float64 a step, more is more suspicious, NaN where it cannot tell.
    ``operators``, ``ranks``: a step, the most suspicious first, where the method says so.
    """

    name: str
    about: str
    learn: Callable[[Sequence[Episode], Options, int], Any]
    score: Callable[[Any, Seen], Float64]
    grid: Sequence[Options] = field(default=({},))
    seeds: int = 1
    operators: Callable[[Any, Seen], Names] | None = None
    ranks: Callable[[Any, Seen], Ranks] | None = None


@dataclass(frozen=True)
class Fitted:
    """A scorer that has learned."""

    model: Any
    threshold: float
    causes: CauseMap


def method_of(scorer: Scorer) -> Method:
    """``scorer`` with flags and causes, as every method that only scores steps gets them."""

    def train(episodes: Sequence[Episode], options: Options, seed: int) -> Fitted:
        model = scorer.learn(episodes, options, seed)
        scores = [scorer.score(model, episode.seen) for episode in episodes]
        return Fitted(model, threshold(episodes, scores), cause_map.learn(episodes, scores))

    def judge(fitted: Fitted, seen: Seen) -> Judged:
        score = scorer.score(fitted.model, seen)
        causes, verdict, sure = cause_map.claims(fitted.causes, cause_map.request_rows(seen, score))
        empty = nothing(seen.capture)
        return replace(
            empty,
            step_score=score,
            step_flag=flags(score, fitted.threshold),
            causes=causes,
            verdict=verdict,
            sure=sure,
            operators=empty.operators if scorer.operators is None else scorer.operators(fitted.model, seen),
            ranks=empty.ranks if scorer.ranks is None else scorer.ranks(fitted.model, seen),
        )

    return Method(scorer.name, scorer.about, train, judge, scorer.grid, scorer.seeds, of_steps=True)


def flags(score: Float64, threshold: float) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    """uint8 a step: its score reaches the threshold; 0 where it has none."""
    return (np.nan_to_num(score, nan=-np.inf) >= threshold).astype(np.uint8)


def threshold(episodes: Sequence[Episode], scores: Sequence[Float64]) -> float:
    """The score from which on steps are flagged: where F1 at the paper's own prior is best on the training side; infinite where
    nothing is known to be abnormal.
    """
    masks = [
        mine & (episode.labels.step >= 0) & ~np.isnan(score)
        for episode, score, mine in zip(episodes, scores, fresh(episodes), strict=True)
    ]
    score = np.concatenate([np.empty(0), *(s[m] for s, m in zip(scores, masks, strict=True))])
    label = np.concatenate(
        [np.empty(0, np.bool_), *(e.labels.step[m] == 1 for e, m in zip(episodes, masks, strict=True))]
    )
    weight = at_prior(label, np.ones(len(label)), PRIORS[0])
    if not len(label) or np.isnan(weight).any():
        return float("inf")
    order = np.argsort(-score, kind="stable")
    hit = np.cumsum(np.where(label, weight, 0.0)[order])
    f1 = 2 * hit / (np.cumsum(weight[order]) + hit[-1])
    last = np.append(np.diff(score[order]) != 0, True)
    return float(score[order][np.flatnonzero(last)[int(np.argmax(f1[last]))]])
