"""The network: any decoder of the transformers library over the positions of sheets, and heads where the verdict stands."""

# pyright: reportUnknownMemberType=false
# Of some of torch's functions not all types are known.

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from teller_core.data.sheet_parts import PARTS
from teller_core.data.table import Int32, Int64
from teller_core.model.classes import NONE, classes
from teller_core.model.inputs import HEADS, owners
from teller_core.model.laying import Batch
from teller_core.model.net.embedding import Embedding, Guess
from teller_core.model.options import OURS, Shape

OPERATORS = ("suspects", "pieces")
"""Parts in which a pointer looks for the operator to blame."""
MOST_FACTS = PARTS["facts"]
POINTED = 64
"""Width of what pointers compare."""
CALM = 3.0
"""Of a sheet that nothing speaks about, where training begins: rules must tell a cause to outweigh it."""
NEVER = -1e4
"""A logit of what cannot be: a cause that training never saw."""


@dataclass(frozen=True)
class Said:
    """What the network says of n sheets, in logits. ``abnormal`` [n]; ``cause`` [n, classes]; ``operator``, by item: those of
    suspects, then those of pieces; ``rank``: of ``together``; ``fact``; ``words`` [w, words + MOST_FACTS]: of the positions after
    which something is to be said, each word, then the citation of each fact of the sheet.
    """

    abnormal: Tensor
    cause: Tensor
    operator: Tensor
    rank: Tensor
    fact: Tensor
    words: Tensor


class Pointer(nn.Module):
    """How well each item answers what the verdict asks."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.ask, self.answer = nn.Linear(hidden, POINTED), nn.Linear(hidden, POINTED, bias=False)

    def forward(self, verdict: Tensor, items: Tensor, owner: Tensor) -> Tensor:
        """[n, hidden], [p, hidden], int64 [p] -> [p]."""
        return (self.ask(verdict)[owner] * self.answer(items)).sum(dim=-1) / POINTED**0.5


class Network(nn.Module):
    """``decoder`` takes ``inputs_embeds`` of width ``hidden`` and gives ``last_hidden_state``."""

    present: Tensor
    origin = ""
    """The hash of a decoder that somebody else trained, empty for our own."""

    def __init__(self, decoder: Any, hidden: int, symbols: int, words: int) -> None:
        super().__init__()
        self.decoder, self.hidden = decoder, hidden
        self.embedding = Embedding(hidden, symbols)
        self.verdict = nn.Parameter(torch.randn(hidden) * 0.05)
        self.spoken, self.words = words, nn.Embedding(max(words, 1), hidden)
        self.cite, self.cited = nn.Linear(hidden, POINTED), nn.Linear(hidden, POINTED, bias=False)
        self.after = nn.LayerNorm(hidden)
        self.guess = Guess(classes())
        self.abnormal, self.cause = nn.Linear(hidden, HEADS), nn.Linear(hidden, classes())
        self.operator, self.rank, self.fact = Pointer(hidden), Pointer(hidden), Pointer(hidden)
        self.register_buffer("present", torch.ones(classes(), dtype=torch.bool))
        nn.init.normal_(self.words.weight, std=0.05)
        for head in (self.abnormal, self.cause):
            nn.init.normal_(head.weight, std=0.01)
            nn.init.zeros_(head.bias)
        self.cause.bias.data[NONE] = CALM

    def forward(self, batch: Batch) -> Said:
        """What it says of each sheet of ``batch``."""
        rows, guess = self.embedded(batch)
        count = len(batch.inputs)
        given = rows.view(count, batch.length, self.hidden).to(self.decoder.dtype)
        state = self.decoder(inputs_embeds=given, use_cache=False).last_hidden_state
        return self.read(batch, self.after(state.to(rows.dtype).reshape(-1, self.hidden)), guess)

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """[n * length, hidden], and what is guessed before they are read [n, HEADS + classes]."""
        device, inputs, embedding = self.verdict.device, batch.inputs, self.embedding
        numbers = torch.from_numpy(inputs.numbers).to(device)
        clues = torch.from_numpy(inputs.clues).to(device)
        groups, bonus, parts = embedding.groups(numbers, clues, _moved(batch.place, device))
        head, tier = _moved(inputs.head, device), _moved(inputs.tier, device)
        asked = self.verdict + embedding.head(head) + embedding.tier(tier)
        items = {name: embedding.items(name, inputs.parts[name], device) for name in batch.items}
        found = [
            (batch.places, groups),
            (batch.verdict, asked),
            *((at, items[name]) for name, at in batch.items.items()),
        ]
        found.append((batch.words, self._given(batch, items["facts"], device)))
        at = _moved([each for each, _ in found], device)
        rows = torch.zeros(len(inputs) * batch.length, self.hidden, device=device)
        return rows.index_copy(0, at, torch.cat([each for _, each in found])), self.guess(parts, clues, bonus)

    def _given(self, batch: Batch, facts: Tensor, device: torch.device) -> Tensor:
        """[w, hidden] of what was said: a word, or the fact that was cited."""
        given = _moved(batch.given, device)
        cites = given >= self.spoken
        rows = self.words(given.masked_fill(cites, 0)).masked_fill(cites.unsqueeze(1), 0.0)
        cited = cites.nonzero().squeeze(1)
        first = _moved(batch.inputs.facts.offsets, device)[_moved(batch.words, device)[cited] // batch.length]
        return rows.index_add(0, cited, facts[first + given[cited] - self.spoken])

    def _next(self, batch: Batch, state: Tensor, facts: Tensor) -> Tensor:
        """[w, words + MOST_FACTS]: what may come after the positions that say something. ``facts``: the states of all facts."""
        device, part = state.device, batch.inputs.facts
        sheet = _moved(batch.said_at, device) // batch.length
        owner = _moved(owners(part), device)
        place = torch.arange(len(part), device=device) - _moved(part.offsets, device)[owner]
        slots = owner * MOST_FACTS + place
        keys = torch.zeros(len(batch.inputs) * MOST_FACTS, POINTED, device=device).index_copy(
            0, slots, self.cited(facts)
        )
        there = torch.zeros(len(keys), dtype=torch.bool, device=device).index_fill(0, slots, True)
        asked = self.cite(state).unsqueeze(2)
        score = torch.bmm(keys.view(-1, MOST_FACTS, POINTED)[sheet], asked).squeeze(2) / POINTED**0.5
        score = score.masked_fill(~there.view(-1, MOST_FACTS)[sheet], NEVER)
        return torch.cat([state @ self.words.weight[: self.spoken].T, score], dim=1)

    def read(self, batch: Batch, state: Tensor, guess: Tensor) -> Said:
        """The heads, at the states of all positions."""
        device, inputs = state.device, batch.inputs
        verdict = state[_moved(batch.verdict, device)]
        head = _moved(inputs.head, device).unsqueeze(1)
        cause = self.cause(verdict) + guess[:, HEADS:]
        operators = [batch.items[name] for name in OPERATORS]
        length = batch.length
        pointed = {
            "operator": (self.operator, _moved(operators, device)),
            "rank": (self.rank, _moved(batch.items["together"], device)),
            "fact": (self.fact, _moved(batch.items["facts"], device)),
        }
        scores = {name: pointer(verdict, state[at], at // length) for name, (pointer, at) in pointed.items()}
        return Said(
            abnormal=(self.abnormal(verdict) + guess[:, :HEADS]).gather(1, head).squeeze(1),
            cause=cause.masked_fill(~self.present, NEVER),
            words=self._next(batch, state[_moved(batch.said_at, device)], state[pointed["fact"][1]]),
            **scores,
        )


def _moved(given: Int64 | Int32 | list[Int64], device: torch.device) -> Tensor:
    """Positions as int64 on ``device``; of a list all of them, one behind the other."""
    whole = np.concatenate(given) if isinstance(given, list) else given
    return torch.from_numpy(whole.astype(np.int64, copy=False)).to(device)


def small(shape: Shape, symbols: int, words: int) -> Network:
    """The network of the shipped size: a decoder as Qwen3 has it, with weights by chance."""
    from transformers import Qwen3Config, Qwen3Model

    config = Qwen3Config(
        vocab_size=1,  # what it reads are vectors
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.head,
        max_position_embeddings=1024,
        use_cache=False,
    )
    decoder = Qwen3Model(config)
    if shape.kind == OURS:
        return Network(decoder, shape.hidden, symbols, words)
    from teller_core.model.net.paper import rebuilt

    return rebuilt(decoder, shape.hidden, symbols, words, shape.kind)
