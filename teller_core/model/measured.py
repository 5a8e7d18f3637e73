"""What a network says of sheets, as columns of numbers: for training to look at, and for answers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Float64, Mask
from teller_core.model.batches import by_length
from teller_core.model.calibrating import ABNORMAL, Calibration, heads_scaled, sigmoid, tempered, threshold
from teller_core.model.classes import FIRST, NONE
from teller_core.model.inputs import Inputs, owners, spread, taken
from teller_core.model.laying import laid, lengths
from teller_core.model.scores import average_precision, calibration_error, f1, first_right, macro_f1

if TYPE_CHECKING:
    from torch import Tensor

    from teller_core.model.net.network import Network

TOKENS = 8192
"""Positions of a batch that is only read: some tens of megabytes."""


@dataclass(frozen=True)
class Scores:
    """Logits, float64: ``abnormal`` [n], ``cause`` [n, classes]; by item of a part: ``suspects`` and ``pieces`` (which operator),
    ``together`` (which rank), ``facts`` (what to cite). ``loss``: the mean by head, over batches, where the truth is known.
    """

    abnormal: Float64
    cause: npt.NDArray[np.float64]
    suspects: Float64
    pieces: Float64
    together: Float64
    facts: Float64
    loss: dict[str, float]


def measured(network: "Network", inputs: Inputs, tokens: int = TOKENS, class_weight: "Tensor | None" = None) -> Scores:
    """What ``network`` says of ``inputs``, read in batches of like length; with ``class_weight`` [classes] also the loss."""
    import torch

    from teller_core.model.net.losses import loss

    count = len(inputs)
    found = {name: np.zeros(len(inputs.parts[name])) for name in ("suspects", "pieces", "together", "facts")}
    abnormal, cause = np.zeros(count), np.zeros((count, network.cause.out_features))
    sums: dict[str, list[float]] = {}
    network.eval()
    with torch.inference_mode():
        for rows in by_length(lengths(inputs), tokens):
            batch = laid(taken(inputs, rows))
            said = network(batch)
            abnormal[rows] = said.abnormal.double().cpu().numpy()
            cause[rows] = said.cause.double().cpu().numpy()
            operator = said.operator.double().cpu().numpy()
            cut = len(batch.inputs.suspects)
            each = {
                "suspects": operator[:cut],
                "pieces": operator[cut:],
                "together": said.rank.double().cpu().numpy(),
                "facts": said.fact.double().cpu().numpy(),
            }
            for name, values in each.items():
                found[name][spread(inputs.parts[name].offsets, rows)[0]] = values
            if class_weight is not None:
                for name, value in loss(said, batch, class_weight).heads.items():
                    if not np.isnan(value):
                        total = sums.setdefault(name, [0.0, 0.0])
                        total[0] += value * len(rows)
                        total[1] += len(rows)
    return Scores(abnormal, cause, **found, loss={name: a / b for name, (a, b) in sums.items()})


def calibrated(scores: Scores, inputs: Inputs) -> Calibration:
    """How sure the scores make: from sheets whose truth is known."""
    wanted = inputs.wanted
    known, told = wanted.abnormal >= 0, wanted.cause >= 0
    slope, shift = heads_scaled(scores.abnormal[known], wanted.abnormal[known] == 1, inputs.head[known])
    temperature = tempered(scores.cause[told], wanted.cause[told].astype(np.int64))
    likely = Calibration(slope, shift, temperature).causes(scores.cause)
    struck = (wanted.cause >= FIRST) & inputs.requests
    struck = struck if struck.any() else wanted.cause >= FIRST
    named = FIRST + likely[struck, FIRST:].argmax(axis=1)
    right = named == wanted.cause[struck]
    return Calibration(slope, shift, temperature, threshold(likely[struck, FIRST:].max(axis=1), right))


def judged_by(scores: Scores, inputs: Inputs, calibration: Calibration) -> dict[str, float]:
    """The figures of a model card, by name."""
    wanted, found = inputs.wanted, dict[str, float]()
    sure = calibration.abnormal(scores.abnormal, inputs.head)
    for head, name in enumerate(("step, vertical", "step, horizontal", "request", "request, horizontal")):
        own = (inputs.head == head) & (wanted.abnormal >= 0)
        if not own.any():
            continue
        right = wanted.abnormal[own] == 1
        found[f"{name}: PR-AUC"] = average_precision(sure[own], right)
        found[f"{name}: F1"] = f1(sure[own] >= ABNORMAL, right)
        found[f"{name}: calibration error"] = calibration_error(sure[own], right)
    likely = calibration.causes(scores.cause)
    named = calibration.named(likely)
    return found | _named(likely, named, inputs) | _strange(sure, named, inputs) | _pointed(scores, inputs)


def _named(every: npt.NDArray[np.float64], sure: Mask, inputs: Inputs) -> dict[str, float]:
    """``every``: how likely each class is of each sheet; ``sure``: whether its likeliest cause is named."""
    wanted = inputs.wanted
    struck = (wanted.cause >= FIRST) & inputs.requests
    if not struck.any():
        return {}
    likely, kept, right = every[struck], sure[struck], wanted.cause[struck].astype(np.int64)
    named = FIRST + likely[:, FIRST:].argmax(axis=1)
    best = np.argsort(-likely[:, FIRST:], axis=1)[:, :3] + FIRST
    judged, healthy = (wanted.cause >= 0) & inputs.requests, (wanted.cause == NONE) & inputs.requests
    return {
        "cause of a struck request: top-1": float((named == right).mean()),
        "cause of a struck request: top-3": float((best == right[:, None]).any(axis=1).mean()),
        "cause of a struck request: macro F1": macro_f1(named, right),
        "cause of a struck request: named": float(kept.mean()),
        "cause of a struck request: right where named": float((named == right)[kept].mean()) if kept.any() else np.nan,
        "cause of any request, none included: right": float(
            (every[judged].argmax(axis=1) == wanted.cause[judged]).mean()
        ),
        "healthy requests: given a cause": float(sure[healthy].mean()) if healthy.any() else np.nan,
    }


def _strange(abnormal: Float64, named: Mask, inputs: Inputs) -> dict[str, float]:
    """Of requests that something struck that training never saw."""
    rows = (inputs.wanted.barred >= FIRST) & inputs.requests
    if not rows.any():
        return {}
    return {
        "a cause never seen: called abnormal": float((abnormal[rows] >= ABNORMAL).mean()),
        "a cause never seen: named": float(named[rows].mean()),
    }


def _pointed(scores: Scores, inputs: Inputs) -> dict[str, float]:
    parts = [inputs.suspects, inputs.pieces]
    target, owner = np.concatenate([part.target for part in parts]), np.concatenate([owners(part) for part in parts])
    operator = np.concatenate([scores.suspects, scores.pieces])
    facts = inputs.facts.target >= 0
    return {
        "operator: AC@1": first_right(operator, target, owner, len(inputs)),
        "rank: AC@1": first_right(scores.together, inputs.together.target, owners(inputs.together), len(inputs)),
        "facts to cite: F1": f1(sigmoid(scores.facts[facts]) >= 0.5, inputs.facts.target[facts] == 1),
    }
