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

from teller_core.data.whole import keep_text, made_folder, whole_lines
from teller_core.errors import FormatError, InputError, TellerError
from teller_core.lab import load, nodes
from teller_core.lab.blocks import (
    BROKEN,
    HEALTHY,
    ROUNDS,
    TWINS,
    Block,
    BlockTruth,
    Strike,
    StrikeTruth,
    Window,
    at_start,
    block_of,
    plan_life,
)
from teller_core.lab.effect import apart, noise, ratios, too_small
from teller_core.lab.injectors import METRICS, injector
from teller_core.lab.profiling import profiled, warm
from teller_core.lab.requests import changed, named, ordinary, touched
from teller_core.lab.serving import Live, Setup, program, served
from teller_core.lab.striking import check, struck

CONNECTIONS = 64
PAUSE_S = 0.25
"""Before anything is done for the next window: the last answers of this one have left by then."""
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
    mix: str = "steady",
    vllm: Path | None = None,
    requests: int,
) -> Sequence[BlockTruth]:
    """Run the blocks that ``folder`` lacks, in one life of a server that is ``setup``. Returns the truth of those that were run.

    ``mix``: of the ordinary requests, one of ``MIXES``. ``progress`` is told what goes on. Raises TellerError where the service
    does not come up or answer, InputError where ``folder`` holds another life, or where an injector needs what this service has
    not, UnknownName for a mix that is not there.
    """
    blocks = plan_life(seed, wanted, requests)
    for one in {fault: injector(fault) for fault, _ in wanted}.values():
        if setup.engine not in one.engines:
            raise InputError(f"The fault {one.name}", f"{setup.engine} has no place for it", "Name another --engine")
    start = program(setup.engine, vllm)
    asked = {"load": mix, "seed": seed, "wanted": [list(each) for each in wanted], "requests": requests}
    same_life(folder, {**asdict(setup), **asked})
    done = truths(folder)
    keep_text(folder / TRUTH, whole_lines(folder / TRUTH))
    missing = [block for block in blocks if block.number not in {each.block for each in done}]
    if not missing:
        return []
    nodes.mend(folder)
    bundle = folder / f"bundle-{1 + len([*folder.glob('bundle-*')])}"
    faults = {strike.fault: injector(strike.fault) for block in missing for strike in block.strikes}
    found: list[BlockTruth] = []
    with served(setup, start, bundle, progress, _first(missing, seed, setup, mix)) as live:
        for one in faults.values():
            check(one, live)
        load.append(live.service.folder / "client.jsonl", warm(live, others=live.others))
        for count, block in enumerate(missing, start=1):
            progress(f"block {count} of {len(missing)}")
            found.append(_block(block, seed, mix, live, bundle=bundle.name, before=[*done, *found]))
            with (folder / TRUTH).open("a") as file:
                file.write(json.dumps(asdict(found[-1])) + "\n")
    return found


def setup_for(engine: str, wanted: Sequence[tuple[str, str | None]]) -> Setup:
    """What ``engine`` has to serve for all that is ``wanted``: the plain model, on as many ranks and machines as faults need."""
    needs = {need for fault, _ in wanted for need in injector(fault).needs}
    cache = "small" if "small_cache" in needs else "roomy"
    return Setup(engine, ranks=2 if "second_rank" in needs else 1, apart="link" in needs, cache=cache)


def truths(folder: Path) -> list[BlockTruth]:
    """The blocks that ``folder`` holds. A line that was never finished is none. Raises FormatError for one that is no truth."""
    try:
        return [block_of(json.loads(line)) for line in whole_lines(folder / TRUTH).splitlines()]
    except BROKEN as error:
        raise FormatError(TRUTH, "it is damaged", "Record the life again, into a new folder") from error


def same_life(folder: Path, about: Mapping[str, Any]) -> None:
    """Write down in ``folder`` what was asked for. Raises InputError where it holds something else, or another life."""
    made_folder(folder)
    file = folder / ABOUT
    if not file.exists():
        if any(folder.glob("[!.]*")):
            raise InputError("The folder of the life", "it holds something else", "Name a new one")
        keep_text(file, json.dumps(about) + "\n")
    elif _json(file) != about:
        raise InputError("The folder of the life", "it holds another one", "Name a new one, or ask for the same")


def _json(file: Path) -> Any:
    """None where it is none."""
    try:
        return json.loads(file.read_text())
    except BROKEN:
        return None


def _first(blocks: Sequence[Block], seed: int, setup: Setup, mix: str) -> Sequence[load.Ask]:
    """What is sent before the service is warm: the requests of a block that asks for it, else none."""
    for block in blocks:
        if at_start(block.strikes[0]):
            return named(_asks(block, 0, seed, setup, mix), random.Random(f"first {seed}"))
    return ()


def _asks(block: Block, turn: int, seed: int, setup: Setup, mix: str) -> Sequence[load.Ask]:
    """The requests of every window of a round. After a start all clients come at once, and so do those they are compared with."""
    asks = ordinary(random.Random(f"asks {seed} {block.number} {turn}"), block.requests, mix, setup.beginning)
    return [ask._replace(at=0.0) for ask in asks] if at_start(block.strikes[0]) else asks


def _block(block: Block, seed: int, mix: str, live: Live, *, bundle: str, before: Sequence[BlockTruth]) -> BlockTruth:
    windows: list[Window] = []
    rounds: list[list[tuple[int, Rows]]] = []
    for turn, order in enumerate(block.orders):
        asks = _asks(block, turn, seed, live.setup, mix)
        rows: list[tuple[int, Rows]] = []
        for place, strike in enumerate(order):
            chance = random.Random(f"window {seed} {block.number} {turn} {place}")
            does = None if strike == HEALTHY else block.strikes[strike]
            if does is not None and at_start(does):
                window, own = _start(turn, strike, live)
            else:
                what = (turn, strike, turn >= ROUNDS)
                window, own = run_window(what, does, sent(does, asks, chance), chance=chance, live=live)
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
        places = touched(block.requests, injector(strike.fault), strike.knobs)
        beside = [[[own[place] for place in places] for own in of_round] for of_round in beside]
        mine = [window for window in windows if window.strike in (number, HEALTHY)]
        strikes.append(_truth(strike, mine, beside, sigma, seed))
    return BlockTruth(block.number, bundle, windows, strikes, differ)


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
        rejected = too_small(moved.get(one.moves), sigma, TWINS, len(beside)) or None
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


def _start(turn: int, number: int, live: Live) -> tuple[Window, Rows]:
    """The window of what was sent before the service was warm, as its clients measured it."""
    rows = list(live.first)
    window = Window(
        round=turn,
        strike=number,
        profiled=False,
        begin=min(row["start_ns"] for row in rows),
        end=max(row["end_ns"] for row in rows),
        requests=[row["rid"] for row in rows],
        others=[],
        failed=sum(bool(row["err"]) for row in rows),
        noise={"worker_run_queue_wait_ns": None, "machine_cpu_pressure_ns": None, "throttled_ns": None},
        delays=[],
    )
    return window, rows


def sent(
    strike: Strike | None, asks: Sequence[load.Ask], chance: random.Random
) -> tuple[Sequence[load.Ask], Sequence[load.Ask]]:
    """(the ordinary requests, those of others) of a window with ``strike``, where ``asks`` are sent in a healthy one."""
    if strike is None:
        return changed(asks, None, {}, chance)
    return changed(asks, injector(strike.fault), strike.knobs, chance)


def run_window(
    place: tuple[int, int, bool],
    strike: Strike | None,
    asks: tuple[Sequence[load.Ask], Sequence[load.Ask]],
    *,
    chance: random.Random,
    live: Live,
) -> tuple[Window, Rows]:
    """One window, and what clients measured of its ordinary requests, in their order. ``place``: its round, the strike's
    position, and whether it is profiled. ``asks``: ordinary ones and others, which are named here.
    """
    turn, number, is_profiled = place
    one = None if strike is None else injector(strike.fault)
    knobs: Mapping[str, float] = {} if strike is None else strike.knobs
    own, others = (named(each, chance) for each in asks)
    together = sorted([*own, *others], key=lambda ask: ask.at)
    with struck(one, knobs, live) as what, profiled(live, others=live.others) if is_profiled else nullcontext():
        rows = load.send(live.target, together, CONNECTIONS, chance.getrandbits(32))
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
