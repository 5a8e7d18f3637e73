"""The two networks that the paper describes, rebuilt at the size of ours and from weights by chance: what they were pretrained on
cannot be had. They read the log and the tokens of a step, and nothing else; they are rows of an ablation and never ship.
"""

# pyright: reportUnknownMemberType=false
# Of some of torch's functions not all types are known.

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from teller_core.data.table import Int64
from teller_core.model.inputs import Part, owners
from teller_core.model.laying import Batch
from teller_core.model.net.network import MOST_FACTS, NEVER, Network, Said
from teller_core.model.options import ONE_STREAM, TWO_STREAMS, Parts
from teller_core.model.preparing import lessened

MOST_LOG = 96
"""Words of the log that are read, the first ones."""


class Rebuilt(Network):
    """``streams`` 2: the log by the decoder, and beside it one vector a step from a graph network of two layers over token, depth
    and duration; the verdict is of both, the words of the log alone. ``streams`` 1: the log, then the mean of the step's tokens
    as one more position, then verdict and words.
    """

    def __init__(self, decoder: Any, hidden: int, symbols: int, words: int, streams: int) -> None:
        super().__init__(decoder, hidden, symbols, words)
        self.streams = streams
        self.graph = nn.ModuleList(nn.Linear(2 * hidden, hidden) for _ in range(2 if streams == 2 else 0))
        self.both = nn.Linear(2 * hidden, hidden) if streams == 2 else None

    def forward(self, batch: Batch) -> Said:
        """What it says of each sheet: no operator, no rank and no fact is told from another."""
        inputs, device = batch.inputs, self.verdict.device
        count, steps = len(inputs), self._steps(batch, device)
        log, owner, place, many = _log(inputs.said, count)
        begin = many + (1 if self.streams == 1 else 0)
        said = np.diff(inputs.wanted.offsets)
        length = int((begin + 1 + np.maximum(said - 1, 0)).max(initial=1))
        first = np.arange(count) * length
        rows = torch.zeros(count * length, self.hidden, device=device)
        rows = rows.index_copy(0, _to(first[owner] + place, device), self.embedding.bag.weight[_to(log, device)])
        if self.streams == 1:
            rows = rows.index_copy(0, _to(first + many, device), steps)
        asked = self.verdict + self.embedding.head(_to(inputs.head, device))
        rows = rows.index_copy(0, _to(first + begin, device), asked)
        old, at = batch.verdict, first + begin
        sheet = batch.words // batch.length
        rows = rows.index_copy(0, _to(at[sheet] + batch.words - old[sheet], device), self._words(batch, device))
        given = rows.view(count, length, self.hidden).to(self.decoder.dtype)
        state = self.decoder(inputs_embeds=given, use_cache=False).last_hidden_state
        state = self.after(state.to(rows.dtype).reshape(-1, self.hidden))
        sheet = batch.said_at // batch.length
        spoken = state[_to(at[sheet] + batch.said_at - old[sheet], device)]
        return self._said(batch, state[_to(at, device)], steps, spoken)

    def _said(self, batch: Batch, verdict: Tensor, steps: Tensor, spoken: Tensor) -> Said:
        if self.both is not None:
            verdict = nn.functional.gelu(self.both(torch.cat([verdict, steps], dim=1)))
        head = _to(batch.inputs.head, verdict.device).unsqueeze(1)
        words = spoken @ self.words.weight[: self.spoken].T
        items = {name: len(batch.items[name]) for name in batch.items}
        return Said(
            abnormal=self.abnormal(verdict).gather(1, head).squeeze(1),
            cause=self.cause(verdict).masked_fill(~self.present, NEVER),
            operator=verdict.new_zeros(items["suspects"] + items["pieces"]),
            rank=verdict.new_zeros(items["together"]),
            fact=verdict.new_zeros(items["facts"]),
            words=torch.cat([words, words.new_zeros(len(words), MOST_FACTS)], dim=1),
        )

    def _words(self, batch: Batch, device: torch.device) -> Tensor:
        given = _to(batch.given, device)
        return self.words(given.masked_fill(given >= self.spoken, 0))

    def _steps(self, batch: Batch, device: torch.device) -> Tensor:
        """[n, hidden]: one vector a step."""
        plain = Parts(parent=False, depth=self.streams == 2, durations=self.streams == 2)
        part = lessened(batch.inputs, plain).pieces
        items = self.embedding.items("pieces", part, device)
        owner = _to(owners(part), device)
        if self.streams == 2:
            above = _to(_above(batch.inputs.pieces), device)
            for layer in self.graph:
                items = nn.functional.gelu(layer(torch.cat([items, _beside(items, above)], dim=1)))
        total = items.new_zeros(len(batch.inputs), self.hidden).index_add(0, owner, items)
        many = torch.bincount(owner, minlength=len(batch.inputs)).clamp_min(1).unsqueeze(1)
        return total / many


def _beside(items: Tensor, above: Tensor) -> Tensor:
    """[p, hidden]: the mean over the items that each one hangs below or holds."""
    child = (above >= 0).nonzero().squeeze(1)
    parent = above[child]
    total = torch.zeros_like(items).index_add(0, child, items[parent]).index_add(0, parent, items[child])
    many = items.new_zeros(len(items)).index_add(0, child, items.new_ones(len(child)))
    many = many.index_add(0, parent, items.new_ones(len(child)))
    return total / many.clamp_min(1.0).unsqueeze(1)


def _above(part: Part) -> Int64:
    """int64: the item that each one hangs below, by depth: the last one before it that is one less deep; -1 for none."""
    depth, owner = part.codes[:, 0], owners(part)
    found = np.full(len(depth), -1, dtype=np.int64)
    last: dict[int, int] = {}
    for at, (deep, sheet) in enumerate(zip(depth.tolist(), owner.tolist(), strict=True)):
        if at and owner[at - 1] != sheet:
            last = {}
        found[at] = last.get(deep - 1, -1)
        last[deep] = at
    return found


def _log(part: Part, count: int) -> tuple[Int64, Int64, Int64, Int64]:
    """Hashed words of the lines of each sheet, at most MOST_LOG; the sheet and the place of each; how many each sheet has."""
    first, stop = part.words[part.offsets[:-1]], part.words[part.offsets[1:]]
    many = np.minimum(stop - first, MOST_LOG)
    owner = np.repeat(np.arange(count), many)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(many) - many, many)
    return part.bag[first[owner] + place].astype(np.int64), owner, place, many


def _to(given: "np.ndarray[tuple[int], np.dtype[Any]]", device: torch.device) -> Tensor:
    return torch.from_numpy(np.asarray(given, dtype=np.int64)).to(device)


def rebuilt(decoder: Any, hidden: int, symbols: int, words: int, shape: str) -> Network:
    """The network of the paper that ``shape`` names."""
    return Rebuilt(decoder, hidden, symbols, words, {TWO_STREAMS: 2, ONE_STREAM: 1}[shape])
