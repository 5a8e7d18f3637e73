"""Training, from lives of the training side to a file of weights with its card. It may be ended at any moment, and goes on later
as if it had not been.
"""

# pyright: reportUnknownMemberType=false
# Of some of torch's functions not all types are known.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from teller_core.data.causes import cause
from teller_core.data.said import TIERS
from teller_core.data.sheets import cause_ids
from teller_core.data.table import Int64
from teller_core.data.whole import keep_text, made_folder
from teller_core.errors import InputError
from teller_core.model.batches import held_out, ordered
from teller_core.model.calibrating import Calibration
from teller_core.model.card import Card, Reads, card_of, text_of
from teller_core.model.classes import FIRST, NONE, UNTOLD, class_of, classes
from teller_core.model.fusing import by_tier, fused_by_tier
from teller_core.model.inputs import Inputs, joined, taken
from teller_core.model.laying import laid, lengths, without_words
from teller_core.model.masking import masked, other_gone, told, told_nothing, unseen
from teller_core.model.measured import calibrated, judged_by, measured
from teller_core.model.options import Masks, Parts, Plan, Shape
from teller_core.model.preparing import lessened, vertical

if TYPE_CHECKING:
    from torch import Tensor

    from teller_core.model.net.network import Network
    from teller_core.model.net.progress import Running

WEIGHTS, CARD, UNDERWAY = "model.safetensors", "MODEL.md", "underway.safetensors"
SPOKEN = 0.5
"""Of sheets with something to say: how many say it in an update. Words cost positions."""
MOST_HELD, MOST_LOOKED_AT = 12_000, 2_000
"""Sheets of lives kept apart: of these the card tells, and at so many of them training looks again and again."""
PACED, MARGIN = 20, 0.92
"""After so many updates it is known how many the clock allows for; the last part of it is for looks and for judging."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Life:
    """The sheets of one start of a server. ``hash``: of the file they were read from; ``kind``: what served, in a word."""

    name: str
    hash: str
    inputs: Inputs
    kind: str = ""


@dataclass(frozen=True)
class Work:
    """What is the same for all of a training."""

    lives: Sequence[Life]
    reads: Reads
    shape: Shape = field(default_factory=Shape)
    parts: Parts = field(default_factory=Parts)
    plan: Plan = field(default_factory=Plan)
    masks: Masks = field(default_factory=Masks)
    backbone: Path | None = None

    @property
    def data(self) -> str:
        """The hash of all that is learned from."""
        return sha256("".join(sorted(life.hash for life in self.lives)).encode()).hexdigest()

    @property
    def key(self) -> str:
        """The hash of all that decides what comes out: one that was ended goes on only with what it began with."""
        plain = {name: asdict(getattr(self, name)) for name in ("reads", "shape", "parts", "plan", "masks")}
        plain["plan"] |= {"minutes": 0, "save_s": 0, "threads": 0}
        return sha256(f"{self.data} {plain} {self.backbone}".encode()).hexdigest()


@dataclass(frozen=True)
class Sides:
    """Sheets to learn from and to judge and calibrate by; ``glance``, some of the latter, to choose by; the names of their lives;
    ``count`` int64 by class: of those to learn from.
    """

    train: Inputs
    held: Inputs
    glance: Inputs
    names: tuple[Sequence[str], Sequence[str]]
    count: Int64


def sides_of(work: Work) -> Sides:
    """The lives learned from, and those kept to choose by, in which causes that the former have not are taken for unknown ones.

    Raises InputError where there are fewer than two lives, or no cause to learn.
    """
    if len(work.lives) < 2:
        raise InputError("The sheets", "they are of fewer than two lives", "Name a folder with those of more")
    lives = sorted(work.lives, key=lambda life: life.name)
    held = held_out([one.name for one in lives], [one.kind for one in lives], work.plan.held, work.plan.seed)
    apart = [[life for life, out in zip(lives, held, strict=True) if out is which] for which in (False, True)]
    train, kept = (joined([_read(life, work) for life in several]) for several in apart)
    if work.plan.unseen:
        train = taken(train, np.flatnonzero(train.wanted.cause != class_of(cause(work.plan.unseen).id)))
    wanted = train.wanted.cause
    count = np.bincount(wanted[wanted >= 0], minlength=classes())
    if not count[FIRST:].any() or not len(kept):
        raise InputError("The sheets", "none of those to learn from has a known cause", "Name a folder with more lives")
    kept = unseen(kept, (kept.wanted.cause >= FIRST) & (count[kept.wanted.cause] == 0))
    chance = np.random.default_rng(work.plan.seed)
    kept = without_words(some(kept, MOST_HELD, chance), np.zeros(min(len(kept), MOST_HELD), dtype=np.bool_))
    glance = some(kept, MOST_LOOKED_AT, chance)
    return Sides(train, kept, glance, ([one.name for one in apart[0]], [one.name for one in apart[1]]), count)


def some(inputs: Inputs, most: int, chance: np.random.Generator) -> Inputs:
    """At most so many of ``inputs``, drawn by chance, in their order."""
    if len(inputs) <= most:
        return inputs
    return taken(inputs, np.sort(chance.permutation(len(inputs))[:most]))


def _read(life: Life, work: Work) -> Inputs:
    """Of a life what a network reads that is to do without some parts, or without words."""
    inputs = lessened(life.inputs, work.parts)
    inputs = inputs if work.parts.horizontal else taken(inputs, vertical(inputs))
    return inputs if work.reads.spoken else without_words(inputs, np.zeros(len(inputs), dtype=np.bool_))


def class_weights(count: Int64) -> "Tensor":
    """float32 [classes]: less for what is common, by the root of how common it is; mean 1 over the sheets."""
    import torch

    weight = np.where(count > 0, 1.0 / np.sqrt(np.maximum(count, 1)), 0.0)
    weight[NONE] *= 2.0  # many kinds of calm stand in this one class
    scale = count.sum() / max(float((weight * count).sum()), 1e-12)
    weight *= scale
    weight[UNTOLD] = weight[FIRST:][count[FIRST:] > 0].mean()
    return torch.from_numpy(weight.astype(np.float32))


def train(work: Work, to: Path, progress: Progress) -> Card:
    """Train, or go on with what an earlier call left in ``to``, and write WEIGHTS and CARD there; nothing where that was done.

    Raises InputError where ``to`` holds another training.
    """
    import torch

    from teller_core.model.net.files import halved, put_into, trained, write
    from teller_core.model.net.progress import begun

    if (done := _done(to / WEIGHTS)) is not None:
        if done.key != work.key:
            raise InputError(f"--to {to.name}", "it holds a model of other data or options", "Name a new folder")
        return done
    sides = sides_of(work)
    made_folder(to)
    torch.set_num_threads(work.plan.threads)
    network = made(work, sides)
    running = begun(network, work.key, work.plan, to / UNDERWAY)
    weight = class_weights(sides.count).to(network.verdict.device)
    _run(network, running, work, sides, weight=weight, progress=progress)
    running.take_best(network)
    tensors = halved(trained(network))
    put_into(network, tensors, to.name)  # what is judged is what is kept: rounded
    card = _judged(network, running, work, sides, weight)
    write(to / WEIGHTS, tensors, card.written())
    keep_text(to / CARD, text_of(card))
    (to / UNDERWAY).unlink(missing_ok=True)
    return card


def _done(path: Path) -> Card | None:
    from teller_core.model.net.files import read

    return card_of(read(path)[1]) if path.exists() else None


def made(work: Work, sides: Sides) -> "Network":
    """The network before its first update: weights by the seed, ranges of numbers by the training side."""
    import torch

    from teller_core.model.net.embedding import bins
    from teller_core.model.net.network import small

    torch.manual_seed(work.plan.seed)
    reads = work.reads
    if work.backbone is None:
        network = small(work.shape, reads.symbols, reads.spoken)
    else:
        from teller_core.model.net.backbone import large

        network = large(work.backbone, reads.symbols, reads.spoken)
    low, width = bins(sides.train.numbers)
    network.embedding.numbers.low.copy_(torch.from_numpy(low))
    network.embedding.numbers.width.copy_(torch.from_numpy(width))
    present = sides.count > 0
    present[[NONE, UNTOLD]] = True
    network.present.copy_(torch.from_numpy(present))
    return network


def _run(
    network: "Network", running: "Running", work: Work, sides: Sides, *, weight: "Tensor", progress: Progress
) -> None:
    plan = work.plan
    length = lengths(sides.train)
    began, spent, saved = monotonic(), running.seconds, monotonic()
    batches = ordered(length, plan.tokens, plan.seed, running.passes)
    while running.update < running.planned and running.worse < plan.patience:
        if running.seconds > plan.minutes * 60:
            progress(f"update {running.update}: the time is up")
            break
        if running.at >= len(batches):
            running.passes, running.at = running.passes + 1, 0
            batches = ordered(length, plan.tokens, plan.seed, running.passes)
        inputs = seen_at(taken(sides.train, batches[running.at]), work, running.update)
        running.step(network, laid(inputs), weight)
        running.seconds = spent + monotonic() - began
        if running.update == PACED:
            running.planned = min(plan.updates, max(PACED, int(MARGIN * plan.minutes * 60 * PACED / running.seconds)))
        if running.update % plan.look == 0 or running.update == running.planned:
            running.look(_held_loss(network, running, sides, weight), network)
            progress(_told(running))
        if monotonic() - saved > plan.save_s:
            running.save(network)
            saved = monotonic()
    if not running.looked:
        running.look(_held_loss(network, running, sides, weight), network)
    running.save(network)


def seen_at(inputs: Inputs, work: Work, update: int) -> Inputs:
    """What the network is shown of ``inputs`` in an update: as if some of it had not been recorded, as chance has it."""
    random = np.random.default_rng([work.plan.seed, update, 1])
    shown = masked(inputs, work.masks, random)
    return without_words(shown, random.random(len(shown)) < SPOKEN)


def _held_loss(network: "Network", running: "Running", sides: Sides, weight: "Tensor") -> float:
    """Of the verdict and the cause, with the mean of the weights."""
    with running.averaged(network):
        found = measured(network, sides.glance, class_weight=weight).loss
    return found.get("abnormal", 0.0) + found.get("cause", 0.0)


def _told(running: "Running") -> str:
    left = (running.planned - running.update) * running.seconds / max(running.update, 1)
    return (
        f"update {running.update} of {running.planned}: loss {running.recent:.3f}, on lives kept apart {running.last:.3f} "
        f"(best {running.best:.3f}), {left / 60:.0f} min left"
    )


def _judged(network: "Network", running: "Running", work: Work, sides: Sides, weight: "Tensor") -> Card:
    found = measured(network, sides.held, class_weight=weight)
    calibration = calibrated(found, sides.held)
    known = sides.count > 0
    known[[NONE, UNTOLD]] = True
    fusion = by_tier(found, sides.held, calibration, known)
    scores = {
        **judged_by(found, sides.held, calibration),
        **fused_by_tier(found, sides.held, calibration, known, fusion),
        **_deleted(network, sides.held, calibration),
    }
    seen = {key: int(sides.count[FIRST + at]) for at, key in enumerate(cause_ids())}
    tiers = np.bincount(sides.train.tier[sides.train.requests], minlength=len(TIERS)).tolist()
    return Card(
        reads=work.reads,
        shape=work.shape,
        parts=work.parts,
        plan=work.plan,
        masks=work.masks,
        key=work.key,
        data=work.data,
        train=sides.names[0],
        held=sides.names[1],
        sheets=len(sides.train),
        seen=seen,
        tiers={f"T{tier}": int(many) for tier, many in enumerate(tiers)},
        updates=running.update,
        seconds=running.seconds,
        calibration=calibration,
        fusion=fusion,
        scores={name: float(value) for name, value in scores.items()},
        backbone="" if work.backbone is None else network.origin,
    )


def _deleted(network: "Network", held: Inputs, calibration: Calibration) -> Mapping[str, float]:
    """What deleting the evidence of the true cause does to the confidence in it, and what deleting something else does."""
    rows = np.flatnonzero(told(held) & held.requests)
    if not len(rows):
        return {}
    whole = taken(held, rows)
    every = np.ones(len(rows), dtype=np.bool_)
    shown = (whole, told_nothing(whole, every), other_gone(whole, every, np.random.default_rng(0)))
    at = np.arange(len(rows)), whole.wanted.cause
    before, after, other = (calibration.causes(measured(network, each).cause)[at] for each in shown)
    return {
        "evidence deleted: less sure by .10, or not named": float(
            ((before - after > 0.10) | (after < calibration.threshold)).mean()
        ),
        "other evidence deleted: less sure by .10": float((before - other > 0.10).mean()),
    }
