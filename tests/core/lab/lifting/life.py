"""A life of a made-up engine: rounds of the same requests in two healthy windows and one for each fault."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from teller_core.data.capture import Capture
from teller_core.lab.blocks import HEALTHY, BlockTruth, StrikeTruth, Window
from tests.core.judge.reschedule.served import MS, ZERO, Ask, Engine, capture, served

LONG, PAUSE = 4_000 * MS, 500 * MS
ROUNDS = 4
Trouble = Callable[[int], int]
"""ns that are added to a step which is decided on so many ns after its window's begin."""


def life(
    troubles: Sequence[Trouble], *, seed: int = 1, noise: float = 0.05, requests: int = 6
) -> tuple[Capture, BlockTruth]:
    """A capture, and what is true of it: a strike for each of ``troubles``."""
    chance = random.Random(seed)
    asks: list[Ask] = []
    windows: list[Window] = []
    for turn in range(ROUNDS):
        own = [
            Ask(chance.randrange(600) * MS, chance.randrange(20, 90), chance.randrange(8, 40)) for _ in range(requests)
        ]
        for strike in chance.sample([*range(len(troubles)), HEALTHY, HEALTHY], len(troubles) + 2):
            begin = len(windows) * (LONG + PAUSE)
            names = [f"{len(asks) + at:08x}" for at in range(requests)]
            asks += [replace(ask, at=begin + ask.at) for ask in own]
            windows.append(Window(turn, strike, False, ZERO + begin, ZERO + begin + LONG, names, [], 0, {}, []))

    def extra(now: int) -> int:
        window = windows[min(now // (LONG + PAUSE), len(windows) - 1)]
        usual = int(chance.lognormvariate(0.0, noise) * MS)
        return usual + (troubles[window.strike](now % (LONG + PAUSE)) if window.strike != HEALTHY else 0)

    whole = capture(served(asks, Engine(seats=8, tokens=64), extra))
    names = [name for window in windows for name in window.requests]
    table = replace(
        whole.requests,
        client_id=names,
        client_start=whole.requests.queued - MS,
        client_end=whole.requests.finished + MS,
    )
    strikes = [
        StrikeTruth(f"trouble_{at}", "host.blocking_call", "strong", {}, "inside", "worker", "e2e", {}, 0.1, None)
        for at in range(len(troubles))
    ]
    return replace(whole, requests=table), BlockTruth(0, "bundle-1", windows, strikes, {})
