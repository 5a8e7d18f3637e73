"""What Trace Pair Encoding costs: CPU time beside byte-pair encoding by `tokenizers`, paired and alternated, and on long trees.

    python tests/bench/tpe_bench.py --traces DIR --work DIR [--sizes 256 1024 4096] [--long 1000000 5000000] [--rounds 5]

``--traces`` holds folders of Kineto traces, which are read, nested and cut into steps; ``--work`` gets what is made. Our
encoding includes its guard, which knows what is normal for each call. The peer encodes the same steps as a stream of two words
a span, its layer and its name. Each word is one character, the more frequent the fewer bytes; the words that its vocabulary has
no room for are unknown to it, as to ours. Its strings are ready-made, as the names of our trees are numbered; what making them
costs is printed. Neither uses a second thread. Imports, compilation and a first call of each are not counted, nor is what its
tokens cost as Python lists.
"""

# ruff: noqa: E402 - the checkout is put on the path first, and threads are counted
import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np

from teller_core.context.tpe.columns import self_times
from teller_core.context.tpe.guard import opened
from teller_core.context.tpe.structural import encode
from teller_core.context.tpe.train import LEAST_COUNT, learned, samples, train
from teller_core.context.tpe.vocabulary import Vocabulary, load
from teller_core.context.tpe.words import words
from teller_core.data.tree import Tree
from teller_core.ingest.kineto import reader as kineto
from teller_core.rebuild.nest import nest
from tests.bench.generate_kineto import generate
from tests.bench.tpe_study import Step, steps_of

BASE = "sglang_rocm_qwen3_8b_extend/extend.json.gz"
UNKNOWN = "\0"
LONG_SIZE = 1024
"""Symbols of what is learned from a long tree."""


def strings(trees: list[Tree]) -> list[str]:
    """What the peer is given: a string a tree."""
    found = [words(tree.trace) for tree in trees]
    counts: Counter[str] = Counter()
    for texts, of in found:
        for text, times in zip(texts, np.bincount(of).tolist(), strict=True):
            for part in text.split(" ", 1):
                counts[part] += times
    ranked = sorted(counts, key=lambda part: (-counts[part], part))
    sign = {part: chr(at + 33 if at + 33 < 0xD800 else at + 33 + 0x800) for at, part in enumerate(ranked)}
    made: list[str] = []
    for texts, of in found:
        pairs = ["".join(sign[part] for part in text.split(" ", 1)) for text in texts]
        made.append("".join([pairs[at] for at in of.tolist()]))
    return made


def peer(size: int, texts: list[str]) -> Any:
    """A tokenizer of the peer that has learned from ``texts``."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer

    tokenizer = Tokenizer(BPE(unk_token=UNKNOWN))
    trainer = BpeTrainer(
        vocab_size=size,
        min_frequency=LEAST_COUNT,
        limit_alphabet=size // 2 - 1,
        special_tokens=[UNKNOWN],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def peer_encode(tokenizer: Any, texts: list[str]) -> Callable[[], object]:
    """Encoding of all ``texts``, of which nothing is remembered from the round before."""

    def run() -> object:
        tokenizer.model._clear_cache()
        return tokenizer.encode_batch_fast(texts, add_special_tokens=False)

    return run


def cost(work: Callable[[], object]) -> float:
    """CPU seconds of ``work``."""
    began = time.process_time()
    work()
    return time.process_time() - began


def paired(what: str, one: Callable[[], object], other: Callable[[], object], rounds: int) -> None:
    """Run two in turn, after a first call of each, and print what they cost and how many times as much the second does."""
    one(), other()
    times = [(cost(one), cost(other)) for _ in range(rounds)]
    ratios = [b / a for a, b in times]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{what}: {1000 * first:.1f} ms, tokenizers {1000 * second:.1f} ms: ", end="")
    print(f"{statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def compare(steps: list[Step], size: int, rounds: int) -> Vocabulary:
    """Print both kinds of cost at a size of the vocabulary."""
    trees = [step.tree for step in steps]
    texts = strings(trees)
    vocabulary, tokenizer = learned(trees, size), peer(size, texts)

    def encoding() -> int:
        return sum(len(encode(s.tree, vocabulary, opened(s.tree, self_times(s.tree), s.normal)).tokens) for s in steps)

    theirs = sum(len(each.ids) for each in tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    print(f"vocabulary {size}: {len(vocabulary)}, of the peer {tokenizer.get_vocab_size()}; ", end="")
    print(f"{encoding():,} and {theirs:,} tokens")
    paired("  encoding", encoding, peer_encode(tokenizer, texts), rounds)
    paired("  training", lambda: learned(trees, size), lambda: peer(size, texts), min(2, rounds))
    return vocabulary


def long(path: Path, vocabulary: Vocabulary, rounds: int) -> None:
    """Print what encoding a whole trace as one tree costs in this process, learning from it, and its memory."""
    tree = nest(kineto.read(path))
    tokens = len(encode(tree, vocabulary).tokens)
    best = min(cost(lambda: encode(tree, vocabulary, opened(tree, self_times(tree)))) for _ in range(rounds))
    print(
        f"one tree of {len(tree):,} spans: {best:.2f} s, {1e9 * best / len(tree):.0f} ns a span, {tokens:,} tokens; ",
        end="",
    )
    print(f"peak of the process, reading included: {peak():,.0f} MB")
    began = time.process_time()
    whole = train(samples([tree]), LONG_SIZE)
    learning = time.process_time() - began
    print(
        f"  training, nothing light: {learning:.2f} s, {1e9 * learning / len(tree):.0f} ns a span; peak {peak():,.0f} MB"
    )
    tokens = len(encode(tree, whole).tokens)
    best = min(cost(lambda: encode(tree, whole)) for _ in range(rounds))
    print(
        f"  nothing light: {best:.2f} s, {1e9 * best / len(tree):.0f} ns a span, {tokens:,} tokens; peak {peak():,.0f} MB"
    )


def peak() -> float:
    """MB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--long", type=int, nargs="*", default=[1_000_000, 5_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", type=Path, help="only encode this trace as one tree, in this process")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    kept = chosen.work / "bench.tpe"
    if chosen.one:
        long(chosen.one, load(kept), min(3, chosen.rounds))
        return
    steps = [step for folder in sorted(chosen.traces.iterdir()) if folder.is_dir() for step in steps_of(folder)]
    trees = [step.tree for step in steps]
    print(
        f"{len(trees)} steps of {sum(map(len, trees)):,} spans; strings: {1000 * cost(lambda: strings(trees)):.0f} ms"
    )
    for size in chosen.sizes:
        compare(steps, size, chosen.rounds).write(kept)
    for events in chosen.long:
        path = chosen.work / f"long{events}.json.gz"
        if not path.exists():
            generate(chosen.traces / BASE, path, events)
        command = [sys.executable, __file__, "--one", path, "--traces", chosen.traces, "--work", chosen.work]
        subprocess.run([*map(str, command), "--rounds", str(chosen.rounds)], check=True)


if __name__ == "__main__":
    main()
