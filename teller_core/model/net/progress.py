"""Where a training stands: weights, their mean, the optimizer, the best so far. All of it is one file, written in one go."""

# pyright: reportUnknownMemberType=false
# Of some of torch's functions not all types are known.

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from teller_core.errors import InputError
from teller_core.model.laying import Batch
from teller_core.model.net.files import read, write
from teller_core.model.net.losses import loss
from teller_core.model.net.network import Network
from teller_core.model.options import Plan

KEEP = 0.99
"""Of the mean of the weights, in each update; less in the first ones."""
CLIP = 1.0
WIDE, WIDE_DECAY = 0.2, 0.5
"""A straight line over a thousand columns learns by heart where it learns as fast as the rest."""
COUNTS = ("update", "planned", "passes", "at", "worse", "looked")
FIGURES = ("seconds", "recent", "last", "best")
MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass
class Running:
    """``update``: how many are done, of ``planned``; ``passes`` over the sheets, ``at``: the batch of the pass; ``looked``: how
    often at lives kept apart, ``worse``: how often since the best time.
    """

    key: str
    plan: Plan
    path: Path
    optimizer: torch.optim.AdamW
    mean: dict[str, Tensor]
    kept: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    update: int = 0
    planned: int = 0
    passes: int = 0
    at: int = 0
    worse: int = 0
    looked: int = 0
    seconds: float = 0.0
    recent: float = math.nan
    last: float = math.nan
    best: float = math.inf

    def step(self, network: Network, batch: Batch, weight: Tensor) -> None:
        """One update."""
        network.train()
        torch.manual_seed(self.plan.seed * 1_000_003 + self.update)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate() * group["scale"]
        found = loss(network(batch), batch, weight)
        self.optimizer.zero_grad(set_to_none=False)
        found.total.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        self.optimizer.step()
        self.update, self.at = self.update + 1, self.at + 1
        now = float(found.total.detach())
        self.recent = now if math.isnan(self.recent) else 0.95 * self.recent + 0.05 * now
        keep = min(KEEP, self.update / (self.update + 9.0))
        with torch.no_grad():
            for name, each in learned(network).items():
                self.mean[name].lerp_(each, 1.0 - keep)

    def rate(self) -> float:
        """The learning rate of the next update: up in a line, down in half a cosine."""
        plan = self.plan
        if self.update < plan.warm:
            return plan.rate * (self.update + 1) / plan.warm
        gone = (self.update - plan.warm) / max(self.planned - plan.warm, 1)
        return plan.rate * (0.02 + 0.98 * 0.5 * (1.0 + math.cos(math.pi * min(gone, 1.0))))

    @contextmanager
    def averaged(self, network: Network) -> Generator[None]:
        """The network with the mean of its weights, for as long as it lasts."""
        own = {name: each.detach().clone() for name, each in learned(network).items()}
        _put(network, self.mean)
        try:
            yield
        finally:
            _put(network, own)

    def look(self, value: float, network: Network) -> None:
        """Remember the mean of the weights where ``value``, the loss on lives kept apart, is the best so far."""
        self.last, self.looked = value, self.looked + 1
        if value < self.best or not self.kept:
            self.best, self.worse = value, 0
            self.kept = {name: each.clone() for name, each in self.mean.items()}
        else:
            self.worse += 1

    def take_best(self, network: Network) -> None:
        """Give the network the best weights that were seen."""
        _put(network, self.kept)

    def save(self, network: Network) -> None:
        """Write where it stands."""
        tensors = _named("now", learned(network)) | _named("mean", self.mean) | _named("kept", self.kept)
        for name, each in learned(network).items():
            state = self.optimizer.state.get(each, {})
            tensors |= {f"{moment} {name}": state[moment] for moment in MOMENTS if moment in state}
        told = {name: getattr(self, name) for name in (*COUNTS, *FIGURES)}
        write(self.path, tensors, {"key": self.key, **{name: repr(value) for name, value in told.items()}})

    def restore(self, network: Network, tensors: Mapping[str, Tensor], told: Mapping[str, Any]) -> None:
        """Stand where :meth:`save` was called."""
        _put(network, _of("now", tensors))
        device = network.verdict.device
        self.mean, self.kept = (
            {name: each.to(device) for name, each in _of(what, tensors).items()} for what in ("mean", "kept")
        )
        for name in COUNTS:
            setattr(self, name, int(told[name]))
        for name in FIGURES:
            setattr(self, name, float(told[name]))
        moments = {moment: _of(moment, tensors) for moment in MOMENTS}
        for name, each in learned(network).items():
            if name in moments["exp_avg"]:
                self.optimizer.state[each] = {
                    "step": torch.tensor(float(self.update)),
                    **{moment: moments[moment][name].to(each.device) for moment in MOMENTS},
                }


def begun(network: Network, key: str, plan: Plan, path: Path) -> Running:
    """A training at its beginning, or where the file ``path`` left it. Raises InputError where that is of another one."""
    kinds: dict[str, list[Tensor]] = {"wide": [], "plain": [], "decayed": []}
    for name, each in learned(network).items():
        plain = each.ndim < 2 or "embedding" in name or "words" in name
        kinds["wide" if ".wide." in name else "plain" if plain else "decayed"].append(each)
    groups = [
        {"params": kinds["decayed"], "weight_decay": plan.decay, "scale": 1.0},
        {"params": kinds["plain"], "weight_decay": 0.0, "scale": 1.0},
        {"params": kinds["wide"], "weight_decay": WIDE_DECAY, "scale": WIDE},
    ]
    optimizer = torch.optim.AdamW(groups, lr=plan.rate, betas=(0.9, 0.98), foreach=False)
    mean = {name: each.detach().clone() for name, each in learned(network).items()}
    running = Running(key, plan, path, optimizer, mean, planned=plan.updates)
    if path.exists():
        tensors, told = read(path)
        if told.get("key") != key:
            raise InputError(
                f"--to {path.parent.name}",
                "another training was begun there, with other data or options",
                "Name a new folder",
            )
        running.restore(network, tensors, told)
    return running


def learned(network: Network) -> dict[str, Tensor]:
    """The weights that training changes, by name."""
    return {name: each for name, each in network.named_parameters() if each.requires_grad}


def _put(network: Network, tensors: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, each in learned(network).items():
            each.copy_(tensors[name])


def _named(what: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{what} {name}": each for name, each in tensors.items()}


def _of(what: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.partition(" ")[2]: each for name, each in tensors.items() if name.startswith(f"{what} ")}
