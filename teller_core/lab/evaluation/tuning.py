"""Options of a method, chosen on the training side: the same number of tries, the same folds and the same aim for all."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from teller_core.lab.evaluation.causes import balanced, named
from teller_core.lab.evaluation.detection import at_prior, average_precision, ranked
from teller_core.lab.evaluation.episode import NOT_JUDGED, Episode
from teller_core.lab.evaluation.method import Judged, Method, Options
from teller_core.lab.side_by_side import side_by_side

FOLDS = 3
MOST_EPISODES = 24
"""Of the training side, that options are chosen on, as many of each life as can be: what is chosen is six numbers."""
PRIOR = 0.10
"""Between the paper's and a service's."""


class Tuned(NamedTuple):
    """``options`` that were best, and ``log``: one line a try, what it came to in each fold."""

    options: Options
    log: Sequence[str]


def tuned(method: Method, episodes: Sequence[Episode], progress: Callable[[str], None], at_once: int = 1) -> Tuned:
    """Try every entry of the method's grid, ``at_once`` at a time, lives kept together; of equals the first is best. One entry
    alone needs no try, and options of steps no further one where no step could be scored.
    """
    if len(method.grid) == 1:
        return Tuned(method.grid[0], [f"{_text(method.grid[0])}: nothing to choose"])
    few = spread(episodes, MOST_EPISODES)
    parts = folds([episode.life for episode in few])

    def tried(at: int) -> list[_Try]:
        progress(f"{method.name}: options {at + 1} of {len(method.grid)}")
        return [_fold(method, method.grid[at], few, held) for held in parts]

    first = tried(0)
    if method.of_steps and not any(one.scored for one in first):
        return Tuned(method.grid[0], [f"{_text(method.grid[0])}: no step can be scored, nothing to choose"])
    rest = side_by_side([partial(tried, at) for at in range(1, len(method.grid))], at_once)
    found = [[one.aim for one in tries] for tries in (first, *rest)]
    means = [float(np.mean(values)) if values else float("nan") for values in found]
    log = [
        f"{_text(options)}: {mean:.4f} ({', '.join(f'{value:.4f}' for value in values)})"
        for options, mean, values in zip(method.grid, means, found, strict=True)
    ]
    return Tuned(method.grid[int(np.argmax(np.nan_to_num(means)))], log)


def spread(episodes: Sequence[Episode], most: int) -> list[Episode]:
    """At most so many of ``episodes``: the first of each life, then the second, in an order that does not follow their truth."""
    chance = np.random.default_rng(0)
    order = map(int, chance.permutation(len(episodes)))
    turn: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    for at in order:
        life = episodes[at].life
        turn[life] = turn.get(life, 0) + 1
        places.append((turn[life], at))
    return [episodes[at] for at in sorted(at for _, at in sorted(places)[:most])]


def folds(lives: Sequence[str], count: int = FOLDS) -> list[frozenset[str]]:
    """The lives in at most ``count`` parts, none empty; each life in one."""
    names = sorted(set(lives))
    parts = [frozenset(names[at::count]) for at in range(min(count, len(names)))]
    return parts if len(parts) > 1 else []


def aim(episodes: Sequence[Episode], said: Sequence[Judged]) -> float:
    """What is made large: the mean of how well steps are ranked at a prior of 10 %, and of how well requests are told, each cause
    and health counting alike; 0 for what a method says nothing about.
    """
    label = np.concatenate([e.labels.step[e.labels.step >= 0] == 1 for e in episodes])
    score = np.concatenate([j.step_score[e.labels.step >= 0] for e, j in zip(episodes, said, strict=True)])
    precision = average_precision(ranked(label, score), at_prior(label, np.ones(len(label)), PRIOR))
    truth: list[str] = []
    claimed: list[list[str]] = []
    for episode, judged in zip(episodes, said, strict=True):
        for request, cause in enumerate(episode.labels.request):
            if cause != NOT_JUDGED:
                truth.append(cause)
                claimed.append([claim.cause for claim in judged.causes[request]])
    given = named(truth, claimed)
    return float(np.mean(np.nan_to_num([precision, balanced(given, np.ones(len(truth)))])))


class _Try(NamedTuple):
    """What one fold came to, and whether any of its steps has a score."""

    aim: float
    scored: bool


def _fold(method: Method, options: Options, episodes: Sequence[Episode], held: frozenset[str]) -> _Try:
    learned = method.train([each for each in episodes if each.life not in held], options, 0)
    tried = [each for each in episodes if each.life in held]
    said = [method.judge(learned, each.seen) for each in tried]
    return _Try(aim(tried, said), any(not np.isnan(judged.step_score).all() for judged in said))


def _text(options: Options) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in options.items()) or "no options"
