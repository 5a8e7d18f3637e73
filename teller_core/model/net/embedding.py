"""How each part of a sheet becomes vectors of the decoder's width."""

# pyright: reportUnknownMemberType=false
# Of some of torch's functions not all types are known.

import numpy as np
import torch
from torch import Tensor, nn

from teller_core.data.sheets import CLUE, NUMBERS, cause_ids
from teller_core.model.inputs import HEADS, Part
from teller_core.model.laying import GROUP_OF, LAYER_NAMES, LAYER_OF, PLACES
from teller_core.model.preparing import BUCKETS, CODES, VALUES

BINS = 8
"""Of a number: piecewise linear encoding (Gorishniy, Rubachev and Babenko 2022) over quantiles of the training side."""
FEATURES = len(CLUE) + 3
"""Of a clue: its three numbers, the root of the cost, whether it is known, and whether it saw something."""

AS_RULES = (1.0, 1.0, 4.0, 1.0, 0.0, 0.0)
"""Of each of them, where training begins: what rules would tell comes first, then what cost most."""


class Numbers(nn.Module):
    """Groups of numbers. Each number has ``BINS`` parts of its range, each full, empty or the part it lies in."""

    low: Tensor
    width: Tensor
    group: Tensor

    def __init__(self, hidden: int) -> None:
        super().__init__()
        count = len(NUMBERS)
        self.weight = nn.Parameter(torch.randn(count, BINS + 1, hidden) * 0.05)
        self.register_buffer("low", torch.zeros(count, BINS))
        self.register_buffer("width", torch.ones(count, BINS))
        self.register_buffer("group", torch.from_numpy(GROUP_OF.copy()), persistent=False)

    def parts(self, value: Tensor) -> Tensor:
        """[n, N] -> [n, N, BINS + 1]: how full each part of a number's range is, and whether the number is known; else all 0."""
        known = ~value.isnan()
        parts = ((value.nan_to_num(0.0).unsqueeze(-1) - self.low) / self.width).clamp(0.0, 1.0)
        return torch.cat([parts, torch.ones_like(parts[..., :1])], dim=-1) * known.unsqueeze(-1)

    def forward(self, full: Tensor) -> Tensor:
        """What :meth:`parts` gives -> [n, groups, hidden]."""
        each = torch.bmm(full.transpose(0, 1), self.weight).transpose(0, 1)
        groups = each.new_zeros(len(full), int(self.group[-1]) + 1, each.shape[-1])
        return groups.index_add(1, self.group, each)


def features(clues: Tensor) -> Tensor:
    """[n, causes, CLUE] -> [n, causes, FEATURES]: no NaN."""
    known = ~clues[..., :1].isnan()
    clean = clues.nan_to_num(0.0).clamp(0.0, 4.0)
    cost = clean[..., :1]
    return torch.cat([clean, cost.sqrt(), known.to(clean.dtype), (cost > 0.0).to(clean.dtype)], dim=-1)


class Clues(nn.Module):
    """What the rules say: a vector for each layer of causes, and a bonus for each cause, learned from all together: one that is
    rarely seen is told as the others are. Before anything is learned, the bonus ranks causes as the rules do.
    """

    layer: Tensor

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(len(cause_ids()), FEATURES, hidden) * 0.05)
        self.first, last = nn.Linear(FEATURES, 1), nn.Linear(16, 1)
        self.bonus = nn.Sequential(nn.Linear(FEATURES, 16), nn.GELU(), last)
        self.first.weight.data[:] = torch.tensor(AS_RULES)
        for each in (self.first.bias, last.weight, last.bias):
            nn.init.zeros_(each)
        self.register_buffer("layer", torch.from_numpy(LAYER_OF.copy()), persistent=False)

    def forward(self, clues: Tensor) -> tuple[Tensor, Tensor]:
        """[n, causes, CLUE] -> [n, layers, hidden], [n, causes]."""
        given = features(clues)
        each = torch.bmm(given.transpose(0, 1), self.weight).transpose(0, 1)
        layers = each.new_zeros(len(clues), len(LAYER_NAMES), each.shape[-1]).index_add(1, self.layer, each)
        return layers, (self.first(given) + self.bonus(given)).squeeze(-1)


class Items(nn.Module):
    """The items of one ragged part: codes, words, values. ``symbols``: columns behind the codes that are symbols of Trace Pair
    Encoding; the last of two is the parent's, which enters through a gate of its own: a pointer embedding.
    """

    def __init__(self, name: str, hidden: int, symbols: int) -> None:
        super().__init__()
        self.codes = nn.ModuleList(nn.Embedding(most + 1, hidden) for _, most in CODES[name])
        self.values = nn.Sequential(nn.Linear(2 * VALUES[name], 48), nn.GELU(), nn.Linear(48, hidden))
        self.kind = nn.Parameter(torch.zeros(hidden))
        self.parent = nn.Linear(hidden, hidden, bias=False) if symbols == 2 else None
        self.symbols = symbols
        for table in self.codes:
            _small(table)

    def forward(self, codes: Tensor, values: Tensor, words: Tensor, symbol: nn.Embedding) -> Tensor:
        """[p, c], [p, v], [p, hidden] -> [p, hidden]."""
        known = ~values.isnan()
        total = self.kind + words + self.values(torch.cat([values.nan_to_num(0.0), known.to(values.dtype)], dim=-1))
        for column, table in enumerate(self.codes):
            total = total + table(codes[:, column] + 1)
        if self.symbols:
            known = codes[:, len(self.codes) :] + 1
            known = known * (known < symbol.num_embeddings)  # one that was never seen is as good as none
            total = total + symbol(known[:, 0])
            if self.parent is not None:
                total = total + self.parent(symbol(known[:, 1]))
        return total


class Embedding(nn.Module):
    """All that stands before the words, as one row a position."""

    def __init__(self, hidden: int, symbols: int) -> None:
        super().__init__()
        self.numbers, self.clues = Numbers(hidden), Clues(hidden)
        self.place = nn.Embedding(PLACES, hidden)
        self.symbol = nn.Embedding(symbols + 1, hidden)
        self.bag = nn.EmbeddingBag(BUCKETS, hidden, mode="mean", include_last_offset=True)
        self.parts = nn.ModuleDict(
            {name: Items(name, hidden, {"suspects": 1, "pieces": 2}.get(name, 0)) for name in CODES}
        )
        self.head = nn.Embedding(HEADS, hidden)
        self.tier = nn.Embedding(5, hidden)
        for table in (self.place, self.symbol, self.bag, self.head, self.tier):
            _small(table)

    def groups(self, numbers: Tensor, clues: Tensor, place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[places, hidden] of those that are known; the bonus of each cause [n, causes]; the numbers in parts."""
        layers, bonus = self.clues(clues)
        parts = self.numbers.parts(numbers)
        every = torch.cat([self.numbers(parts), layers], dim=1).flatten(0, 1)
        return every[place] + self.place(place % PLACES), bonus, parts

    def items(self, name: str, part: Part, device: torch.device) -> Tensor:
        """[p, hidden] of the items of one part."""
        given = [part.codes.astype(np.int64), part.values, part.bag.astype(np.int64), part.words]
        codes, values, bag, words = (torch.from_numpy(each).to(device) for each in given)
        said = self.bag(bag, words) if len(part.bag) else values.new_zeros(len(part), self.bag.embedding_dim)
        return self.parts[name](codes, values, said, self.symbol)


def _small(table: nn.Module) -> None:
    assert isinstance(table, nn.Embedding | nn.EmbeddingBag)
    nn.init.normal_(table.weight, std=0.05)


class Guess(nn.Module):
    """What numbers and rules say without anything else: a straight line over the parts of all numbers, and the rules' word. What
    the decoder finds is added to it, so that training begins where numbers and rules end.
    """

    def __init__(self, causes: int) -> None:
        super().__init__()
        self.wide = nn.Linear(len(NUMBERS) * (BINS + 1), HEADS + causes, bias=False)
        self.alarm = nn.Linear(2, HEADS)
        nn.init.zeros_(self.wide.weight)
        self.alarm.weight.data[:] = torch.tensor([3.0, 1.0])
        nn.init.constant_(self.alarm.bias, -2.0)

    def forward(self, parts: Tensor, clues: Tensor, bonus: Tensor) -> Tensor:
        """[n, HEADS + classes]: of the abnormal scores, then of the causes."""
        loudest = clues.nan_to_num(0.0).clamp(0.0, 1.0).amax(dim=1)[:, [CLUE.index("told"), CLUE.index("cost")]]
        straight = self.wide(parts.flatten(1))
        first = straight.shape[1] - bonus.shape[1] - HEADS
        return straight + torch.cat([self.alarm(loudest), nn.functional.pad(bonus, (first, 0))], dim=1)


def bins(values: "np.ndarray[tuple[int, int], np.dtype[np.float32]]") -> tuple["np.ndarray", "np.ndarray"]:
    """float32 [N, BINS] twice: where the parts of each number's range begin, and how wide they are. Learned from the rows of
    ``values``; what is 0 for many is told apart from what is not.
    """
    low = np.full((values.shape[1], BINS), np.float32(1e30))
    width = np.ones_like(low)
    for column, value in enumerate(values.T):
        edges = _edges(value[~np.isnan(value)])
        low[column, : len(edges) - 1] = edges[:-1]
        width[column, : len(edges) - 1] = np.diff(edges)
    return low, width


def _edges(known: "np.ndarray") -> "np.ndarray":
    """float32, ascending: at most BINS + 1, at least one."""
    if not len(known):
        return np.zeros(1, dtype=np.float32)
    shares = np.linspace(0.0, 1.0, BINS + 1)
    found = np.quantile(known, shares)
    zero = (known == 0.0).mean()
    if zero > 1.0 / BINS and zero < 1.0:
        found = np.concatenate([[0.0], np.quantile(known[known != 0.0], shares[1:])])
    return np.unique(found.astype(np.float32))
