"""The benchmark's lives as episodes of the evaluation: the one place that knows both shapes."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from teller_core.data.scratch import scratch
from teller_core.data.table import Int8, Int32
from teller_core.errors import InputError
from teller_core.lab.benchmark import episodes as cut
from teller_core.lab.benchmark import labels as told
from teller_core.lab.benchmark.pack import Packed, lives, unpack, unpacked
from teller_core.lab.evaluation.episode import HEALTHY, NOT_JUDGED, TEST, TRAIN, Episode, Labels
from teller_core.lab.evaluation.running import Sides
from teller_core.lab.evaluation.seen import blinded
from teller_core.lab.side_by_side import side_by_side

ASKED = 3
"""A healthy window stands in the episodes of every strike of its block, six of them: its requests are asked about in two. Of a
whole life, which has them all again, they are asked about in one window of three.
"""


class Opened(NamedTuple):
    """Lives, and by name where the store of each lies unpacked: tiers are read from it one after the other."""

    lives: Sequence[Packed]
    stores: Mapping[str, Path]


@contextmanager
def opened(
    folder: Path, progress: Callable[[str], None], at_once: int = 1, *, wanted: Callable[[Packed], bool] | None = None
) -> Generator[Opened]:
    """The lives that are packed in ``folder``, ``at_once`` of them being unpacked at a time; only the ``wanted`` ones. Raises
    InputError where there are none.
    """
    found = lives(folder)
    if not found:
        raise InputError(f"--lives {folder.name}", "no life is packed in it", "Build some: teller lab build")
    packed = [life for life in found if wanted is None or wanted(life)]
    if not packed:
        raise InputError(f"--lives {folder.name}", "none of its lives is of those to judge", "Name another folder")
    with scratch() as place:
        stores = {life.name: place / life.name for life in packed}
        progress(f"{len(packed)} lives are unpacked")
        side_by_side([partial(unpack, life, stores[life.name]) for life in packed], at_once)
        yield Opened(packed, stores)


def of_test(life: Packed) -> bool:
    """Whether it is to be judged: where nobody learns, no other is needed."""
    return life.about["side"] == TEST


def sides(given: Opened, tier: int, progress: Callable[[str], None], at_once: int = 1) -> Sides:
    """The lives of ``given`` as recorded at ``tier``, ``at_once`` of them being read at a time.

    What all methods read off an episode is measured.
    """

    def read(at: int, life: Packed) -> list[tuple[str, Episode]]:
        progress(f"life {at} of {len(given.lives)} at T{tier}")
        episodes = list(_episodes(life, given.stores[life.name], tier))
        for _, episode in episodes:
            episode.seen.measure()
        return episodes

    by_kind: dict[str, list[Episode]] = {name: [] for name in (TRAIN, TEST, "struck", "healthy", "life")}
    for several in side_by_side([partial(read, at, life) for at, life in enumerate(given.lives, 1)], at_once):
        for kind, episode in several:
            by_kind[kind].append(episode)
    return Sides(*by_kind.values())


def _episodes(life: Packed, store: Path, tier: int) -> Iterator[tuple[str, Episode]]:
    """(side or composition, episode)."""
    side, capture = str(life.about["side"]), unpacked(store, tier)
    for each in cut.episodes(life, capture, tier):
        yield side, episode_of(life, each, asked=ASKED if side == TEST else 1)
    if side == TEST:
        for what in ("struck", "healthy", "life"):
            for each in cut.composed(life, capture, tier, what):
                whole = what == "life"
                yield what, episode_of(life, each, asked=ASKED if whole else 1, of_steps=whole)


def episode_of(life: Packed, given: cut.Episode, asked: int = 1, *, of_steps: bool = True) -> Episode:
    """``given`` as the evaluation has it. Windows are numbered over the whole life. One in ``asked`` of its windows is asked
    about; but of an episode of one strike all that were struck. ``of_steps``: its steps are asked about, too.
    """
    begins = sorted(window.begin for block in life.blocks for window in block.windows)
    number = np.array([begins.index(one.window.begin) for one in given.windows] + [-1], dtype=np.int32)
    labels, truth = given.labels, given.truth
    some = [at for at, one in enumerate(given.windows) if one.strike is None or given.strike < 0]
    left = [at for turn, at in enumerate(some) if (turn + given.strike) % asked]
    calm = [one.window for at, one in enumerate(given.windows) if one.strike is None and at not in left]
    request = _requests(labels, left)
    made = Labels(
        request=request,
        hard=labels.request == told.HARD_NEGATIVE,
        request_window=_numbered(labels.request_window, number),
        step=_steps(labels),
        step_window=_numbered(labels.step_window, number),
        operators={at: names for at, names in enumerate(labels.operators) if names},
        ranks={at: ranks[0] for at, ranks in enumerate(labels.ranks) if ranks},
        fault="" if truth is None else truth.fault,
        cause="" if truth is None else truth.cause or "",
        severity="" if truth is None else truth.severity,
        d_prime=given.d_prime,
        healthy_ns=sum(window.end - window.begin for window in calm),
    )
    wanted = np.array([label != NOT_JUDGED for label in request], dtype=np.bool_)
    blamed = np.isin(np.arange(len(made.step)), [*made.operators, *made.ranks])
    asked_steps = ((made.step >= 0) | blamed) & of_steps
    return Episode(life.name, blinded(given.capture, wanted, asked_steps), made, about_of(life))


def about_of(life: Packed) -> dict[str, str]:
    """What the life was, as text: its side, and of what is known its engine, its model, its load."""
    kind: Mapping[str, Any] = life.about.get("kind", {})
    flat = {**kind, **life.about}
    return {name: str(flat[name]) for name in ("side", "engine", "model", "load", "ranks", "cache") if name in flat}


def _requests(labels: told.Labels, left: Sequence[int]) -> list[str]:
    """Those of the windows ``left`` are not asked about."""
    judged = np.where(np.isin(labels.request_window, left), told.NOT_JUDGED, labels.request).tolist()
    return [
        cause if label == told.STRUCK else NOT_JUDGED if label == told.NOT_JUDGED else HEALTHY
        for label, cause in zip(judged, labels.cause, strict=True)
    ]


def _steps(labels: told.Labels) -> Int8:
    """1 abnormal, 0 healthy, -1 not judged."""
    step = labels.step
    return np.where(step == told.STRUCK, 1, np.where(step == told.NOT_JUDGED, -1, 0)).astype(np.int8)


def _numbered(window: Int32, number: Sequence[int] | Int32) -> Int32:
    return np.asarray(number, dtype=np.int32)[window]
