"""Writes out a hash of vocabularies and tokens of some made trees: the same in every process, however it was started."""

import hashlib
import random
import sys
from dataclasses import fields

import numpy as np

from teller_core.context.tpe import reference, train
from teller_core.context.tpe.columns import self_times
from teller_core.context.tpe.guard import Normal, opened
from teller_core.context.tpe.structural import decode, encode
from tests.core.context.tpe.forests import NAMES, tree_of


def rows_of(draw: random.Random, most: int) -> list[tuple[int, int]]:
    """(name, parent) of each row, in pre-order, with parts that repeat."""
    rows: list[tuple[int, int]] = [(draw.randrange(len(NAMES)), -1)]
    while len(rows) < most:
        path = [len(rows) - 1]
        while path[-1] >= 0:
            path.append(rows[path[-1]][1])
        above = draw.choice(path[:-1])
        rows += [(draw.randrange(2), above), *[(2, len(rows))] * draw.randrange(3)]
    return rows


def main() -> None:
    """Train, encode and decode, and hash all that comes of it."""
    draw = random.Random(1)
    drawn = [rows_of(draw, 40) for _ in range(6)]
    trees = [tree_of(rows, [draw.randrange(1 << 40) for _ in rows]) for rows in drawn]
    given = train.samples(trees[:4])
    vocabulary, stream = train.learned(trees[:4], 64, share=16), reference.train(given, 24)
    digest = hashlib.sha256(vocabulary.text.encode() + repr(stream.merges).encode())
    for tree in trees:
        drawn_of = np.array([draw.random() for _ in range(len(tree))], dtype=np.float32)
        normal = Normal(20 + 8 * drawn_of, 5 * drawn_of, tree.trace.name)
        encoded = encode(tree, vocabulary, opened(tree, self_times(tree), normal))
        tables = (encoded.tokens, reference.encode(tree, stream))
        for column in (
            *(getattr(table, f.name) for table in tables for f in fields(table)),
            encoded.told,
            *(getattr(encoded.inside, name) for name in ("rows", "name", "layer", "above")),
        ):
            digest.update(f"{column.dtype} {column.shape}".encode() + column.tobytes())
        digest.update(repr((encoded.unseen, decode(encoded, vocabulary))).encode())
    sys.stdout.write(digest.hexdigest())


if __name__ == "__main__":
    main()
