"""Weights that have learned next to nothing, for tests of what is done with any."""

from dataclasses import replace
from pathlib import Path

from teller_core.context.tpe.default import default
from teller_core.model.card import Reads
from teller_core.model.training import WEIGHTS, train
from teller_core.model.words.grammar import grammar, words_hash
from tests.core.model.test_training import QUICK, WORK


def weights_in(folder: Path, *, seed: int = 0) -> Path:
    """The file of a small model that reads what this program writes, and can say its words."""
    reads = Reads(default().hash, 128, words_hash(), len(grammar().words))
    train(replace(WORK, reads=reads, plan=replace(QUICK, updates=1, seed=seed)), folder, lambda text: None)
    return folder / WEIGHTS
