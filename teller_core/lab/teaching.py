"""Sheets of packed lives with what is true of them: what the root-cause model is trained on.

Of each episode and tier some steps and requests are drawn: of those that were struck as many as find room, and OTHERS times as
many others. What is drawn is decided by names of lives alone, so that it is the same every time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from teller_core.data.capture import Capture, processes
from teller_core.data.sheets import Kind, Sheets, View, joined
from teller_core.data.sheets_file import Taught, read_taught, write_taught
from teller_core.data.table import Int8, Int32, Int64, Mask, Text
from teller_core.data.whole import made_folder
from teller_core.errors import FormatError, InputError
from teller_core.lab.benchmark import episodes as cut
from teller_core.lab.benchmark.pack import Packed, captures_of, lives
from teller_core.lab.evaluation.episode import HEALTHY, NOT_JUDGED, TRAIN, Episode
from teller_core.lab.evaluation.loading import about_of, episode_of
from teller_core.sheets import LONGEST, coded_by, request_sheets, step_sheets
from teller_core.tell.visible import visible

if TYPE_CHECKING:
    from teller_core.context.tpe.codings import Coding

TIERS = (1, 2, 3, 4)
"""At T0 nothing tells one request from another."""
ROOM = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}
"""By tier, its part of a life's sheets: where little was recorded, little tells one cause from another."""
MOST = 9_000
"""Sheets of a life, over all its tiers, if all of them find enough that was struck: mostly half of it come together."""
OTHERS = 3
"""Of what was not struck, as many times as of what was: fewer would teach that trouble is common."""
WITH_RANKS = ("pieces", "suspects", "facts", "together")
"""Parts of a sheet that name ranks by number."""
STEPS = 0.4
"""Of the room, this part is for steps."""


class Place(NamedTuple):
    """Where an episode stands in its life. ``request_window``, ``step_window`` int32: the window of each, -1 for none, a position
    in ``struck`` bool.
    """

    block: int
    strike: int
    request_window: Int32
    step_window: Int32
    struck: Mask


class Drawn(NamedTuple):
    """Sheets of one episode with their truth: the columns of :class:`Taught`, by name."""

    sheets: Sheets
    truth: dict[str, Any]


def write_sheets(
    folder: Path,
    to: Path,
    progress: Callable[[str], None],
    *,
    tiers: Sequence[int] = TIERS,
    most: int = MOST,
    coding: "Coding | None" = None,
) -> list[Path]:
    """Write one file of sheets for each life of the training side that is packed in ``folder`` into the folder ``to``; those that
    are there already stay. ``coding``: another one of their steps than that which comes with the project. Returns all of them.
    Raises InputError where no life is there.
    """
    found = [life for life in lives(folder) if life.about["side"] == TRAIN]
    if not found:
        raise InputError(
            f"--lives {folder.name}", "no life of the training side is packed in it", "Build some: teller lab build"
        )
    made_folder(to)
    paths: list[Path] = []
    for at, life in enumerate(found, 1):
        path = to / f"{life.name}.npz"
        if not there(path, coding):
            progress(f"life {at} of {len(found)}")
            write_taught(taught_of(life, tiers=tiers, most=most, coding=coding), path)
        paths.append(path)
    return paths


def there(path: Path, coding: "Coding | None" = None) -> bool:
    """Whether sheets of this program's layout stand in ``path``, and of this ``coding``, where it is not the usual one."""
    if not path.exists():
        return False
    try:
        found = read_taught(path).sheets.vocabulary
    except FormatError:
        return False
    return coding is None or found in ("", coding.hash)


def taught_of(
    life: Packed, *, tiers: Sequence[int] = TIERS, most: int = MOST, coding: "Coding | None" = None
) -> Taught:
    """The sheets of one life at all ``tiers``, about ``most`` together. Raises InputError for a life without an episode."""
    captures = zip(tiers, captures_of(life, tiers), strict=True)
    whole = sum(ROOM[tier] for tier in tiers)
    rooms = {tier: round(most * ROOM[tier] / whole) for tier in tiers}
    drawn = [one for tier, capture in captures for one in _of_tier(life, capture, tier, rooms[tier], coding)]
    if not drawn:
        raise InputError(f"The life {life.name}", "nothing was done in it", "Build it again")
    return together(life.name, about_of(life), drawn)


def together(life: str, about: Mapping[str, str], drawn: Sequence[Drawn]) -> Taught:
    """The sheets of the life called ``life``, which is ``about`` that: all that were ``drawn`` from it, at least one."""
    columns: dict[str, Any] = {}
    for name, first in drawn[0].truth.items():
        parts = [one.truth[name] for one in drawn]
        columns[name] = [cell for part in parts for cell in part] if isinstance(first, list) else np.concatenate(parts)
    return Taught(life=life, about=dict(about), sheets=joined([one.sheets for one in drawn]), **columns)


def _of_tier(life: Packed, capture: Capture, tier: int, most: int, coding: "Coding | None") -> Iterator[Drawn]:
    given = cut.episodes(life, capture, tier)
    for each in given:
        chance = np.random.default_rng(crc32(f"{life.name} {tier} {each.block} {each.strike}".encode()))
        yield draw(place_of(each), episode_of(life, each), most // max(len(given), 1), chance, coding)


def place_of(given: cut.Episode) -> Place:
    """Where ``given`` stands in its life."""
    struck = np.array([window.strike is not None for window in given.windows], np.bool_)
    return Place(given.block, given.strike, given.labels.request_window, given.labels.step_window, struck)


def draw(
    place: Place, episode: Episode, most: int, chance: np.random.Generator, coding: "Coding | None" = None
) -> Drawn:
    """Some of the steps and requests of one episode, about ``most`` sheets."""
    case, labels = episode.seen.case, episode.labels
    case = case if coding is None else coded_by(case, coding)
    judged = np.array([_abnormal(cause) for cause in labels.request], np.int8)
    looked = case.profiled.astype(np.float64)
    of_requests = np.zeros(len(judged))
    np.maximum.at(of_requests, case.capture.participation.request, looked[case.capture.participation.step])
    requests = some(judged, np.where(labels.hard, 2, of_requests > 0), round(most * (1 - STEPS)), chance)
    views = 1 + (len(np.unique(processes(case.capture.ranks)[case.capture.work.rank])) > 1)
    steps = some(labels.step, case.profiled.astype(np.int8), round(most * STEPS / views), chance)
    sheets = joined([request_sheets(case, requests), step_sheets(case, steps)])
    return renumbered(Drawn(sheets, truth_of(sheets, place, episode)), chance)


def renumbered(drawn: Drawn, chance: np.random.Generator) -> Drawn:
    """``drawn`` with the ranks that stand together in a sheet called by one another's numbers. Faults of one rank always strike
    the second one here: that must not be learned.
    """
    sheets, blamed = drawn.sheets, drawn.truth["rank"].copy()
    rank = {part: getattr(sheets, part).rank.copy() for part in WITH_RANKS}
    for at in range(len(sheets)):
        known = np.unique(sheets.together.rank[sheets.of("together", at)])
        anew = dict(zip(known.tolist(), chance.permutation(known).tolist(), strict=True))
        for part, column in rank.items():
            mine = sheets.of(part, at)
            column[mine] = [anew.get(each, each) for each in column[mine].tolist()]
        blamed[at] = anew.get(int(blamed[at]), int(blamed[at]))
    parts: dict[str, Any] = {part: replace(getattr(sheets, part), rank=column) for part, column in rank.items()}
    return Drawn(replace(sheets, **parts), {**drawn.truth, "rank": blamed})


def some(label: Int8, first: npt.NDArray[np.integer], most: int, chance: np.random.Generator) -> Int64:
    """int64, ascending: positions of what is judged, ``most`` in all, those with the most in ``first`` before others: of what a
    profile shows, and of what is slow without a fault, there is little.
    """
    struck, others = (np.flatnonzero(label == value) for value in (1, 0))
    room = max(min(len(struck), most // (1 + OTHERS)), 0)
    picked = [
        _pick(struck, first, room, chance),
        _pick(others, first, min(most - room, max(OTHERS * room, -(-most // 4))), chance),
    ]
    return np.sort(np.concatenate(picked))


def _pick(rows: Int64, first: npt.NDArray[np.integer], room: int, chance: np.random.Generator) -> Int64:
    rows = chance.permutation(rows)
    return rows[np.argsort(-first[rows].astype(np.int64), kind="stable")][:room]


def truth_of(sheets: Sheets, place: Place, episode: Episode) -> dict[str, Any]:
    """The columns of :class:`Taught` for sheets of one episode."""
    labels, count = episode.labels, len(sheets)
    abnormal, cause = _judged(sheets, episode)
    window = _windows(sheets, place.request_window, place.step_window)
    hit = (window >= 0) & place.struck[window]
    operators = [
        "\n".join(visible(name)[:LONGEST] for name in labels.operators.get(step, ())) if struck == 1 else ""
        for step, struck in zip(sheets.step.tolist(), abnormal.tolist(), strict=True)
    ]
    usual = next(iter(labels.ranks.values()), -1)
    rank = np.array([labels.ranks.get(step, usual) for step in sheets.step.tolist()], np.int32)
    rank = np.where(abnormal == 1, rank, -1).astype(np.int32)
    guilty, suspect = _guilty(sheets, operators, rank)
    return {
        "abnormal": abnormal,
        "cause": cause,
        "hard": (hit & (labels.cause == "") & (abnormal == 0)).astype(np.uint8),
        "block": np.full(count, place.block, np.int32),
        "strike": np.where(hit, place.strike, -1).astype(np.int32),
        "window": _windows(sheets, labels.request_window, labels.step_window),
        "fault": [labels.fault] * count,
        "severity": [labels.severity] * count,
        "d_prime": np.full(count, labels.d_prime, np.float32),
        "rank": rank,
        "operators": operators,
        "guilty": guilty,
        "guilty_suspect": suspect,
    }


def _windows(sheets: Sheets, of_requests: Int32, of_steps: Int32) -> Int32:
    """int32 a sheet: the window of its request or step."""
    window = np.empty(len(sheets), np.int32)
    for kind, of in ((Kind.REQUEST, of_requests), (Kind.STEP, of_steps)):
        mine = sheets.kind == kind
        window[mine] = of[sheets.position[mine]]
    return window


def _abnormal(cause: str) -> int:
    """1 for a request that a fault struck, 0 for a healthy one, -1 for one that is not judged."""
    return -1 if cause == NOT_JUDGED else int(cause != HEALTHY)


def _judged(sheets: Sheets, episode: Episode) -> tuple[Int8, Text]:
    """Whether each is abnormal, and by what."""
    labels = episode.labels
    abnormal: list[int] = []
    cause: list[str] = []
    for kind, at in zip(sheets.kind.tolist(), map(int, sheets.position), strict=True):
        if kind == Kind.REQUEST:
            said: str = labels.request[at]
            abnormal.append(_abnormal(said))
            cause.append(said)
        else:
            abnormal.append(int(labels.step[at]))
            cause.append({1: labels.cause, 0: HEALTHY}.get(abnormal[-1], NOT_JUDGED))
    return np.array(abnormal, np.int8), cause


def _guilty(sheets: Sheets, operators: Text, rank: Int32) -> tuple[Any, Any]:
    """uint8 a piece and a suspect: it is one of the operators; across ranks, a call of the rank to blame."""
    piece, suspect = np.zeros(len(sheets.pieces.symbol), np.uint8), np.zeros(len(sheets.suspects.row), np.uint8)
    for at, names in enumerate(operators):
        wanted = set(names.split("\n")) if names else set[str]()
        mine = sheets.of("pieces", at)
        if sheets.view[at] == View.HORIZONTAL:
            piece[mine] = (sheets.pieces.rank[mine] == rank[at]) & (rank[at] >= 0)
        elif wanted:
            piece[mine] = [name in wanted for name in sheets.pieces.name[mine]]
        mine = sheets.of("suspects", at)
        suspect[mine] = [name in wanted for name in sheets.suspects.name[mine]]
    return piece, suspect
