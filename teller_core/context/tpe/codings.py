"""Ways to make tokens of a step, to be compared: ours with and without its guard, and the published rule."""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from teller_core.context.tpe import reference
from teller_core.context.tpe.of_steps import step_tokens
from teller_core.context.tpe.structural import encode
from teller_core.context.tpe.vocabulary import Vocabulary
from teller_core.data.linked import StepSpans
from teller_core.data.table import Int32
from teller_core.data.tokens import Tokens
from teller_core.data.tree import Tree


class Coding(NamedTuple):
    """``hash``: which one it is, vocabulary and rule; ``tokens`` of a step on one rank, of which some rows of the rank's tree are
    suspected.
    """

    hash: str
    tokens: Callable[[StepSpans, Int32], Tokens]


def guarded(vocabulary: Vocabulary) -> Coding:
    """Ours: what is suspected, or takes a share that can be felt, is a token of its own."""

    def tokens(spans: StepSpans, suspects: Int32) -> Tokens:
        return step_tokens(spans, suspects, vocabulary)[0].tokens

    return Coding(vocabulary.hash, tokens)


def unguarded(vocabulary: Vocabulary) -> Coding:
    """Ours, but any row may be swallowed."""
    named = hashlib.sha256(f"without guard {vocabulary.hash}".encode()).hexdigest()

    def tokens(spans: StepSpans, suspects: Int32) -> Tokens:
        return encode(spans.tree, vocabulary).tokens

    return Coding(named, tokens)


def published(stream: reference.Stream) -> Coding:
    """The published rule."""
    named = hashlib.sha256(f"{stream.words} {stream.merges}".encode("utf-8", "surrogatepass")).hexdigest()

    def tokens(spans: StepSpans, suspects: Int32) -> Tokens:
        return stream_tokens(spans.tree, stream)

    return Coding(named, tokens)


def stream_tokens(tree: Tree, stream: reference.Stream) -> Tokens:
    """The rule's tokens in the columns of ours. A token hangs below the one that holds the parent of its first span; its time is
    that of its spans together, nested time counted again, as the rule has it.
    """
    found = reference.encode(tree, stream)
    row, count = found.row, len(found)
    above = tree.parent[row]
    holder = np.searchsorted(row, above, "right").astype(np.int32) - np.int32(1)
    stop = np.append(row[1:], np.int32(len(tree)))[:count].astype(np.int32)
    start = tree.trace.start[row] - tree.trace.start[0] if count else np.empty(0, np.int64)
    return Tokens(
        symbol=found.symbol,
        run=np.ones(count, np.int32),
        parent=np.where(above >= 0, holder, np.int32(-1)).astype(np.int32),
        depth=found.depth.astype(np.int32),
        low=row,
        high=np.maximum(stop, row + 1).astype(np.int32),
        own=found.dur,
        largest=found.dur,
        where=row,
        start=start,
    )
