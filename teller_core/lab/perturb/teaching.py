"""Sheets of replayed recordings of the training side: operators of devices, and ranks, of which few lives can tell."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from teller_core.data.sheets_file import write_taught
from teller_core.data.whole import made_folder
from teller_core.errors import InputError
from teller_core.lab.evaluation.episode import TRAIN
from teller_core.lab.perturb.episodes import Made
from teller_core.lab.perturb.faults import NO_HEADLINE
from teller_core.lab.perturb.folder import episodes_of, planned, truth_of
from teller_core.lab.teaching import Drawn, Place, draw, there, together

MOST = 900
"""Sheets of a recording: all of them together are a fifth of those of lives, which are what happened."""


def write_replayed(folder: Path, to: Path, progress: Callable[[str], None], *, most: int = MOST) -> list[Path]:
    """Write one file of sheets for each recording of the training side that ``folder`` replays into the folder ``to``; those that
    are there already stay. Returns all of them. Raises InputError where there is none, FormatError for a damaged folder.

    Faults that struck steps give away by spans that are not the fault's (NO_HEADLINE) are not learned from.
    """
    plan = planned(folder)
    names = [name for name, side in plan.sides.items() if side == TRAIN]
    if not names:
        raise InputError(f"--replayed {folder.name}", "no recording of the training side is in it", "Make it again")
    made_folder(to)
    paths: list[Path] = []
    for at, name in enumerate(names, 1):
        path = to / f"{name}.npz"
        if not there(path):
            progress(f"recording {at} of {len(names)}")
            if drawn := list(_drawn(folder, name, most)):
                write_taught(together(name, {"side": TRAIN, "load": "replayed"}, drawn), path)
        if path.exists():
            paths.append(path)
    return paths


def _drawn(folder: Path, name: str, most: int) -> Iterator[Drawn]:
    told = truth_of(folder, name)
    good = [at for at, one in enumerate(told) if one["fault"] is not None and one["fault"] not in NO_HEADLINE]
    for number, made, one in episodes_of(folder, name, good):
        place = _place(number, made)
        yield draw(place, one, max(most // len(good), 1), np.random.default_rng((number, len(good))))


def _place(number: int, made: Made) -> Place:
    """Each run is a window; those of an episode are counted from 0, as ``made`` has them."""
    return Place(number, 0, made.labels.request_window, made.labels.step_window, made.runs)
