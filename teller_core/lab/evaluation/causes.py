"""Whether the cause of a request is named: top-k, macro F1, the confusion of causes, look-alikes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.data.causes import causes
from teller_core.data.table import Float64, Int32, Int64, Mask

NO_CAUSE = 0
"""The number of ``nothing is wrong`` among the classes, for truth and for claims alike."""
NOBODY = -1
"""No further claim."""
TOP = 3
ACROSS = "comm."
"""What strikes between ranks begins with: the horizontal view. All else strikes inside one: the vertical view."""
Ints = np.ndarray[tuple[int, int], np.dtype[np.int32]]


class Named(NamedTuple):
    """One row a judged request. ``classes``: what numbers stand for, NO_CAUSE first. ``truth`` int32; ``said`` int32 [n, TOP]:
    the claimed causes, the surest first, NOBODY behind the last; a request without a claim has NO_CAUSE first.
    """

    classes: Sequence[str]
    truth: Int32
    said: Ints


class LookAlike(NamedTuple):
    """One cause: the weight of its requests, the shares of them that are called by its name (recall), by a look-alike of it, by
    any other cause, and by none; the share of its claims that are right (precision, NaN without any); and ``taken_for``: what
    its requests were called instead, the most frequent first.
    """

    cause: str
    weight: float
    recall: float
    look_alike: float
    other: float
    none: float
    precision: float
    taken_for: Sequence[tuple[str, float]]


def named(truth: Sequence[str], claims: Sequence[Sequence[str]]) -> Named:
    """Numbers for causes. ``truth``: a cause, empty for none; ``claims``: ranked causes a request."""
    classes = ["", *sorted({*truth, *(cause for mine in claims for cause in mine)} - {""})]
    number = {cause: at for at, cause in enumerate(classes)}
    said = np.full((len(truth), TOP), NOBODY, dtype=np.int32)
    said[:, 0] = NO_CAUSE
    for row, mine in enumerate(claims):
        for at, cause in enumerate(dict.fromkeys(mine)):
            if at < TOP:
                said[row, at] = number[cause]
    return Named(classes, np.array([number[cause] for cause in truth], dtype=np.int32), said)


def is_across(cause: str) -> bool:
    """Whether it strikes between ranks."""
    return cause.startswith(ACROSS)


def struck(given: Named) -> Mask:
    """bool a request: a fault struck it."""
    return given.truth != NO_CAUSE


def within(given: Named, k: int) -> Mask:
    """bool a request: what is true is among the first ``k`` that are said of it."""
    return np.any(given.said[:, :k] == given.truth[:, None], axis=1)


def confusion(given: Named, weight: Float64) -> Float64:
    """float64 [truth, first claim]: the weight of the requests."""
    count = len(given.classes)
    flat = np.bincount(cells(given), weights=weight, minlength=count * count).astype(np.float64)
    return flat.reshape(count, count)


def cells(given: Named) -> Int64:
    """int64 a request: where it stands in the confusion, row by row."""
    return given.truth.astype(np.int64) * len(given.classes) + given.said[:, 0]


def macro_f1_of(table: Float64) -> Float64:
    """float64 [...]: the plain mean of F1 over the causes that struck, of confusions float64 [..., truth, first claim]. A claim
    about a healthy request counts against its cause.
    """
    hit = np.diagonal(table, axis1=-2, axis2=-1)[..., 1:]
    truth, said = table.sum(axis=-1)[..., 1:], table.sum(axis=-2)[..., 1:]
    return mean_share(2 * hit, truth + said, truth > 0)


def balanced(given: Named, weight: Float64) -> float:
    """The plain mean over causes and ``none`` of the share that is told rightly: what all methods are tuned by."""
    return float(balanced_of(confusion(given, weight)))


def balanced_of(table: Float64) -> Float64:
    """float64 [...]: :func:`balanced` of confusions float64 [..., truth, first claim]."""
    truth = table.sum(axis=-1)
    return mean_share(np.diagonal(table, axis1=-2, axis2=-1), truth, truth > 0)


def mean_share(above: Float64, below: Float64, there: npt.NDArray[np.bool_]) -> Float64:
    """float64 [...]: the plain mean, over the last axis, of ``above / below`` of those that are ``there``; NaN without any."""
    each = np.divide(above, below, out=np.zeros(above.shape), where=there)
    count: Float64 = np.asarray(there.sum(axis=-1), dtype=np.float64)
    return np.divide(each.sum(axis=-1), count, out=np.full(count.shape, np.nan), where=count > 0)


def look_alikes(given: Named, weight: Float64) -> Sequence[LookAlike]:
    """One line a cause that struck, in the order of the taxonomy's names."""
    table = confusion(given, weight)
    known = causes()
    lines: list[LookAlike] = []
    for at, cause in enumerate(given.classes):
        row, total = table[at], float(table[at].sum())
        if at == NO_CAUSE or not total > 0:
            continue
        alike = frozenset(known[cause].look_alikes) if cause in known else frozenset[str]()
        beside = [(given.classes[other], float(row[other]) / total) for other in range(1, len(row)) if other != at]
        claims = float(table[:, at].sum())
        lines.append(
            LookAlike(
                cause=cause,
                weight=total,
                recall=float(row[at]) / total,
                look_alike=sum(share for other, share in beside if other in alike),
                other=sum(share for other, share in beside if other not in alike),
                none=float(row[NO_CAUSE]) / total,
                precision=float(row[at]) / claims if claims > 0 else float("nan"),
                taken_for=sorted([pair for pair in beside if pair[1] > 0], key=lambda pair: (-pair[1], pair[0]))[:TOP],
            )
        )
    return lines
