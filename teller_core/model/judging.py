"""A trained model on a disk, and what it says of sheets. Nothing here loads torch before it is asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from teller_core.data.opinion import Opinion, Pointed
from teller_core.data.sheets import Sheets, cause_ids, layout_hash, taken
from teller_core.data.table import Float32, Float64, Int32, Int64
from teller_core.errors import FormatError, InputError, MissingExtra
from teller_core.model.calibrating import ABNORMAL, sigmoid
from teller_core.model.card import Card, card_of, refuse_foreign
from teller_core.model.classes import FIRST
from teller_core.model.inputs import owners
from teller_core.model.loading import SHIPPED, installed
from teller_core.model.measured import measured
from teller_core.model.preparing import lessened, prepared
from teller_core.model.verdicts import Verdict, Verdicts

if TYPE_CHECKING:
    from teller_core.data.report import WhyReport
    from teller_core.model.net.network import Network
    from teller_core.model.words.saying import Said

THREADS = 2
READ_AT_ONCE = 2048
"""Positions: memory beside the weights stays at some tens of megabytes."""


@dataclass(frozen=True)
class Model:
    """Weights with their card."""

    card: Card
    network: "Network"


def needed() -> None:
    """Raise MissingExtra where no model can be loaded."""
    if not installed():
        raise MissingExtra("The model", "torch or transformers is not installed", "Install teller-mcp[model]")


def card_in(path: Path) -> Card:
    """The card of the model in a file. Raises as :func:`load` does."""
    needed()
    from teller_core.model.net.files import read

    return card_of(read(path)[1])


def load(path: Path = SHIPPED, *, backbone: Path | None = None, threads: int = THREADS) -> Model:
    """The model in a file. ``backbone``: the folder of the decoder around which it was trained, where it was.

    Raises MissingExtra without torch, InputError where there is no file, FormatError where it is none, or is foreign.
    """
    needed()
    import torch

    from teller_core.model.net.files import put_into, read
    from teller_core.model.net.network import small

    tensors, told = read(path)
    card = card_of(told)
    refuse_foreign(card.reads.layout, layout_hash(), "layout of sheets")
    torch.set_num_threads(threads)
    reads = card.reads
    network = _around(card, backbone) if card.backbone else small(card.shape, reads.symbols, reads.spoken)
    put_into(network, tensors, path.name)
    network.eval().requires_grad_(False)
    return Model(card, network)


def _around(card: Card, backbone: Path | None) -> "Network":
    from teller_core.model.net.backbone import large

    if backbone is None:
        raise InputError("The model", "it was trained around a decoder of somebody else", "Name that with --backbone")
    network = large(backbone, card.reads.symbols, card.reads.spoken)
    if network.origin != card.backbone:
        raise FormatError(f"--backbone {backbone.name}", "the model was trained around another one", "Name that one")
    return network


def judged(model: Model, sheets: Sheets) -> Verdicts:
    """What ``model`` says of ``sheets``. Raises FormatError where their tokens are of another vocabulary than it reads."""
    if sheets.vocabulary:
        refuse_foreign(model.card.reads.vocabulary, sheets.vocabulary, "vocabulary of traces")
    inputs = lessened(prepared(sheets), model.card.parts)
    found, calibration = measured(model.network, inputs, READ_AT_ONCE), model.card.calibration
    likely = calibration.causes(found.cause)
    abnormal = calibration.abnormal(found.abnormal, inputs.head)
    unnamed = np.where(abnormal >= ABNORMAL, Verdict.UNTOLD, Verdict.CALM)
    verdict = np.where(calibration.named(likely), Verdict.CAUSE, unnamed)
    cut = len(inputs.suspects)
    owner = np.concatenate([owners(inputs.suspects), owners(inputs.pieces)])
    operator = shares(np.concatenate([found.suspects, found.pieces]), owner, len(sheets))
    return Verdicts(
        verdict=verdict.astype(np.uint8),
        abnormal=abnormal,
        cause=(FIRST + likely[:, FIRST:].argmax(axis=1)).astype(np.int32),
        sure=likely[:, FIRST:].max(axis=1).astype(np.float32),
        likely=likely.astype(np.float32),
        suspects=_whole(operator[:cut], sheets.suspects_at),
        pieces=_whole(operator[cut:], sheets.pieces_at),
        together=_whole(shares(found.together, owners(inputs.together), len(sheets)), sheets.together_at),
        facts=_whole(sigmoid(found.facts), sheets.facts_at),
    )


def opinions(model: Model, sheets: Sheets) -> list[Opinion]:
    """What ``model`` says of each of ``sheets``, as :mod:`teller_core.judge.fusing` takes it. Raises as :func:`judged` does."""
    said, card = judged(model, sheets), model.card
    known = np.array([True] * FIRST + [card.seen.get(key, 0) > 0 for key in cause_ids()])
    return [
        Opinion(
            likely=said.likely[at].astype(np.float64),
            abnormal=float(said.abnormal[at]),
            known=known,
            fusion=card.fusion[int(sheets.tier[at])],
            step=int(sheets.step[at]),
            pointed=_pointed(sheets, said, at),
        )
        for at in range(len(sheets))
    ]


def _pointed(sheets: Sheets, said: Verdicts, at: int) -> tuple[Pointed, ...]:
    """The suspects of a sheet: each as likely to be to blame as all that bears its name."""
    pieces, suspects, table = sheets.of("pieces", at), sheets.of("suspects", at), sheets.suspects
    total: dict[str, float] = {}
    for names, likely, mine in (
        (sheets.pieces.name, said.pieces, pieces),
        (table.name, said.suspects, suspects),
    ):
        for name, each in zip(names[mine], likely[mine].tolist(), strict=True):
            total[name] = total.get(name, 0.0) + each
    found = [
        Pointed(
            name=table.name[row],
            layer=int(table.layer[row]),
            rank=int(table.rank[row]),
            row=int(table.row[row]),
            value=int(table.value[row]),
            normal=int(table.normal[row]),
            likely=min(total[table.name[row]], 1.0),
        )
        for row in range(suspects.start, suspects.stop)
    ]
    return tuple(sorted(found, key=lambda one: -one.likely))


def spoken(model: Model, sheets: Sheets, row: int, report: "WhyReport") -> "Said":
    """``report``, which is of the request of the sheet at ``row``, in the words that ``model`` has for what it sees: checked, and
    citing facts of the sheet that the report has too. Raises FormatError for a model that speaks other words.
    """
    from teller_core.model.net.decoding import speaker
    from teller_core.model.words.grammar import words_hash
    from teller_core.model.words.lessons import facts_of
    from teller_core.model.words.saying import said

    refuse_foreign(model.card.reads.words, words_hash(), "set of words")
    inputs = lessened(prepared(taken(sheets, np.array([row]))), model.card.parts)
    return said(report, speaker(model.network, inputs), facts_of(sheets, row) if len(inputs.facts) else [])


def _whole(likely: Float64, at: Int32) -> Float32:
    """float32 a row of the part: 0 of one that this model does not read."""
    return likely.astype(np.float32) if len(likely) == at[-1] else np.zeros(int(at[-1]), dtype=np.float32)


def shares(score: Float64, owner: Int64, count: int) -> Float64:
    """float64: of all items of a sheet, so that they sum to 1."""
    peak = np.full(count, -np.inf)
    np.maximum.at(peak, owner, score)
    raised = np.exp(score - peak[owner])
    return raised / np.bincount(owner, weights=raised, minlength=count)[owner]
