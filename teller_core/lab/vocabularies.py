"""Sheets of the training side in several codings of their steps: what a vocabulary's size, its guard and its rule are worth.

Tokens are there at T4 alone, so sheets of that tier are written, a quarter as many as training has. All vocabularies are learned
from the same steps of the training side.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from teller_core.context.tpe import reference
from teller_core.context.tpe.codings import Coding, guarded, published, unguarded
from teller_core.context.tpe.train import LIGHT, samples, train
from teller_core.data.capture import GRAPH_CAPTURE, Capture
from teller_core.data.tree import Tree
from teller_core.errors import InputError
from teller_core.judge.prepare import MANY_ROWS
from teller_core.lab.benchmark.pack import Packed, capture_of, lives
from teller_core.lab.evaluation.episode import TRAIN
from teller_core.lab.teaching import write_sheets

SIZES = (256, 1024, 4096)
REFERENCE = 1024
"""The size at which the published rule is set against ours."""
TIER = 4
MOST = 1_500
"""Sheets of a life."""
STEPS = 120
"""Of a life that is learned from: as many as tell its words apart."""


class Written(NamedTuple):
    """A coding's name, and the folder of its sheets."""

    name: str
    folder: Path


def write_codings(
    folder: Path,
    to: Path,
    progress: Callable[[str], None],
    *,
    sizes: Sequence[int] = SIZES,
) -> Iterator[Written]:
    """Write sheets of the lives that are packed in ``folder`` into one folder of ``to`` for each coding, as it is asked for; what
    is there stays. Raises InputError where no life of the training side is packed there, or none has a profile.
    """
    found = [life for life in lives(folder) if life.about["side"] == TRAIN]
    trees = _steps(found, progress)
    if not trees:
        raise InputError(
            f"The lives in {folder.name}", "none of them has a profiled step", "Build some: teller lab build"
        )
    for name, coding in codings(trees, sizes, progress):
        place = to / name.replace(" ", "-")
        write_sheets(
            folder,
            place,
            lambda text, name=name: progress(f"sheets, {name}: {text}"),
            tiers=(TIER,),
            most=MOST,
            coding=coding,
        )
        yield Written(name, place)


def codings(
    trees: Sequence[Tree], sizes: Sequence[int], progress: Callable[[str], None]
) -> Iterator[tuple[str, Coding]]:
    """By name: ours in all sizes, with and without its guard, and the published rule in one."""
    given = samples(trees, LIGHT)
    for size in sizes:
        progress(f"a vocabulary of {size} symbols is learned from {len(trees)} steps")
        vocabulary = train(given, size, LIGHT)
        yield f"{size} symbols", guarded(vocabulary)
        yield f"{size} symbols without guard", unguarded(vocabulary)
    size = REFERENCE if REFERENCE in sizes else max(sizes)
    progress(f"the published rule learns {size} symbols")
    yield f"{size} symbols by the published rule", published(reference.train(samples(trees), size))


def _steps(found: Iterable[Packed], progress: Callable[[str], None]) -> list[Tree]:
    trees: list[Tree] = []
    for life in found:
        progress(f"the steps of {life.name}")
        trees += some_steps(capture_of(life, TIER))
    return trees


def some_steps(capture: Capture, most: int = STEPS) -> list[Tree]:
    """At most so many profiled steps, each on one rank, evenly over the capture."""
    work = capture.work
    traced = np.array([rank.tree is not None and rank.role != GRAPH_CAPTURE for rank in capture.ranks], np.bool_)
    if not len(traced):
        return []
    rows = np.flatnonzero((work.row >= 0) & (work.row_stop - work.row >= MANY_ROWS) & traced[work.rank])
    picked = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64))]
    parts = [(capture.ranks[int(work.rank[at])].tree, int(work.row[at]), int(work.row_stop[at])) for at in picked]
    return [tree.part(low, high) for tree, low, high in parts if tree is not None]
