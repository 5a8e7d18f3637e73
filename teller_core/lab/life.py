"""One life of a server: blocks of windows, some healthy and some struck, in random order, and the truth of each beside it.

A folder holds ``bundle-N`` for each start of a server, ``truth.jsonl`` with one block a line, and ``life.json``: what was
asked for.
A life that ended early goes on in a new server with the blocks that are missing.
"""

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from teller_core.errors import InputError, TellerError
from teller_core.lab import load, nodes
from teller_core.lab.blocks import (
    HEALTHY,
    ROUNDS,
    TWINS,
    Block,
    BlockTruth,
    Strike,
    StrikeTruth,
    Window,
    block_of,
    plan_life,
)
from teller_core.lab.effect import apart, noise, ratios, too_small
from teller_core.lab.injectors import METRICS, injector
from teller_core.lab.profiling import profiled, warm
from teller_core.lab.requests import changed, named, ordinary
from teller_core.lab.serving import Live, Setup, program, served
from teller_core.lab.striking import check, struck

CONNECTIONS = 64
PAUSE_S = 0.5
TRUTH, ABOUT = "truth.jsonl", "life.json"

Progress = Callable[[str], None]
Rows = list[dict[str, Any]]


def run_life(
    setup: Setup,
    seed: int,
    wanted: Sequence[tuple[str, str | None]],
    folder: Path,
    progress: Progress,
    *,
    vllm: Path | None = None,
    requests: int,
) -> Sequence[BlockTruth]:
    """Run the blocks that ``folder`` lacks, in one life of a server that is ``setup``. Returns the truth of those that were run.

    ``progress`` is told what goes on. Raises TellerError where the service does not come up or answer, InputError where
    ``folder`` holds another life, or where an injector needs what this service has not.
    """
    blocks = plan_life(seed, wanted, requests)
    for one in {fault: injector(fault) for fault, _ in wanted}.values():
        if setup.engine not in one.engines:
            raise InputError(f"The fault {one.name}", f"{setup.engine} has no place for it", "Name another --engine")
    start = program(setup.engine, vllm)
    _same_life(folder, {**asdict(setup), "seed": seed, "wanted": [list(each) for each in wanted], "requests": requests})
    done = truths(folder)
    (folder / TRUTH).write_text(_whole_lines(folder))
    missing = [block for block in blocks if block.number not in {each.block for each in done}]
    if not missing:
        return []
    nodes.mend(folder)
    bundle = folder / f"bundle-{1 + len([*folder.glob('bundle-*')])}"
    faults = {strike.fault: injector(strike.fault) for block in missing for strike in block.strikes}
    found: list[BlockTruth] = []
    with served(setup, start, bundle, progress) as live:
        for one in faults.values():
            check(one, live)
        load.append(live.service.folder / "client.jsonl", warm(live, others=live.others))
        for count, block in enumerate(missing, start=1):
            progress(f"block {count} of {len(missing)}")
            found.append(_block(block, seed, live, bundle=bundle, before=[*done, *found]))
            with (folder / TRUTH).open("a") as file:
                file.write(json.dumps(asdict(found[-1])) + "\n")
    return found


def setup_for(engine: str, wanted: Sequence[tuple[str, str | None]]) -> Setup:
    """What ``engine`` has to serve for all that is ``wanted``: the plain model, on as many ranks and machines as faults need."""
    needs = {need for fault, _ in wanted for need in injector(fault).needs}
    cache = "small" if "small_cache" in needs else "roomy"
    return Setup(engine, ranks=2 if "second_rank" in needs else 1, apart="link" in needs, cache=cache)


def truths(folder: Path) -> list[BlockTruth]:
    """The blocks that ``folder`` holds. A line that was never finished is none."""
    return [block_of(json.loads(line)) for line in _whole_lines(folder).splitlines()]


def _whole_lines(folder: Path) -> str:
    path = folder / TRUTH
    before, end, _ = path.read_text().rpartition("\n") if path.exists() else ("", "", "")
    return before + end


def _same_life(folder: Path, about: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ABOUT
    if not file.exists():
        if any(folder.iterdir()):
            raise InputError("The folder of the life", "it holds something else", "Name a new one")
        file.write_text(json.dumps(about) + "\n")
    elif json.loads(file.read_text()) != about:
        raise InputError("The folder of the life", "it holds another one", "Name a new one, or ask for the same")


def _block(block: Block, seed: int, live: Live, *, bundle: Path, before: Sequence[BlockTruth]) -> BlockTruth:
    windows: list[Window] = []
    rounds: list[list[tuple[int, Rows]]] = []
    for turn, order in enumerate(block.orders):
        asks = ordinary(random.Random(f"asks {seed} {block.number} {turn}"), block.requests)
        rows: list[tuple[int, Rows]] = []
        for place, strike in enumerate(order):
            chance = random.Random(f"window {seed} {block.number} {turn} {place}")
            does = None if strike == HEALTHY else block.strikes[strike]
            window, own = _window((turn, strike, turn >= ROUNDS), does, asks, chance=chance, live=live)
            windows.append(window)
            rows.append((strike, own))
            time.sleep(PAUSE_S)
        rounds.append(rows)
    rounds = rounds[:ROUNDS]
    twins = [[own for strike, own in rows if strike == HEALTHY] for rows in rounds]
    differ = {metric: [round(each, 4) for each in apart(twins, metric)] for metric in METRICS}
    strikes: list[StrikeTruth] = []
    for number, strike in enumerate(block.strikes):
        judged = injector(strike.fault).moves
        sigma = noise([each for past in before for each in past.healthy_differ[judged]] + differ[judged])
        beside = [
            [*calm, *[own for which, own in rows if which == number]] for calm, rows in zip(twins, rounds, strict=True)
        ]
        mine = [window for window in windows if window.strike in (number, HEALTHY)]
        strikes.append(_truth(strike, mine, beside, sigma, seed))
    return BlockTruth(block.number, bundle.name, windows, strikes, differ)


def _truth(
    strike: Strike, windows: Sequence[Window], beside: Sequence[Sequence[Rows]], sigma: float, seed: int
) -> StrikeTruth:
    """``windows``: healthy and struck ones. ``beside``: round, window, request: the struck window is the last of each round."""
    one = injector(strike.fault)
    moved = ratios(beside, seed)
    failed = sum(window.failed for window in windows)
    if failed:
        rejected = f"{failed} requests failed"
    elif one.where == "inside" and not any(window.delays for window in windows):
        rejected = "the injector did nothing"
    else:
        rejected = too_small(moved.get(one.moves), sigma, TWINS, ROUNDS) or None
    return StrikeTruth(
        **asdict(strike),
        cause=one.cause,
        where=one.where,
        role=one.role,
        judged_by=one.moves,
        moved=moved,
        sigma=round(sigma, 5),
        rejected=rejected,
        rank=one.rank,
    )


def _window(
    place: tuple[int, int, bool],
    strike: Strike | None,
    asks: Sequence[load.Ask],
    *,
    chance: random.Random,
    live: Live,
) -> tuple[Window, Rows]:
    """One window, and what clients measured of its ordinary requests, in their order. ``place``: its round, the strike's
    position, and whether it is profiled.
    """
    turn, number, is_profiled = place
    one = None if strike is None else injector(strike.fault)
    knobs: Mapping[str, float] = {} if strike is None else strike.knobs
    own, others = changed(asks, one, knobs, chance)
    own, others = named(own, chance), named(others, chance)
    together = sorted([*own, *others], key=lambda ask: ask.at)
    with struck(one, knobs, live) as what, profiled(live, others=live.others) if is_profiled else nullcontext():
        rows = load.send(live.target, together, CONNECTIONS, chance.getrandbits(32), _nothing)
    load.append(live.service.folder / "client.jsonl", rows)
    if all(row["err"] for row in rows):
        raise TellerError("The lab's service", "it answers no request any more", "Read server.log in its bundle")
    by_name = {row["rid"]: row for row in rows}
    window = Window(
        round=turn,
        strike=number,
        profiled=is_profiled,
        begin=what.begin,
        end=what.end,
        requests=[ask.rid for ask in own],
        others=[ask.rid for ask in others],
        failed=sum(bool(row["err"]) for row in rows),
        noise=what.noise,
        delays=[] if one is None else what.delays,
    )
    return window, [by_name[ask.rid] for ask in own]


def _nothing() -> None:
    pass
