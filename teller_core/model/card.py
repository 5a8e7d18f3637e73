"""The model card: what a model was made of, what it reads, how good it was where it could be checked, and what it is not for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from teller_core.data.pooling import Fusion, Weights
from teller_core.data.said import TIERS
from teller_core.data.sheets import layout_hash
from teller_core.errors import FormatError
from teller_core.model.calibrating import Calibration
from teller_core.model.options import Masks, Parts, Plan, Shape

NEXT = "Train it again: teller model train"
LIMITS = (
    "Trained on small models served on CPUs, with faults put there by hand; a GPU's kernels and real incidents it has not seen.",
    "A cause that is not in the table above is never named: such a fault is called abnormal, and its cause is not told.",
    "Scores are of lives kept from training, by which it was also chosen: those of the test side are in the benchmark's tables.",
)


@dataclass(frozen=True)
class Reads:
    """What a model must be given: the hash of the ``layout`` of sheets, of the ``vocabulary`` of Trace Pair Encoding and how many
    ``symbols`` it has; the hash of the ``words`` it speaks and how many there are, empty and 0 for a model without.
    """

    vocabulary: str
    symbols: int
    words: str = ""
    spoken: int = 0
    layout: str = field(default_factory=layout_hash)


@dataclass(frozen=True)
class Card:
    """``key``: the hash of all that decided what came out; ``data``: that of the training side; ``train``, ``held``: the lives
    learned from and chosen by; ``seen``: by cause, how many sheets were learned from; ``tiers``: by tier, T0 to T4, how many of
    requests were; ``scores``: on ``held``; ``backbone``: the hash of a decoder that somebody else trained, or empty; ``fusion``:
    by tier, how much it is to count beside what rules claim.
    """

    reads: Reads
    shape: Shape
    parts: Parts
    plan: Plan
    masks: Masks
    key: str
    data: str
    train: Sequence[str]
    held: Sequence[str]
    sheets: int
    seen: Mapping[str, int]
    updates: int
    seconds: float
    calibration: Calibration = field(default_factory=Calibration)
    fusion: Sequence[Fusion] = (Fusion(),) * len(TIERS)
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    backbone: str = ""
    tiers: Mapping[str, int] = field(default_factory=dict[str, int])

    def learned_at(self, tier: int) -> bool:
        """Whether any request was learned from of which as much was recorded: of others it can only guess. A card that does not
        count them is of a model that learned from sheets of every tier, as ``teller lab sheets`` writes them.
        """
        return not self.tiers or self.tiers.get(f"T{tier}", 0) > 0

    def written(self) -> dict[str, Any]:
        """As JSON has it, which knows no NaN."""
        made = asdict(self)
        made["scores"] = {name: None if math.isnan(value) else value for name, value in self.scores.items()}
        return made


def card_of(given: Mapping[str, Any]) -> Card:
    """The card that :meth:`Card.written` gave. Raises FormatError for anything else."""
    kinds: dict[str, Any] = {"reads": Reads, "shape": Shape, "parts": Parts, "plan": Plan, "masks": Masks}
    try:
        made: dict[str, Any] = {name: kind(**given[name]) for name, kind in kinds.items()}
        tuned: dict[str, Any] = {name: _tupled(value) for name, value in given["calibration"].items()}
        made["calibration"] = Calibration(**tuned)
        made["fusion"] = tuple(Fusion(Weights(**one["weights"]), float(one["threshold"])) for one in given["fusion"])
        if len(made["fusion"]) != len(TIERS):
            raise ValueError("one for each tier")
        made["scores"] = {name: math.nan if value is None else float(value) for name, value in given["scores"].items()}
        return Card(**{**given, **made})
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormatError("The model", "its card is broken", NEXT) from None


def _tupled(value: Any) -> Any:
    return tuple(cast("list[float]", value)) if isinstance(value, list) else value


def refuse_foreign(trained: str, here: str, what: str) -> None:
    """Raise FormatError where a model reads or speaks by another hash than there is here: of ``what``."""
    if trained != here:
        raise FormatError("The model", f"it was trained with another {what}", NEXT)


def _weighed(fusion: Fusion) -> str:
    terms = ", ".join(f"{name} {value:.2f}" for name, value in asdict(fusion.weights).items())
    return f"{terms}; together they name no cause below {fusion.threshold:.3f}"


def text_of(card: Card) -> str:
    """The card for people."""
    shape, lines = card.shape, ["# The root-cause model", ""]
    what = (
        f"the decoder {card.backbone[:16]} with LoRA" if card.backbone else f"{shape.layers} layers of {shape.hidden}"
    )
    left_out = [name for name, here in asdict(card.parts).items() if not here]
    lines += [
        f"- Network: {what}, read through one sequence a step or request"
        + (f"; without {', '.join(left_out)}" if left_out else ""),
        f"- Training data: {card.sheets} sheets of {len(card.train)} lives, hash {card.data[:16]}; chosen and calibrated on "
        f"{len(card.held)} further lives: {', '.join(card.held)}",
        f"- Training: seed {card.plan.seed}, {card.updates} updates, {card.seconds / 60:.1f} minutes",
        f"- Reads: layout {card.reads.layout}, vocabulary {card.reads.vocabulary[:16]} ({card.reads.symbols} symbols)"
        + (f"; speaks {card.reads.spoken} words, hash {card.reads.words[:16]}" if card.reads.spoken else ""),
        f"- Calibration: temperature {card.calibration.temperature:.3f}; no cause is named below "
        f"{card.calibration.threshold:.3f}",
        *(f"- Beside what rules claim at T{tier}: {_weighed(one)}" for tier, one in enumerate(card.fusion) if tier),
        "",
        "| on lives kept from training | |",
        "|---|---|",
        *(f"| {name} | {'-' if math.isnan(value) else f'{value:.3f}'} |" for name, value in card.scores.items()),
        "",
        "| cause | sheets learned from |",
        "|---|---|",
        *(f"| {key} | {many} |" for key, many in card.seen.items() if many),
        "",
        "| tier | requests learned from |",
        "|---|---|",
        *(f"| {tier} | {many} |" for tier, many in card.tiers.items()),
        "",
        "## Limits",
        "",
        *(f"- {line}" for line in LIMITS),
    ]
    return "\n".join(lines) + "\n"
