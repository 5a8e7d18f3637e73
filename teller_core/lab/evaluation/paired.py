"""Two methods on the same draws of lives: how far apart their headline figures are, and whether chance alone can do that.

What makes a life hard is hard for both, so their difference varies less than either figure. Kept of a method is what each draw
of lives came to, as text: the lives themselves need not be judged again.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64
from teller_core.errors import FormatError
from teller_core.lab.evaluation.figure import Figure
from teller_core.lab.evaluation.rows import Rows

PAIRED = ("request.top_1", "step.pr_auc_at_1", "operator.ac_at_1")
"""Of which more is better."""
UNIT = 1e-4
"""As tables round."""
NOTHING = "-"
"""A draw in which a figure cannot be said."""
WIDE = 20


class Drawn(NamedTuple):
    """A figure: its value, and float64 [draws]: that in each draw of lives, NaN where it cannot be said."""

    value: float
    draws: Float64


class Kept(NamedTuple):
    """``truth``: the hash of what was judged: the same lives, in the same order, are drawn only where it is the same."""

    truth: str
    figures: Mapping[str, Drawn]


class Difference(NamedTuple):
    """``value``: that of one method less that of another, with its 95 % interval."""

    key: str
    mine: float
    theirs: float
    value: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval excludes 0."""
        return not self.low <= 0.0 <= self.high


def written(figures: Sequence[Figure], rows: Rows) -> str:
    """The PAIRED ones of ``figures``, which are of ``rows``, as far as they have an interval: a line each."""
    lines = [f"Headline figures, then what each draw of lives came to, in ten-thousandths. Truth: {truth_of(rows)}"]
    kept = [figure for figure in figures if figure.key in PAIRED and figure.drawn]
    lines += [" ".join([figure.key, *map(_number, (figure.value, *figure.drawn))]) for figure in kept]
    return "\n".join(lines) + "\n"


def read(text: str, name: str) -> Kept:
    """What :func:`written` wrote into the file ``name``. Raises FormatError for anything else."""
    head, *lines = text.splitlines() or [""]
    figures: dict[str, Drawn] = {}
    try:
        for line in lines:
            key, value, *draws = line.split()
            figures[key] = Drawn(int(value) * UNIT, np.array([_value(each) for each in draws]))
    except ValueError:
        raise FormatError(name, "a line of it holds no draws", "Judge anew: teller lab eval") from None
    return Kept(head.rpartition(" ")[2], figures)


def truth_of(rows: Rows) -> str:
    """16 hex digits: of what is true of each life's requests, steps and operators, in the order of lives."""
    said = sha256()
    requests, steps, operators = rows.requests, rows.steps, rows.operators
    for life in range(rows.lives):
        mine = np.flatnonzero(requests.life == life).tolist()
        said.update("\n".join(sorted(requests.truth[at] for at in mine)).encode())
        label = steps.label[steps.life == life]
        blamed = [" ".join(operators.right[at]) for at in np.flatnonzero(operators.life == life).tolist()]
        said.update(f"{int(label.sum())} of {len(label)}: {sorted(blamed)}".encode())
    return said.hexdigest()[:16]


def differences(mine: Kept, theirs: Kept) -> list[Difference]:
    """Of each figure that both have: percentiles of the differences draw by draw; none where they were not judged alike."""
    if mine.truth != theirs.truth:
        return []
    found: list[Difference] = []
    for key in PAIRED:
        if key in mine.figures and key in theirs.figures:
            one, other = mine.figures[key], theirs.figures[key]
            apart = one.draws - other.draws
            low, high = np.percentile(apart[~np.isnan(apart)], (2.5, 97.5))
            found.append(Difference(key, one.value, other.value, one.value - other.value, float(low), float(high)))
    return found


def lines_of(mine: str, theirs: str, tier: int, found: Sequence[Difference]) -> list[str]:
    """A table of the differences of two methods."""
    lines = [
        f"{mine} less {theirs} at T{tier}, lives drawn again for both alike: 95 %; * where that excludes 0",
        f"{'':<{WIDE}}{mine:>12}{theirs:>12}{'difference':>12}{'95 % interval':>22}",
    ]
    for one in found:
        values = "".join(f"{value:>12.4f}" for value in (one.mine, one.theirs, one.value))
        interval = f"{one.low:.4f} to {one.high:.4f}"
        lines.append(f"{one.key:<{WIDE}}{values}{interval:>22}{' *' if one.sure else ''}")
    return lines if found else [*lines, "-: other lives were judged, or too few windows stand behind one of the two"]


def _number(value: float) -> str:
    return NOTHING if np.isnan(value) else str(round(value / UNIT))


def _value(text: str) -> float:
    return float("nan") if text == NOTHING else int(text) * UNIT
