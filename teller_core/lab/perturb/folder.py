"""A folder of episodes: recordings, ready to be replayed; a plan; and the truth, in files that nobody who answers reads.

Of an episode no column is kept. It is made again, bit for bit, from its recording, the seed and its number.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.whole import keep_text, made_folder, whole_lines
from teller_core.errors import FormatError, InputError, TellerError
from teller_core.ingest.files.room import cores
from teller_core.judge.replay.network import unclaimed
from teller_core.lab.benchmark.pack import NO_TIME, nothing_judged, with_trees
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.seen import blinded
from teller_core.lab.perturb.benign import Spread, spread_of
from teller_core.lab.perturb.episodes import RUNS, Made, Prepared, made, possible, prepared
from teller_core.lab.perturb.pieces import pieces, ready
from teller_core.lab.perturb.recordings import Recording
from teller_core.lab.side_by_side import side_by_side
from teller_core.pipeline import STAGES
from teller_core.store.store import Store
from teller_core.tell.progress import nobody
from teller_core.tell.summary import capture_report

PLAN, TRUTH, STORES = "plan.json", "truth", "recordings"
FORMAT = 1
WANTED = 3_200
"""Episodes, where nobody says how many."""
SINCE, EACH_NS = 1_700_000_000_000_000_000, 1_000_000_000_000
"""When the first episode of a recording begins, and how much later each next one does: no two of a recording share a time."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Planned:
    """What a folder holds. ``episodes``: how many of each recording; ``sides``; ``left_out``: why nothing is made of others."""

    seed: int
    spread: Spread
    episodes: Mapping[str, int]
    sides: Mapping[str, str]
    left_out: Mapping[str, str]


def build(
    folder: Path, given: Sequence[tuple[Recording, Path]], progress: Progress, *, seed: int = 0, wanted: int = WANTED
) -> Planned:
    """Make in ``folder`` what it lacks of ``wanted`` episodes, from the recordings ``given``, and write their truth down. A
    folder that has a plan keeps it, however many are wanted now.

    Raises InputError where nothing can be made of any, or where the folder was made from another seed.
    """
    for name in (STORES, TRUTH):
        made_folder(folder / name)
    left_out: dict[str, str] = {}
    for recording, path in given:
        progress(f"{recording.name}: read")
        if not _store(folder, recording.name).exists() and (why := _kept(folder, recording.name, path)):
            left_out[recording.name] = why
    usable = [recording for recording, _ in given if recording.name not in left_out]
    plan = _planned(folder, (usable, left_out), seed, wanted, progress)
    side_by_side([partial(_written, folder, plan, name, progress) for name in plan.episodes], cores())
    return plan


def _planned(
    folder: Path, given: tuple[Sequence[Recording], Mapping[str, str]], seed: int, wanted: int, progress: Progress
) -> Planned:
    usable, left_out = given
    path = folder / PLAN
    if path.exists():
        plan = planned(folder)
        if plan.seed != seed:
            raise InputError("--seed", f"the folder was made with {plan.seed}", "Say that, or name another folder")
        return plan
    if not usable:
        raise InputError("The recordings", "of none can episodes be made", "Name the folders that they are in")
    progress("how steps differ")
    spread = spread_of([pieces(capture_in(folder, one.name)) for one in usable])
    each = -(-wanted // len(usable))
    plan = {
        "format": FORMAT,
        "seed": seed,
        "spread": {"host": spread.host.tolist(), "device": spread.device.tolist()},
        "recordings": [{"name": one.name, "side": one.side, "episodes": each} for one in usable],
        "left_out": left_out,
    }
    keep_text(path, json.dumps(plan) + "\n")
    return planned(folder)


def planned(folder: Path) -> Planned:
    """The plan of ``folder``. Raises FormatError where it has none."""
    try:
        plan = json.loads((folder / PLAN).read_text())
        if plan["format"] != FORMAT:
            raise FormatError(PLAN, "it is of another format than this program's", "Build the folder again")
        spread = Spread(*(np.array(plan["spread"][side], dtype=np.float64) for side in Spread._fields))
        if not all(one["name"] and Path(one["name"]).name == one["name"] for one in plan["recordings"]):
            raise ValueError("a name leads elsewhere")
        each = {one["name"]: int(one["episodes"]) for one in plan["recordings"]}
        sides = {one["name"]: str(one["side"]) for one in plan["recordings"]}
        return Planned(int(plan["seed"]), spread, each, sides, plan["left_out"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise FormatError(PLAN, "it is not there, or damaged", "Build the folder again") from error


def capture_in(folder: Path, name: str) -> Capture:
    """A recording of ``folder``, ready to be replayed."""
    with Store.open(_store(folder, name), read_only=True) as store:
        return with_trees(store, store.resolve())


def episodes_of(
    folder: Path, name: str, numbers: Sequence[int], *, real: bool = False
) -> Iterator[tuple[int, Made, Episode]]:
    """The episodes of a recording with these ``numbers``, made again, with the number of each; of those that were made. Without
    ``real`` raises FormatError where one is not what it was.
    """
    plan, truth = planned(folder), truth_of(folder, name)
    known = prepared_all(capture_in(folder, name))
    for number in numbers:
        said = truth[number]
        if said["fault"] is None:
            continue
        one = _made(plan, name, known[number % len(known)], number, said["fault"], real=real)
        if one is None or (not real and digest(one.capture) != said["digest"]):
            raise FormatError(f"Episode {number} of {name}", "it is not what it was", "Build the folder again")
        yield number, one, episode(name, plan.sides[name], number, one)


def episode(name: str, side: str, number: int, one: Made) -> Episode:
    """``one`` as the evaluation has it. Its windows are those of its recording's episode with this ``number``."""
    labels, first = one.labels, np.int32(number * RUNS)
    labels = replace(labels, request_window=labels.request_window + first, step_window=labels.step_window + first)
    about = {"side": side, "engine": one.capture.engine, "model": name, "load": "replayed"}
    return Episode(name, blinded(one.capture), labels, about)


def truth_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """One entry an episode of a recording. For who judges answers alone. A line that was never finished is none. Raises
    FormatError for a damaged one.
    """
    file = folder / TRUTH / f"{name}.jsonl"
    try:
        return [json.loads(line) for line in whole_lines(file).splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(file.name, "it is damaged", "Build the folder again") from error


def prepared_all(capture: Capture) -> list[Prepared]:
    """The pieces of a recording of which replay makes a claim; of all where it makes none of any."""
    found = pieces(capture)
    sure = [piece for piece in found if not unclaimed(piece.graph)]
    return [prepared(capture, piece) for piece in sure or found]


def digest(capture: Capture) -> str:
    """What tells a capture from any other: of its trees and its tables of steps, requests and collectives."""
    told = sha256()
    for rank in capture.ranks:
        for column in rank.tree.columns() if rank.tree is not None else ():
            told.update(np.ascontiguousarray(column).tobytes())
    for table in (capture.steps.begin(), capture.steps.end(), capture.requests.end(), capture.collectives.wait):
        told.update(np.ascontiguousarray(table).tobytes())
    return told.hexdigest()[:16]


def _written(folder: Path, plan: Planned, name: str, progress: Progress) -> None:
    """Write down what is true of the episodes of a recording, from where that was ended before."""
    done, path = len(truth_of(folder, name)), folder / TRUTH / f"{name}.jsonl"
    if done >= plan.episodes[name]:
        return
    known = prepared_all(capture_in(folder, name))
    can = [possible(one) for one in known]
    keep_text(path, whole_lines(path))
    with path.open("a") as file:
        for number in range(done, plan.episodes[name]):
            at = number % len(known)
            fault = can[at][(number // len(known)) % len(can[at])]
            one = _made(plan, name, known[at], number, fault)
            file.write(json.dumps(_told(number, fault, one)) + "\n")
            file.flush()
            if number % 20 == 0:
                progress(f"{name}: {number} of {plan.episodes[name]}")


def _made(plan: Planned, name: str, one: Prepared, number: int, fault: str, *, real: bool = False) -> Made | None:
    seed = (plan.seed, int(sha256(name.encode()).hexdigest()[:8], 16), number)
    return made(one, plan.spread, fault, seed, SINCE + number * EACH_NS, real=real)


def _told(number: int, fault: str, one: Made | None) -> dict[str, Any]:
    if one is None:
        return {"episode": number, "fault": None}
    labels = one.labels
    return {
        "episode": number,
        "fault": fault,
        "cause": labels.cause,
        "factor": one.factor,
        "severity": labels.severity,
        "d_prime": None if np.isnan(labels.d_prime) else labels.d_prime,
        "names": list(one.target.names),
        "touched": [np.flatnonzero(row).tolist() for row in one.touched],
        "step": labels.step.tolist(),
        "request": list(labels.request),
        "ranks": {str(step): rank for step, rank in labels.ranks.items()},
        "digest": digest(one.capture),
    }


def _store(folder: Path, name: str) -> Path:
    return folder / STORES / f"{name}.store"


def _kept(folder: Path, name: str, path: Path) -> str:
    """Keep a recording, ready to be replayed. Returns why nothing can be made of it, empty where something can."""
    from teller_core.ingest.reading import How, content_id, hashed, plan

    try:
        group = hashed(plan([path], together=True)[0])
        recording, trees = STAGES.read(group, STAGES.nest, nobody, How(folder, jobs=1))
    except TellerError as error:
        return str(error)
    capture = ready(STAGES.rebuild(recording, trees, content_id(group), name))
    if not pieces(capture):
        return "no step of it has enough spans, or all have too many"
    hidden = folder / STORES / f".{name}.store"
    hidden.unlink(missing_ok=True)
    with Store.open(hidden) as store:
        store.save(capture, nothing_judged(), [], capture_report(capture, already_known=False, imported_at=NO_TIME))
    hidden.replace(_store(folder, name))
    return ""
