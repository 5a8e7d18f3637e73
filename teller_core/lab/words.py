"""Prompts that are the same everywhere: a few thousand made-up words from a seed, the common ones used most."""

import random
from collections.abc import Iterator

SYLLABLES = [
    first + vowel for first in "bcdfghjklmnprstvz" for vowel in ("a", "e", "i", "o", "u", "ar", "en", "is", "ol")
]
WORDS = 2500


def vocabulary() -> list[str]:
    """The words, most common first."""
    chance = random.Random(7)
    found: dict[str, None] = {}
    while len(found) < WORDS:
        found["".join(chance.choices(SYLLABLES, k=chance.choice((1, 2, 2, 3))))] = None
    return list(found)


def sentence(chance: random.Random, words: list[str], length: int) -> str:
    """``length`` of ``words``, drawn so that the first ones come most often (Zipf's law)."""
    weights = [1.0 / (rank + 2) for rank in range(len(words))]
    return " ".join(chance.choices(words, weights, k=length))


def corpus() -> Iterator[str]:
    """Lines for training a tokenizer."""
    chance = random.Random(11)
    words = vocabulary()
    for _ in range(1500):
        yield sentence(chance, words, chance.randint(5, 40))
