"""What training makes small."""

# pyright: reportUnknownMemberType=false
# Of some of torch's functions not all types are known.

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from teller_core.model.inputs import Wanted, owners
from teller_core.model.laying import Batch
from teller_core.model.net.network import NEVER, OPERATORS, Said

WEIGHTS: Mapping[str, float] = {"abnormal": 1.0, "cause": 1.0, "operator": 0.5, "rank": 0.5, "fact": 0.3, "words": 0.3}


@dataclass(frozen=True)
class Loss:
    """``total`` to be made small, and by head its mean, NaN where no sheet of the batch tells."""

    total: Tensor
    heads: Mapping[str, float]


def loss(said: Said, batch: Batch, class_weight: Tensor) -> Loss:
    """Of a batch. ``class_weight`` [classes]: how much a sheet of each class counts."""
    device, wanted = said.abnormal.device, batch.inputs.wanted
    found = {
        "abnormal": _abnormal(said.abnormal, wanted),
        "cause": _cause(said.cause, wanted, class_weight),
        "operator": _pointed(said.operator, *_operators(batch, device), len(batch.inputs)),
        "rank": _pointed(said.rank, *_ranks(batch, device), len(batch.inputs)),
        "fact": _cited(said.fact, torch.from_numpy(batch.inputs.facts.target).to(device)),
        "words": _words(said.words, torch.from_numpy(batch.said).to(device)),
    }
    some = {name: each for name, each in found.items() if each is not None}
    zero = said.cause.sum() * 0.0  # a batch of which nothing is known is one of no loss
    total = sum((WEIGHTS[name] * each for name, each in some.items()), zero)
    return Loss(total, {name: float(some[name].detach()) if name in some else float("nan") for name in found})


def _abnormal(score: Tensor, wanted: Wanted) -> Tensor | None:
    target = torch.from_numpy(wanted.abnormal).to(score.device)
    known = target >= 0
    if not known.any():
        return None
    return functional.binary_cross_entropy_with_logits(score[known], target[known].float())


def _cause(score: Tensor, wanted: Wanted, class_weight: Tensor) -> Tensor | None:
    target = torch.from_numpy(wanted.cause).to(score.device).long()
    known = target >= 0
    if not known.any():
        return None
    weight = class_weight[target[known]]
    barred = torch.from_numpy(wanted.barred).to(score.device).long()
    there = torch.arange(score.shape[1], device=score.device) == barred.unsqueeze(1)
    each = functional.cross_entropy(score.masked_fill(there, NEVER)[known], target[known], reduction="none")
    return (each * weight).sum() / weight.sum().clamp_min(1e-9)


def _operators(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor]:
    parts = [batch.inputs.parts[name] for name in OPERATORS]
    target = torch.cat([torch.from_numpy(part.target) for part in parts])
    owner = torch.cat([torch.from_numpy(owners(part)) for part in parts])
    return target.to(device), owner.to(device)


def _ranks(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor]:
    part = batch.inputs.together
    return torch.from_numpy(part.target).to(device), torch.from_numpy(owners(part)).to(device)


def _pointed(score: Tensor, target: Tensor, owner: Tensor, count: int) -> Tensor | None:
    """Minus the log of the share that right items have of all items of their sheet, mean over sheets that have a right one."""
    right = target == 1
    if not right.any():
        return None
    peak = score.new_full((count,), -torch.inf).scatter_reduce(0, owner, score.detach(), "amax")
    each = (score - peak[owner]).exp()
    whole = score.new_zeros(count).index_add(0, owner, each)
    part = score.new_zeros(count).index_add(0, owner[right], each[right])
    told = torch.zeros(count, dtype=torch.bool, device=score.device).index_fill(0, owner[right], True)
    return -(part[told].clamp_min(1e-12).log() - whole[told].log()).mean()


def _cited(score: Tensor, target: Tensor) -> Tensor | None:
    known = target >= 0
    if not known.any():
        return None
    return functional.binary_cross_entropy_with_logits(score[known], target[known].float())


def _words(score: Tensor, target: Tensor) -> Tensor | None:
    return functional.cross_entropy(score, target) if len(target) else None
