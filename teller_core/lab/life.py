"""One life of a server: blocks of windows, some healthy and some struck, in random order, and the truth of each beside it.

A folder holds ``bundle-N`` for each start of a server, ``truth.jsonl`` with one block a line, and ``life.json``: what was
asked for.
A life that ended early goes on in a new server with the blocks that are missing.
"""

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from teller_core.errors import InputError, TellerError
from teller_core.lab import load
from teller_core.lab.effect import Ratio, apart, noise, ratios, too_small
from teller_core.lab.injectors import SEVERITIES, Injector, draw, injector
from teller_core.lab.outside import Delay
from teller_core.lab.requests import changed, named, ordinary
from teller_core.lab.serving import Live, program, served
from teller_core.lab.striking import Struck, check, struck

TWINS = 2
"""Healthy windows of a round, beside one that is struck: what they differ by is the noise."""
ROUNDS = 4
"""Of a block. Many short ones: what else goes on on the machine then strikes all windows of a round alike."""
CONNECTIONS = 64
PAUSE_S = 0.5
TRUTH, ABOUT = "truth.jsonl", "life.json"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Block:
    """What one block is to be: one injector at one severity. ``orders``: of the windows of each round; the last one is struck.
    ``requests``: of one window.
    """

    number: int
    fault: str
    severity: str
    knobs: Mapping[str, float]
    orders: Sequence[Sequence[int]]
    requests: int


@dataclass(frozen=True)
class Window:
    """What was done in a window, and to whom. Unix ns; ``requests``: the names of those that are compared, in order."""

    round: int
    kind: str
    begin: int
    end: int
    requests: Sequence[str]
    others: Sequence[str]
    failed: int
    noise: Mapping[str, int | None]


@dataclass(frozen=True)
class BlockTruth:
    """The truth of a block.

    ``moved``: by latency, its ratio to the healthy windows. ``healthy_differ``: the logarithm of the ratio of the two healthy
    windows of each round, in ``judged_by``; ``sigma``: what follows for one window, over the life so far. ``delays``: [start,
    stop, ns] that the injector itself saw. ``rejected``: why nothing counts as moved, None where it does.
    """

    block: int
    bundle: str
    engine: str
    fault: str
    cause: str | None
    severity: str
    knobs: Mapping[str, float]
    windows: Sequence[Window]
    delays: Sequence[Delay]
    delayed_ns: int
    judged_by: str
    moved: Mapping[str, Ratio]
    healthy_differ: Sequence[float]
    sigma: float
    rejected: str | None


def plan_life(seed: int, wanted: Sequence[tuple[str, str | None]], requests: int) -> Sequence[Block]:
    """The blocks of a life, in an order of the seed's own. ``wanted``: faults and severities; None: one of the seed's own.

    Raises UnknownName for a fault or severity that is not there.
    """
    chance = random.Random(f"life {seed}")
    blocks: list[Block] = []
    for number, (fault, severity) in enumerate(wanted):
        chosen = severity or chance.choice(SEVERITIES[1:])
        orders = [chance.sample(range(TWINS + 1), TWINS + 1) for _ in range(ROUNDS)]
        each = max(2, -(-requests // ROUNDS))
        blocks.append(Block(number, fault, chosen, draw(injector(fault), chosen, chance), orders, each))
    return chance.sample(blocks, len(blocks))


def run_life(
    engine: str,
    seed: int,
    wanted: Sequence[tuple[str, str | None]],
    folder: Path,
    progress: Progress,
    *,
    vllm: Path | None = None,
    requests: int,
) -> Sequence[BlockTruth]:
    """Run the blocks that ``folder`` lacks, in one life of a server. Returns the truth of those that were run.

    ``progress`` is told what goes on. Raises TellerError where the service does not come up or answer, InputError where
    ``folder`` holds another life, or where an injector needs what this service has not.
    """
    blocks = plan_life(seed, wanted, requests)
    for one in {block.fault: injector(block.fault) for block in blocks}.values():
        if engine not in one.engines:
            raise InputError(f"The fault {one.name}", f"{engine} has no place for it", "Name another --engine")
    start = program(engine, vllm)
    _same_life(
        folder, {"engine": engine, "seed": seed, "wanted": [list(each) for each in wanted], "requests": requests}
    )
    done = truths(folder)
    (folder / TRUTH).write_text(_whole_lines(folder))
    missing = [block for block in blocks if block.number not in {each["block"] for each in done}]
    if not missing:
        return []
    bundle = folder / f"bundle-{1 + len([*folder.glob('bundle-*')])}"
    needs = {need for block in missing for need in injector(block.fault).needs}
    found: list[BlockTruth] = []
    with served(engine, start, bundle, needs, progress) as live:
        for block in missing:
            check(injector(block.fault), live)
        for count, block in enumerate(missing, start=1):
            progress(f"block {count} of {len(missing)}")
            found.append(_block(block, engine, seed, live, bundle=bundle, before=found))
            with (folder / TRUTH).open("a") as file:
                file.write(json.dumps(asdict(found[-1])) + "\n")
    return found


def truths(folder: Path) -> list[dict[str, Any]]:
    """The blocks that ``folder`` holds. A line that was never finished is none."""
    return [json.loads(line) for line in _whole_lines(folder).splitlines()]


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


def _block(
    block: Block, engine: str, seed: int, live: Live, *, bundle: Path, before: Sequence[BlockTruth]
) -> BlockTruth:
    one = injector(block.fault)
    windows: list[Window] = []
    rounds: list[list[list[dict[str, Any]]]] = []
    delays: list[Delay] = []
    for turn, order in enumerate(block.orders):
        asks = ordinary(random.Random(f"asks {seed} {block.number} {turn}"), block.requests)
        rows: dict[int, list[dict[str, Any]]] = {}
        for place in order:
            chance = random.Random(f"window {seed} {block.number} {turn} {place}")
            does = one if place == TWINS else None
            window, rows[place], what = _window(turn, does, block.knobs, asks, chance=chance, live=live, bundle=bundle)
            windows.append(window)
            delays += what.delays if does else []
            time.sleep(PAUSE_S)
        rounds.append([rows[place] for place in range(TWINS + 1)])
    moved, differ = ratios(rounds, seed), apart(rounds, one.moves)
    sigma = noise([each for block in before if block.judged_by == one.moves for each in block.healthy_differ] + differ)
    return BlockTruth(
        block=block.number,
        bundle=bundle.name,
        engine=engine,
        fault=one.name,
        cause=one.cause,
        severity=block.severity,
        knobs=block.knobs,
        windows=windows,
        delays=delays,
        delayed_ns=sum(delay.delay for delay in delays),
        judged_by=one.moves,
        moved=moved,
        healthy_differ=[round(each, 4) for each in differ],
        sigma=round(sigma, 5),
        rejected=_rejected(one, delays, moved, sigma, windows),
    )


def _rejected(
    one: Injector, delays: Sequence[Delay], moved: Mapping[str, Ratio], sigma: float, windows: Sequence[Window]
) -> str | None:
    if failed := sum(window.failed for window in windows):
        return f"{failed} requests failed"
    if one.where == "inside" and not delays:
        return "the injector did nothing"
    return too_small(moved.get(one.moves), sigma, TWINS, ROUNDS) or None


def _window(
    turn: int,
    one: Injector | None,
    knobs: Mapping[str, float],
    asks: Sequence[load.Ask],
    *,
    chance: random.Random,
    live: Live,
    bundle: Path,
) -> tuple[Window, list[dict[str, Any]], Struck]:
    """One window: what clients measured of the ordinary requests, in their order, and what was done."""
    own, others = changed(asks, one, knobs, chance)
    own, others = named(own, chance), named(others, chance)
    together = sorted([*own, *others], key=lambda ask: ask.at)
    with struck(one, knobs, live) as what:
        rows = load.send(live.target, together, CONNECTIONS, chance.getrandbits(32), _nothing)
    _append(bundle, rows)
    if all(row["err"] for row in rows):
        raise TellerError("The lab's service", "it answers no request any more", "Read server.log in its bundle")
    by_name = {row["rid"]: row for row in rows}
    window = Window(
        round=turn,
        kind="healthy" if one is None else "struck",
        begin=what.begin,
        end=what.end,
        requests=[ask.rid for ask in own],
        others=[ask.rid for ask in others],
        failed=sum(bool(row["err"]) for row in rows),
        noise=what.noise,
    )
    return window, [by_name[ask.rid] for ask in own], what


def _append(bundle: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """At once: who is killed keeps what was measured."""
    with (bundle / "client.jsonl").open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _nothing() -> None:
    pass
