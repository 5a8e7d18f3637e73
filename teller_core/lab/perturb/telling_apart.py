"""Whether what was replayed can be told from what was recorded, and what was struck from what was not, by anything but the fault.

Boosted trees learn from steps of some episodes and are asked about steps of others, twice: recordings held out, and episodes.
A step is shown as numbers against those of the other runs at its place: what a method could see of it, without the spans that
the fault names or moves and without waits, which are its consequence.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import Float64, Int64, Mask
from teller_core.data.trace import Layer
from teller_core.judge.localize.waits import BLOCKING
from teller_core.lab.evaluation.learners import boosted_trees
from teller_core.lab.evaluation.seen import blinded
from teller_core.lab.perturb.faults import FAULTS, MOVES_DEVICE, MOVES_HOST, MOVES_TALK

COPIES = re.compile(r"(?:cuda|cu|hip)Memcpy")
"""Calls that may return when their copy is done, whatever they are called."""
FOLDS = 5
TELLS = 0.55
"""The area under the curve from which something is said to tell."""
LEAVES, RATE = 8, 0.05
LEAST_NS = 10_000.0
"""A name with less time in a step tells nothing."""
LAYERS: Sequence[tuple[int, str]] = (
    (Layer.ENGINE, MOVES_HOST),
    (Layer.OPERATOR, MOVES_HOST),
    (Layer.RUNTIME, MOVES_HOST),
    (Layer.KERNEL, MOVES_DEVICE),
    (Layer.COMMUNICATION, MOVES_TALK),
)
"""And the side on which their spans are."""


class Asked(NamedTuple):
    """A row a step: ``value`` float64 [steps, features], ``label`` bool, ``recording`` and ``episode`` int64."""

    value: Float64
    label: Mask
    recording: Int64
    episode: Int64


class Verdict(NamedTuple):
    """``rows``: steps, ``labelled`` of them with the label; ``by_recording``, ``by_episode``: the area under the curve with
    recordings and with episodes held out, NaN where no fold has both labels in what is held out and in what is learned from.
    """

    question: str
    rows: int
    labelled: int
    by_recording: float
    by_episode: float

    @property
    def told(self) -> bool:
        """Whether either of them tells."""
        return self.by_recording > TELLS or self.by_episode > TELLS


def seen(capture: Capture, steps: int, fault: str, named: Sequence[str], *, times: bool) -> Float64:
    """float64 [steps of the capture, features]: against the other runs at the same one of ``steps`` places. ``times``: with how
    long the steps took, too.
    """
    own = FAULTS[fault].own if fault else frozenset[str]()
    columns = list(_sums(capture, own, frozenset(named), waits=not times))
    if times:
        columns += list(blinded(capture).steps.value.T)
    value = np.column_stack(columns) if columns else np.zeros((len(capture.steps.engine), 0))
    by_place = value.reshape(-1, steps, value.shape[1])
    with np.errstate(all="ignore"):
        return (by_place - _middle(by_place)).reshape(value.shape)


def _middle(value: Float64) -> Float64:
    known = ~np.isnan(value).all(axis=0)
    out = np.full(value.shape[1:], np.nan)
    out[known] = np.nanmedian(value[:, known], axis=0)
    return out


def _sums(capture: Capture, moved: frozenset[str], named: frozenset[str], *, waits: bool) -> Iterator[Float64]:
    """Columns: of each layer, how many spans and their own time, and how much the names in it differ from other runs. Where
    ``waits`` count as moved, collectives are left out: nobody sees how much of one is a wait.
    """
    spans = [found for at in range(len(capture.ranks)) if (found := _spans(capture, at, named)) is not None]
    steps = len(capture.steps.engine)
    for layer, side in LAYERS:
        if side in moved or (waits and side == MOVES_TALK):
            continue
        count, table = _of_layer(spans, layer, steps)
        if not table.size:
            yield from (np.full(steps, np.nan) for _ in range(6))
            continue
        yield np.log1p(count)
        yield np.log(table.sum(axis=1) + 1.0)
        large = table[:, np.median(table, axis=0) >= LEAST_NS]
        away = np.log(large + 1.0) - np.log(np.median(large, axis=0) + 1.0) if large.size else np.zeros((steps, 1))
        yield from (away.mean(axis=1), away.std(axis=1), away.max(axis=1), away.min(axis=1))


class _Spans(NamedTuple):
    """Spans of a rank in steps, no waits and none that is named: ``step``, ``name``, ``layer``, and ns of ``own`` time."""

    step: Int64
    name: Int64
    layer: Int64
    own: Int64


def _spans(capture: Capture, position: int, named: frozenset[str]) -> _Spans | None:
    tree, work = capture.ranks[position].tree, capture.work
    if tree is None:
        return None
    of = np.full(len(tree), -1, dtype=np.int64)
    for at in np.flatnonzero((work.rank == position) & (work.row >= 0)).tolist():
        of[int(work.row[at]) : int(work.row_stop[at])] = int(work.step[at])
    trace = tree.trace
    counts = np.array([_counts(name, named) for name in trace.names], dtype=np.bool_)
    rows = np.flatnonzero((of >= 0) & counts[trace.name])
    return _Spans(
        of[rows], trace.name[rows].astype(np.int64), trace.layer[rows].astype(np.int64), tree.self_time()[rows]
    )


def _of_layer(spans: Sequence[_Spans], layer: int, steps: int) -> tuple[Float64, Float64]:
    """How many spans of each step are of ``layer``, and float64 ns [steps, names of each rank] of their own time."""
    count, tables = np.zeros(steps), [np.zeros((steps, 0))]
    for one in spans:
        mine = one.layer == layer
        step = one.step[mine]
        count += np.bincount(step, minlength=steps)
        names, name = np.unique(one.name[mine], return_inverse=True)
        table = np.zeros((steps, len(names)))
        np.add.at(table, (step, name.reshape(-1)), one.own[mine])
        tables.append(table)
    return count, np.concatenate(tables, axis=1)


def _counts(name: str, named: frozenset[str]) -> bool:
    return name not in named and BLOCKING.search(name) is None and COPIES.match(name) is None


def asked(question: str, given: Sequence[Asked]) -> Verdict:
    """What can be told of ``given``, one entry an episode."""
    width = max((one.value.shape[1] for one in given), default=0)
    some = [one for one in given if one.value.shape[1] == width]
    value, label = np.concatenate([one.value for one in some]), np.concatenate([one.label for one in some])
    recording, episode = (np.concatenate([getattr(one, name) for one in some]) for name in ("recording", "episode"))
    return Verdict(question, len(label), int(label.sum()), _area(value, label, recording), _area(value, label, episode))


def _area(value: Float64, label: Mask, of: Int64) -> float:
    """The area under the curve of what trees say of rows whose group (``of``) they did not learn from; the mean over folds."""
    groups = np.unique(of)
    folds = np.random.default_rng(0).permutation(len(groups)) % FOLDS
    areas: list[float] = []
    for fold in range(FOLDS):
        held = np.isin(of, groups[folds == fold])
        if not (_both(label[held]) and _both(label[~held])):
            continue
        rows = np.flatnonzero(~held)[_balanced(label[~held])]
        areas.append(area(_scores(value[rows], label[rows], value[held]), label[held]))
    return float(np.mean(areas)) if areas else float("nan")


def _scores(learned: Float64, label: Mask, asked_of: Float64) -> Float64:
    """float64 a row of ``asked_of``: all alike where no column of what is learned from varies."""
    varies = np.array([len(np.unique(column[~np.isnan(column)])) > 1 for column in learned.T], dtype=np.bool_)
    if not varies.any():
        return np.zeros(len(asked_of))
    target = label.astype(np.float64)
    model = boosted_trees(learned[:, varies], target, leaves=LEAVES, rate=RATE, loss="squared_error", seed=0)
    return np.asarray(model.predict(asked_of[:, varies]), dtype=np.float64)


def _both(label: Mask) -> bool:
    return bool(label.any()) and not bool(label.all())


def _balanced(label: Mask) -> Int64:
    """Rows with as many of one label as of the other, drawn again and again."""
    chance = np.random.default_rng(0)
    yes, no = np.flatnonzero(label), np.flatnonzero(~label)
    size = max(len(yes), len(no))
    return np.concatenate([chance.choice(each, size) if len(each) < size else each for each in (yes, no)])


def area(score: Float64, label: Mask) -> float:
    """The chance that a row with the label scores higher than one without; equal ones count half (Mann and Whitney 1947)."""
    _, of, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[of]
    yes = int(label.sum())
    return float((rank[label].sum() - yes * (yes + 1) / 2) / (yes * (len(label) - yes)))
