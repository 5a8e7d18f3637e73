"""A probe for what gives away what was done: it learns from a view of windows alone, and is asked about lives that it never saw.

Two questions: whether a window was struck at all, and which of its life's faults struck it. Chance is what the same answers
come to where labels change places as the lab might have dealt them: windows within their round, faults within their life
(a permutation test, Good 2005). So what a life has of its own (engine, model, load) proves nothing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int64, Mask
from teller_core.lab.evaluation.learners import logistic, probabilities, weights
from teller_core.lab.probe.expected import expected
from teller_core.lab.probe.windows import Seen, lives_in

FOLDS = 5
STRENGTH = 0.05
DRAWS = 4_000
LEAST_WINDOWS = 3
"""In which a feature stands: what stands in fewer is chance."""
MOST_FEATURES = 400
TOLD = 6
STRUCK, WHICH = "struck or not", "which fault"


class Verdict(NamedTuple):
    """What one view came to.

    ``reached``: of pairs of a struck and a healthy window of one round, the share in which the struck one is held for the
    likelier; of struck windows, the share whose fault is named among those of the life. ``chance``: the mean of it over
    permutations; ``p``: how many of these reach as much. ``telling``: the features with most weight.
    """

    view: str
    question: str
    windows: int
    lives: int
    reached: float
    chance: float
    p: float
    telling: Sequence[str]


def probed(windows: Sequence[Seen], view: str) -> list[Verdict]:
    """Both questions about one view; none where fewer than two lives, or no feature, are there."""
    names, value = matrix(windows, view)
    if not names or len(lives_in(windows)) < 2:
        return []
    return [_struck(windows, view, (names, value)), _which(windows, view, (names, value))]


def matrix(windows: Sequence[Seen], view: str) -> tuple[list[str], Float64]:
    """(features, float64 [windows, features]): the most frequent ones that differ between windows and are not expected to."""
    count: dict[str, int] = {}
    for window in windows:
        for name in window.bags[view]:
            count[name] = count.get(name, 0) + 1
    known = sorted(
        (name for name, times in count.items() if times >= LEAST_WINDOWS), key=lambda name: (-count[name], name)
    )
    names = [name for name in known if expected(view, name) is None][:MOST_FEATURES]
    value = np.array([[window.bags[view].get(name, 0.0) for name in names] for window in windows], dtype=np.float64)
    value = value.reshape(len(windows), len(names))
    differs = np.ptp(value, axis=0) > 0 if len(windows) else np.zeros(len(names), np.bool_)
    return [name for name, each in zip(names, differs.tolist(), strict=True) if each], value[:, differs]


def centered(value: Float64, groups: Sequence[Sequence[int]]) -> Float64:
    """``value`` [rows, columns] without what the rows of each group have in common."""
    found = value.copy()
    for mine in groups:
        found[list(mine)] -= value[list(mine)].mean(axis=0)
    return found


def _struck(windows: Sequence[Seen], view: str, features: tuple[list[str], Float64]) -> Verdict:
    names, value = features
    rounds = _groups([(window.life, window.round) for window in windows])
    value = centered(value, rounds)
    label = np.array([window.strike >= 0 for window in windows], dtype=np.bool_)
    said = ["struck" if each else "" for each in label.tolist()]
    score = np.zeros(len(windows))
    for held in _folds(windows):
        classes, probability = _learned(value, said, ~held)(value[held])
        score[held] = probability[:, classes.index("struck")] if "struck" in classes else 0.0
    chance = np.random.default_rng(0)
    pairs, reached, drawn = 0, 0.0, np.zeros(DRAWS)
    for mine in rounds:
        hit = int(label[mine].sum())
        if not 0 < hit < len(mine):
            continue
        rank = _ranks(score[mine])
        least = hit * (hit + 1) / 2
        pairs += hit * (len(mine) - hit)
        reached += float(rank[label[mine]].sum()) - least
        drawn += chance.permuted(np.tile(rank, (DRAWS, 1)), axis=1)[:, :hit].sum(axis=1) - least
    return _verdict(view, STRUCK, windows, (reached / max(pairs, 1), drawn / max(pairs, 1)), _told(names, value, said))


def _which(windows: Sequence[Seen], view: str, features: tuple[list[str], Float64]) -> Verdict:
    names, value = features
    mine = np.array([window.strike >= 0 for window in windows], dtype=np.bool_)
    struck = [window for window in windows if window.strike >= 0]
    own_life = _groups([(window.life, 0) for window in struck])
    value, said = centered(value[mine], own_life), [window.cause for window in struck]
    likely: list[dict[str, float]] = [{} for _ in struck]
    for held in _folds(struck):
        classes, probability = _learned(value, said, ~held)(value[held])
        for at, row in zip(np.flatnonzero(held).tolist(), probability, strict=True):
            likely[at] = dict(zip(classes, row.tolist(), strict=True))
    chance = np.random.default_rng(0)
    reached, drawn = 0.0, np.zeros(DRAWS)
    for own in own_life:
        table, truth = _table([struck[at] for at in own], [likely[at] for at in own])
        strikes = np.arange(len(truth))
        reached += float(table[strikes, truth].sum())
        drawn += table[strikes, chance.permuted(np.tile(truth, (DRAWS, 1)), axis=1)].sum(axis=1)
    many = max(len(struck), 1)
    return _verdict(view, WHICH, struck, (reached / many, drawn / many), _told(names, value, said))


def _table(windows: Sequence[Seen], likely: Sequence[Mapping[str, float]]) -> tuple[Float64, Int64]:
    """(float64 [strikes, causes], int64 a strike) of one life: how many windows of each strike are held for which of the life's
    causes, and which one it was.
    """
    cause = {window.strike: window.cause for window in windows}
    strikes, causes = sorted(cause), sorted(set(cause.values()))
    table = np.zeros((len(strikes), len(causes)))
    for window, mine in zip(windows, likely, strict=True):
        chances = [mine.get(each, 0.0) for each in causes]
        table[strikes.index(window.strike), int(np.argmax(chances))] += 1
    return table, np.array([causes.index(cause[strike]) for strike in strikes], dtype=np.int64)


def _verdict(
    view: str, question: str, windows: Sequence[Seen], reached: tuple[float, Float64], telling: Sequence[str]
) -> Verdict:
    value, drawn = reached
    p = (1 + int((drawn >= value - 1e-12).sum())) / (1 + len(drawn))
    return Verdict(view, question, len(windows), len(lives_in(windows)), value, float(drawn.mean()), p, telling)


class _Model(NamedTuple):
    """What was learned from some windows; None where all of them were alike."""

    middle: Float64
    width: Float64
    model: object | None
    only: str

    def __call__(self, value: Float64) -> tuple[list[str], Float64]:
        if self.model is None:
            return [self.only], np.ones((len(value), 1))
        return probabilities(self.model, (value - self.middle) / self.width)


def _learned(value: Float64, said: Sequence[str], mine: Mask) -> _Model:
    own, label = value[mine], [said[at] for at in np.flatnonzero(mine).tolist()]
    middle, width = own.mean(axis=0), own.std(axis=0)
    width = np.where(width > 1e-9, width, 1.0)
    several = len(set(label)) > 1
    model = logistic((own - middle) / width, label, strength=STRENGTH) if several else None
    return _Model(middle, width, model, label[0])


def _told(names: Sequence[str], value: Float64, said: Sequence[str]) -> list[str]:
    learned = _learned(value, said, np.ones(len(said), dtype=np.bool_))
    if learned.model is None:
        return []
    order = np.argsort(-weights(learned.model), kind="stable")[:TOLD]
    return [names[at] for at in map(int, order)]


def _folds(windows: Sequence[Seen]) -> list[Mask]:
    """bool a window: it is of a life that is held out."""
    lives = lives_in(windows)
    several = min(FOLDS, len(lives))
    held = [frozenset(lives[at::several]) for at in range(several)]
    return [np.array([window.life in mine for window in windows], dtype=np.bool_) for mine in held]


def _groups(keys: Sequence[tuple[str, int]]) -> list[list[int]]:
    """The positions of those with one key."""
    found: dict[tuple[str, int], list[int]] = {}
    for at, key in enumerate(keys):
        found.setdefault(key, []).append(at)
    return list(found.values())


def _ranks(value: Float64) -> Float64:
    """float64 from 1: equal ones share the mean of their places."""
    _, of, count = np.unique(value, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[of]
