"""The vocabulary of Trace Pair Encoding: words, places for unknown ones, and merges, as one text file with its hash.

    teller-tpe 2
    learned from 3 recordings
    light 200
    buckets 4
    words 2
    operator aten::mm
    kernel ampere_sgemm
    merges 1
    absorb 0 2
    sha256 ...

What takes less than one in ``light`` of its step is light. A merge names a kind and two labels (twice a symbol, plus one for
a run) of symbols before it and makes the next symbol.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from teller_core.context.tpe.forest import ABSORB, EXTEND, JOIN, MOST_LABELS, Pairs, pairs_of
from teller_core.context.tpe.symbols import Symbols
from teller_core.context.tpe.words import LAYERS, bucket, is_word
from teller_core.data.table import Int64
from teller_core.errors import FormatError

HEAD = "teller-tpe 2"
KINDS = {"absorb": ABSORB, "extend": EXTEND, "join": JOIN}
MOST_BYTES = 4 << 20
MOST_SYMBOLS = 1 << 16
"""Far above what training is asked for: compiled loops take symbols for places in tables."""
LONGEST = 400
"""Characters of what a symbol stands for: later merges hold thousands of calls."""
Merge = tuple[int, int, int]


@dataclass(frozen=True)
class Vocabulary:
    """``words``, then ``buckets`` symbols a layer for unknown words, then one a layer for light pieces, then a symbol a merge
    (kind, left label, right label). ``share``: pieces that take less than one in so many of their step are light, 0 for none.
    """

    words: tuple[str, ...]
    buckets: int
    merges: tuple[Merge, ...]
    share: int = 0
    origin: str = "learned from nothing"
    """One line: what it was learned from."""

    @property
    def base(self) -> int:
        """How many symbols are no merges."""
        return self.light + len(LAYERS)

    @property
    def light(self) -> int:
        """The first symbol of light pieces, which have one for the layer of their first row."""
        return len(self.words) + self.buckets * len(LAYERS)

    def __len__(self) -> int:
        return self.base + len(self.merges)

    def check(self) -> None:
        """Raise ValueError where a word is none or stands twice, a number is out of all bounds, or a merge is not of symbols
        before it.
        """
        if min(self.share, self.buckets - 1) < 0 or max(self.share, self.buckets, len(self)) > MOST_SYMBOLS:
            raise ValueError("a number is out of bounds")
        if len(set(self.words)) < len(self.words) or not all(is_word(text) for text in self.words):
            raise ValueError("a word is none, or stands twice")
        for at, (_, left, right) in enumerate(self.merges, self.base):
            if not (0 <= left < 2 * at and 0 <= right < 2 * at):
                raise ValueError("a merge is not of symbols before it")

    @cached_property
    def number(self) -> dict[str, int]:
        """Symbol by known word."""
        return {text: at for at, text in enumerate(self.words)}

    def symbol(self, text: str) -> int:
        """The symbol of a word; of an unknown one that of its bucket."""
        at = self.number.get(text)
        return len(self.words) + bucket(text, self.buckets) if at is None else at

    @cached_property
    def symbols(self) -> Symbols:
        """The symbols of traces."""
        return Symbols(self.symbol)

    @cached_property
    def pairs(self) -> Pairs:
        """The merges as tables of pairs, which nobody changes: numbers are ranks."""
        return pairs_of(keys_of(self.merges), len(self))

    def first(self, size: int) -> "Vocabulary":
        """The vocabulary with only so many merges that it has at most ``size`` symbols, with none where it has more without."""
        return replace(self, merges=self.merges[: max(0, size - self.base)])

    @cached_property
    def texts(self) -> list[str]:
        """What each symbol stands for, in words."""
        unknown = [f"unknown {layer} {i}" for layer in LAYERS for i in range(self.buckets)]
        shown = [*(text.partition(" ")[2] for text in self.words), *unknown, *(f"light {layer}" for layer in LAYERS)]

        def label(number: int) -> str:
            return f"[{shown[number >> 1]}]+" if number & 1 else shown[number >> 1]

        for kind, left, right in self.merges:
            one, other = label(left), label(right)
            text = f"{one} {other}" if kind == JOIN else f"{one}({other})" if kind == ABSORB else f"{one}({other} ...)"
            shown.append(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")
        return shown

    @cached_property
    def text(self) -> str:
        """The file, but for its last line."""
        kinds = {number: name for name, number in KINDS.items()}
        lines = [
            HEAD,
            self.origin,
            f"light {self.share}",
            f"buckets {self.buckets}",
            f"words {len(self.words)}",
            *self.words,
        ]
        lines += [f"merges {len(self.merges)}", *(f"{kinds[k]} {a} {b}" for k, a, b in self.merges)]
        return "\n".join(lines) + "\n"

    @cached_property
    def hash(self) -> str:
        """Which vocabulary it is."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def write(self, path: Path) -> None:
        """Write the file, and beside it ``.txt``, which is for people alone: what each merge stands for."""
        path.write_text(f"{self.text}sha256 {self.hash}\n", encoding="utf-8")
        path.with_suffix(".txt").write_text(described(self), encoding="utf-8")


def keys_of(merges: Sequence[Merge]) -> Int64:
    """int64 [merges]: the key of each, as :func:`forest.key_of` makes it."""
    table = np.array(merges, dtype=np.int64).reshape(-1, 3)
    return (table[:, 0] << 60) | (table[:, 1] << 30) | table[:, 2]


def parts_of(key: int) -> Merge:
    """The merge that has this key."""
    return key >> 60, (key >> 30) & (MOST_LABELS - 1), key & (MOST_LABELS - 1)


def load(path: Path) -> Vocabulary:
    """The vocabulary in a file. Raises FormatError where it is none, or is not what its hash says."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode("utf-8")
        body, _, last = text.rstrip("\n").rpartition("\n")
        made = _parsed(body.split("\n"))
        made.check()
    except (OSError, ValueError, KeyError, IndexError):
        raise FormatError("the vocabulary", "it is no file of a vocabulary", "Name one that training wrote") from None
    if last != f"sha256 {made.hash}":
        raise FormatError("the vocabulary", "its hash does not fit its content", "Train it again")
    return made


def _parsed(lines: list[str]) -> Vocabulary:
    if lines[0] != HEAD:
        raise ValueError("no vocabulary")
    share, buckets, words = (int(line.partition(" ")[2]) for line in lines[2:5])
    merges = tuple((KINDS[k], int(a), int(b)) for k, a, b in (line.split(" ") for line in lines[6 + words :]))
    return Vocabulary(tuple(lines[5 : 5 + words]), buckets, merges, share, lines[1])


def described(vocabulary: Vocabulary) -> str:
    """One line a symbol: what it stands for. ``a(b c)``: b and c below a; ``a(b ...)``: more may hang there; ``[a]+``: a run."""
    return "".join(f"{at}\t{line}\n" for at, line in enumerate(vocabulary.texts))
