"""Two opinions of one request made one: what rules claim of it, and what a model says of its sheet.

A conditional logit (McFadden 1974): whatever may be true of the request gets a score, a sum of few terms that are weighed alike
for every cause, and how likely each is follows from the scores. The weights are learned where the truth is known.
"""

from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Float32, Float64, Int64, Mask

NONE, UNTOLD, FIRST = 0, 1, 2
"""Classes: nothing abnormal; abnormal, and why cannot be told; the first cause of the taxonomy."""
LEAST = 1e-4
"""What a model holds for less likely is as unlikely as this."""
FURTHEST = 6.0
"""Log odds that say no more when they are larger."""
CALM = 0.5
"""From here on it is held for likely that nothing is wrong."""
Likely = npt.NDArray[np.float64]
"""float64 [n, classes], rows sum to 1."""
Clues = npt.NDArray[np.float32]
"""float32 [n, causes, CLUE], as in :class:`Sheets`."""


@dataclass(frozen=True)
class Weights:
    """What each term counts. Of every class: ``model``, the log of how likely the model holds it. Of a cause: ``told``, whether
    rules would tell it, by how direct its evidence is, and ``cost``, the share of the time that it took, likewise; ``silent``,
    whether its rule looked and saw nothing. That nothing is wrong: ``calm`` always, ``quiet`` where rules tell no cause,
    ``alarm`` by the log odds that the model holds it for abnormal. That it cannot be told: ``untold``.
    """

    model: float = 1.0
    told: float = 1.0
    cost: float = 0.0
    silent: float = 0.0
    calm: float = 0.0
    quiet: float = 0.0
    alarm: float = 0.0
    untold: float = 0.0

    @property
    def vector(self) -> Float64:
        """float64 [terms], in their order."""
        return np.array(astuple(self), dtype=np.float64)


@dataclass(frozen=True)
class Fusion:
    """``weights``, and ``threshold``: a cause that is less likely than this is not named."""

    weights: Weights = Weights()
    threshold: float = 0.5


class Asked(NamedTuple):
    """n requests: what rules say (``clues``), and what a model says that has read their sheets: ``likely``, and ``abnormal``
    float64 [n]. ``known`` bool [classes]: what it can say at all.
    """

    clues: Clues
    likely: Likely
    abnormal: Float64
    known: Mask


def evident(clues: Clues) -> npt.NDArray[np.bool_]:
    """bool [n, causes]: its rule found something that speaks for it."""
    return np.nan_to_num(clues[:, :, 1]) > 0.0


def possible(asked: Asked) -> npt.NDArray[np.bool_]:
    """bool [n, classes]: a cause that the model never learned is possible only where something speaks for it."""
    found = np.broadcast_to(asked.known, asked.likely.shape).copy()
    found[:, :FIRST] = True
    found[:, FIRST:] |= evident(asked.clues)
    return found


def terms(asked: Asked) -> npt.NDArray[np.float64]:
    """float64 [n, classes, terms of :class:`Weights`]. What a model never learned is to it as likely as that it cannot tell."""
    count, classes = asked.likely.shape
    value = np.zeros((count, classes, len(Weights().vector)))
    likely = np.where(asked.known, asked.likely, asked.likely[:, [UNTOLD]])
    value[:, :, 0] = np.log(np.maximum(likely, LEAST))
    cost, sure, told = (np.nan_to_num(asked.clues[:, :, at]).astype(np.float64) for at in range(3))
    value[:, FIRST:, 1] = told * sure
    value[:, FIRST:, 2] = np.clip(cost, 0.0, 1.0) * sure
    value[:, FIRST:, 3] = ~np.isnan(asked.clues[:, :, 0]) & (sure <= 0.0)
    value[:, NONE, 4] = 1.0
    value[:, NONE, 5] = told.max(axis=1, initial=0.0) <= 0.0
    abnormal = np.clip(asked.abnormal, 1e-9, 1.0 - 1e-9)
    value[:, NONE, 6] = np.clip(np.log(abnormal / (1.0 - abnormal)), -FURTHEST, FURTHEST)
    value[:, UNTOLD, 7] = 1.0
    return value


def pooled(asked: Asked, weights: Weights) -> Likely:
    """float64 [n, classes], rows sum to 1: how likely each is, by both. What is not possible is 0."""
    return shares(terms(asked) @ weights.vector, possible(asked))


def shares(score: Likely, there: npt.NDArray[np.bool_]) -> Likely:
    """float64, like ``score``: the softmax of each row over what is ``there``."""
    score = np.where(there, score, -np.inf)
    raised = np.exp(score - score.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def chosen(likely: Likely, may: npt.NDArray[np.bool_], threshold: float) -> Int64:
    """int64 [n] classes. A cause is named where it ``may`` be (bool [n, causes]: something speaks for it), reaches the
    ``threshold`` and is likelier than any other and than none; else it is NONE where nothing is likely to be wrong, and UNTOLD in
    doubt.
    """
    causes = likely[:, FIRST:]
    best, sure = firsts(likely, may)
    named = (sure >= threshold) & (sure > likely[:, NONE]) & (sure >= causes.max(axis=1, initial=0.0))
    return np.where(named, best, np.where(likely[:, NONE] >= CALM, NONE, UNTOLD)).astype(np.int64)


def firsts(likely: Likely, may: npt.NDArray[np.bool_]) -> tuple[Int64, Float64]:
    """int64 [n] and float64 [n]: the class of the likeliest cause that ``may`` be named, and how likely it is; 0 for none."""
    causes = np.where(may, likely[:, FIRST:], 0.0)
    return FIRST + causes.argmax(axis=1), causes.max(axis=1, initial=0.0)


def one(clues: Float32, likely: Float64, abnormal: float, known: Mask) -> Asked:
    """A single request: ``clues`` float32 [causes, CLUE], ``likely`` float64 [classes]."""
    return Asked(clues[None], likely[None], np.array([abnormal]), known)
