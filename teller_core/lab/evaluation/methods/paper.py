"""The paper's method, rebuilt: its candidates, its slice, its encoding; a linear head in the place of its language model.

Whether a step is abnormal is a logistic regression on the bag of its slice's tokens and on how suspicious its candidates are. It
needs a profile of every step that it judges, as in the paper; of other steps it cannot tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from teller_core.context.tpe import reference
from teller_core.context.tpe.train import samples
from teller_core.data.table import Float64
from teller_core.data.tree import Tree
from teller_core.lab.evaluation import paper_candidates
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.learners import logistic, probabilities
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.operator_times import Profiled, profiled
from teller_core.lab.evaluation.paper_candidates import Calls, Family, Suspect, calls_of, suspects
from teller_core.lab.evaluation.paper_slice import bag, slice_of
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.evaluation.training import Scale, fresh, scale_of, some

GRID: Sequence[Options] = tuple({"symbols": n, "here": here} for here in (0, 1) for n in (256, 512, 1024))
"""The paper's three vocabularies, and whether its mixtures are learned from the training side or from the capture itself."""
MOST_TREES = 400
STRENGTH = 0.1
ABNORMAL = "abnormal"


HERE: Mapping[str, Family] = {}
"""Stands for mixtures that are learned from each capture."""


@dataclass(frozen=True)
class Paper:
    """``families``: HERE, or what was learned. ``head`` None: all training steps are of one kind."""

    families: Mapping[str, Family]
    stream: reference.Stream
    scale: Scale
    head: Any
    seed: int


class Part(NamedTuple):
    """One profiled step on one rank."""

    of: Profiled
    found: list[Suspect]
    tree: Tree


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Paper:
    """Mixtures, the vocabulary and the head, all on the training side."""
    families = HERE
    if not options["here"]:
        families = paper_candidates.learn([calls for episode in episodes for calls in _calls(episode.seen)], seed)
    looked = [_looked(families, episode.seen, seed) for episode in episodes]
    trees = [part.tree for mine in looked for part in mine]
    few = some(np.arange(len(trees), dtype=np.float64), MOST_TREES, seed).astype(np.int64)
    stream = reference.train(samples([trees[int(at)] for at in few]), int(options["symbols"]))
    value, label = _rows(episodes, looked, stream)
    scale = scale_of(value)
    head = logistic(scale(value), label, strength=STRENGTH) if len(set(label)) > 1 else None
    return Paper(families, stream, scale, head, seed)


def score(model: Paper, seen: Seen) -> Float64:
    """float64 a step: the probability that it is abnormal, of several ranks the largest; NaN without a profile."""
    out = np.full(len(seen.case.begin), np.nan)
    looked = _looked(model.families, seen, model.seed)
    if model.head is None or not looked:
        return out
    classes, probability = probabilities(model.head, model.scale(_values(looked, model.stream)))
    steps = np.array([part.of.step for part in looked], dtype=np.int64)
    np.fmax.at(out, steps, probability[:, classes.index(ABNORMAL)])
    return out


def _calls(seen: Seen) -> list[Calls]:
    """Of every profiled step."""
    return seen.once("calls", lambda seen: [calls_of(part) for part in profiled(seen)])


def _looked(families: Mapping[str, Family], seen: Seen, seed: int) -> list[Part]:
    """The candidates and the slice of every profiled step. They are kept while it is asked with the same mixtures."""
    kept: tuple[Mapping[str, Family], int, list[Part]] | None = seen.measured.get("paper")
    if kept is None or kept[0] is not families or kept[1] != seed:
        known = paper_candidates.learn(_calls(seen), seed) if families is HERE else families
        parts = [_part(part, mine, known) for part, mine in zip(profiled(seen), _calls(seen), strict=True)]
        seen.measured["paper"] = kept = families, seed, parts
    return kept[2]


def _part(part: Profiled, calls: Calls, families: Mapping[str, Family]) -> Part:
    found = suspects(calls, families, part.tree)
    return Part(part, found, slice_of(part, [one.row for one in found]))


def _values(looked: Sequence[Part], stream: reference.Stream) -> Float64:
    """float64 [parts, columns]: the bag of tokens, how many candidates, the largest suspicion."""
    rows = [
        np.append(bag(part.tree, stream), [len(part.found), max([one.suspicion for one in part.found], default=0.0)])
        for part in looked
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), 2 * len(stream) + 2)


def _rows(
    episodes: Sequence[Episode], looked: Sequence[Sequence[Part]], stream: reference.Stream
) -> tuple[Float64, list[str]]:
    """The judged steps of the training side, each once."""
    kept: list[Part] = []
    label: list[str] = []
    for episode, parts, mine in zip(episodes, looked, fresh(episodes), strict=True):
        for part in parts:
            if mine[part.of.step] and episode.labels.step[part.of.step] >= 0:
                kept.append(part)
                label.append(ABNORMAL if episode.labels.step[part.of.step] == 1 else "")
    return _values(kept, stream), label


def _operators(model: Paper, seen: Seen) -> list[list[str]]:
    names: list[list[str]] = [[] for _ in range(len(seen.case.begin))]
    most: dict[tuple[int, str], float] = {}
    for part in _looked(model.families, seen, model.seed):
        for one in part.found:
            key = part.of.step, one.name
            most[key] = max(most.get(key, 0.0), one.suspicion)
    for step, name in sorted(most, key=lambda key: (key[0], -most[key], key[1])):
        names[step].append(name)
    return names


METHOD = method_of(
    Scorer(
        "paper", "mixtures, causal slice and Trace Pair Encoding as published", learn, score, GRID, operators=_operators
    )
)
