"""The vocabulary that comes with the project."""

from functools import lru_cache
from pathlib import Path

from teller_core.context.tpe.vocabulary import Vocabulary, load

FILE = Path(__file__).with_name("default.tpe")


@lru_cache(1)
def default() -> Vocabulary:
    """The vocabulary beside this file, which tests/bench/tpe_vocabulary.py wrote."""
    return load(FILE)
