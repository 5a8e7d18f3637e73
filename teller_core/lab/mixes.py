"""Mixes of ordinary requests by name: even ones, and two as users of a public chat service send them.

Where a mix says conversations, its figures are of the arrivals that Mooncake published (Qin et al., "Mooncake: Trading More
Storage for Less Computation", FAST 2025; github.com/kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl at
3b5a594, Apache-2.0): 12,031 requests of an hour. They are scaled to a service on two processors: a request is a two-hundredth
as long, and some three come in a second.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.errors import UnknownName

GAP_S = 0.35
"""Between two requests, on average: the process that computes is then busy for a third to two thirds of the time, whichever model
and engine it is.
"""
LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Of the quantiles below."""
PROMPT_TOKENS = (891, 964, 1662, 3263, 4993, 6909, 9570, 13196, 17869, 27367, 39549, 85399, 126195)
OUTPUT_TOKENS = (1, 24, 100, 213, 291, 350, 399, 447, 504, 597, 698, 1115, 2000)
SHARED = (0.0, 0.027, 0.05, 0.083, 0.143, 0.333, 0.5, 0.5, 0.793, 0.929, 0.964, 0.995, 1.0)
"""Of a prompt, what some earlier prompt began with."""
AT_ONCE = (2, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 18, 28)
"""Requests that came within a tick of 3 s, the clock of that record: in which order and how close is not known."""
RATES = (0.66, 0.78, 0.88, 0.92, 0.96, 1.0, 1.03, 1.08, 1.13, 1.19, 1.25, 1.29, 1.32)
"""Requests of half a minute over those of an average one."""
PROMPT_MEAN, OUTPUT_MEAN, AT_ONCE_MEAN = 12035, 343, 10.2
WORDS, OUTPUT, TOGETHER = 60, 40, 3.0
"""What these means become here."""
LEAST_WORDS, LEAST_OUTPUT, MOST_OUTPUT = 4, 16, 64
TALKS = 8
"""Conversations that go on at once: what the prompts of one share, no other has."""


class Size(NamedTuple):
    """One request: seconds from the first one, words (the first ``shared`` of them of conversation ``talk``), tokens to make."""

    at: float
    words: int
    output: int
    talk: int = 0
    shared: int = 0


@dataclass(frozen=True)
class Mix:
    """``title``: in words. ``conversations``: lengths as published. ``bursts``: who comes within a tick comes at once."""

    title: str
    conversations: bool
    bursts: bool


MIXES: Mapping[str, Mix] = {
    "steady": Mix("Even lengths, one after the other by chance", conversations=False, bursts=False),
    "chat": Mix("Lengths of conversations, one after the other by chance", conversations=True, bursts=False),
    "bursty": Mix("Lengths of conversations, several at once", conversations=True, bursts=True),
}


def sizes(mix: str, requests: int, chance: random.Random) -> Sequence[Size]:
    """``requests`` of them, in order, from time 0. Raises UnknownName for a mix that is not there."""
    if mix not in MIXES:
        raise UnknownName("The mix of requests", "it is none of " + ", ".join(MIXES), "Name one of these")
    made = MIXES[mix]
    if not made.conversations:
        return _even(requests, chance)
    times = _ticks(requests, chance) if made.bursts else _by_chance(requests, GAP_S / _drawn(RATES, chance), chance)
    return [_of_a_talk(at, chance) for at in times]


def _even(requests: int, chance: random.Random) -> Sequence[Size]:
    at = 0.0
    found: list[Size] = []
    for _ in range(requests):
        found.append(Size(at, chance.randint(8, 110), chance.randint(LEAST_OUTPUT, MOST_OUTPUT)))
        at += chance.expovariate(1 / GAP_S)
    return found


def _by_chance(requests: int, gap: float, chance: random.Random) -> Sequence[float]:
    """A Poisson process: so, but for its rate, the published ticks are (their variance is 1.1 times their mean)."""
    times = [0.0]
    while len(times) < requests:
        times.append(times[-1] + chance.expovariate(1 / gap))
    return times


def _ticks(requests: int, chance: random.Random) -> Sequence[float]:
    """As the record has them: everybody who comes within a tick comes when it begins."""
    times: list[float] = []
    at = 0.0
    while len(times) < requests:
        times += [at] * max(1, round(_drawn(AT_ONCE, chance) * TOGETHER / AT_ONCE_MEAN))
        at += GAP_S * TOGETHER
    return times[:requests]


def _of_a_talk(at: float, chance: random.Random) -> Size:
    words = max(LEAST_WORDS, round(_drawn(PROMPT_TOKENS, chance) * WORDS / PROMPT_MEAN))
    output = round(_drawn(OUTPUT_TOKENS, chance) * OUTPUT / OUTPUT_MEAN)
    shared = min(words - 1, round(words * _drawn(SHARED, chance)))  # the last words are the user's own
    return Size(at, words, min(max(output, LEAST_OUTPUT), MOST_OUTPUT), chance.randint(1, TALKS), shared)


def _drawn(quantiles: Sequence[float], chance: random.Random) -> float:
    return float(np.interp(chance.random(), LEVELS, quantiles))
