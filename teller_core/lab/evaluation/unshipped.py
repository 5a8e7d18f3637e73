"""Weights that do not ship, judged as those that do would be. What they come to is told and not kept: no table is written."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from teller_core.context.tpe.default import default
from teller_core.data.causes import cause
from teller_core.errors import InputError
from teller_core.ingest.files.room import cores
from teller_core.lab.benchmark.pack import Packed
from teller_core.lab.evaluation.episode import TEST, TRAIN, Episode
from teller_core.lab.evaluation.learners import load as load_learners
from teller_core.lab.evaluation.loading import of_test, opened, sides
from teller_core.lab.evaluation.method import Method, Options
from teller_core.lab.evaluation.methods import MODELS
from teller_core.lab.evaluation.metrics import answers, of_unseen
from teller_core.lab.evaluation.running import Evaluation, Progress, Sides, evaluated
from teller_core.lab.evaluation.tables import table
from teller_core.model.card import Card, refuse_foreign
from teller_core.model.judging import Model, load

SIDES: Mapping[str, str] = {TEST: "Test side", TRAIN: "Training side, lives that the weights were chosen by"}
"""As tables say whose lives were judged."""


class Weights(NamedTuple):
    """A file of weights, and the side of the lives that it is judged on."""

    path: Path
    side: str


def evaluate_weights(wanted: str, given: Weights, folder: Path, tiers: Sequence[int], progress: Progress) -> list[str]:
    """The tables of a method of MODELS with the model in a file: on the test side of the lives in ``folder``, or of
    the training side on those that were kept from training. Raises TellerError.
    """
    if wanted not in MODELS:
        raise InputError("--weights", f"{wanted} asks no model", f"Name one that does: {', '.join(MODELS)}")
    model = load(given.path, threads=1)  # what is wrong with it is told before lives are read
    refuse_foreign(model.card.reads.vocabulary, default().hash, "vocabulary of traces")
    load_learners()
    method = asking(MODELS[wanted], model, given.path.name)

    def judged(life: Packed) -> bool:
        return of_test(life) if given.side == TEST else life.name in model.card.held

    texts: list[str] = []
    with opened(folder, progress, cores(), wanted=judged) as lives:
        for tier in tiers:
            found = sides(lives, tier, progress, cores())
            chosen = found if given.side == TEST else Sides((), found.train)
            done = with_unseen(evaluated(method, chosen, progress, cores()), model.card)
            texts.append(table(done, tier, SIDES[given.side]))
    return texts


def asking(method: Method, model: Model, name: str) -> Method:
    """``method`` with another ``model`` than the one that ships, from a file called ``name``."""
    about = f"{method.about}; here with {name}, key {model.card.key[:16]}"

    def trained(episodes: Sequence[Episode], options: Options, seed: int) -> Model:
        """It was trained before."""
        return model

    return replace(method, about=about, train=trained)


def with_unseen(done: Evaluation, card: Card) -> Evaluation:
    """``done`` with what is said of the cause that was kept from training, where one was."""
    if not card.plan.unseen:
        return done
    told = of_unseen(answers(done.rows.requests), cause(card.plan.unseen).id)
    return done._replace(figures=[*done.figures, *told])
