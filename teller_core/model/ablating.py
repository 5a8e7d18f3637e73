"""What each part of the input is worth: the same training on a reduced budget, without one part at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from statistics import fmean, stdev

from teller_core.model.options import PAPER, PARTS, Parts, Plan
from teller_core.model.training import Progress, Work, train

REDUCED = Plan(updates=450, minutes=9.0, look=50)
"""The budget of each: at most ten minutes on two processors."""
WHOLE = "nothing"


@dataclass(frozen=True)
class Row:
    """The scores of a training without ``part`` (WHOLE: with everything), or of what is called so, by seed."""

    part: str
    scores: Sequence[Mapping[str, float]]


def ablate(work: Work, to: Path, parts: Sequence[str], seeds: int, progress: Progress) -> list[Row]:
    """Train with everything, then without each of ``parts``, or as the one of PAPER that stands there, with ``seeds`` seeds each,
    every one in a folder of its own below ``to``: what was ended goes on there, what was done stays.
    """
    return compare(((part, _without(work, part)) for part in (WHOLE, *parts)), to, seeds, progress)


def compare(works: Iterable[tuple[str, Work]], to: Path, seeds: int, progress: Progress) -> list[Row]:
    """Train each of the ``works``, which are called, with ``seeds`` seeds each, as :func:`ablate` does."""
    rows: list[Row] = []
    for part, work in works:
        scores: list[Mapping[str, float]] = []
        for seed in range(seeds):
            each = replace(work, plan=replace(work.plan, seed=seed))

            def told(text: str, part: str = part, seed: int = seed) -> None:
                progress(f"{_called(part)}, seed {seed}: {text}")

            scores.append(train(each, to / f"{_called(part).replace(' ', '-')}-{seed}", told).scores)
        rows.append(Row(part, scores))
    return rows


def _without(work: Work, part: str) -> Work:
    if part in PAPER:
        return replace(work, shape=replace(work.shape, kind=part), backbone=None)
    return work if part == WHOLE else replace(work, parts=Parts(**{part: False}))


def _called(part: str) -> str:
    if part in PAPER:
        return f"paper {part.replace('_', ' ')}"
    return f"without {part}" if part in (WHOLE, *PARTS) else part


def lines_of(rows: Sequence[Row]) -> list[str]:
    """A table: of each score its mean over the seeds, and how far they lie apart."""
    names = list(dict.fromkeys(name for row in rows for each in row.scores for name in each))
    lines = ["| " + " | ".join(["on lives kept from training", *(_called(row.part) for row in rows)]) + " |"]
    lines.append("|---" * (len(rows) + 1) + "|")
    for name in names:
        cells = [_cell([each[name] for each in row.scores if name in each]) for row in rows]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return lines


def _cell(values: Sequence[float]) -> str:
    known = [value for value in values if not isnan(value)]
    if not known:
        return "-"
    return f"{fmean(known):.3f}" + (f" ± {stdev(known):.3f}" if len(known) > 1 else "")
