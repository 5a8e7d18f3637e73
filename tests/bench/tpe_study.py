"""What Trace Pair Encoding keeps of a step: the paper's rule, ours, and ours with its guard, over vocabularies of 128 to 4,096.

    python tests/bench/tpe_study.py --traces DIR --captures DIR [--plot FILE.svg] [--choose]

``--traces`` holds folders of Kineto traces, one a producer, ``--captures`` recordings of this project. Vocabularies are learned
from the steps of some producers; everything is measured on steps of the others (HELD_OUT), by which no number was chosen. A
slow operator is made: its call takes K times as long, whoever comes after it begins that much later, and who called it waits.
It is *visible* if it is a token of its own. ``adds``: what share of its step it adds at least. ``--choose`` instead shows what
the share that is light was chosen by: how much the steps of each training producer shrink if only the others are learned from.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from teller_core.context.tpe import reference  # noqa: E402 - the checkout is put on the path first
from teller_core.context.tpe.guard import Normal, opened  # noqa: E402
from teller_core.context.tpe.structural import encode  # noqa: E402
from teller_core.context.tpe.train import learned, samples  # noqa: E402
from teller_core.context.tpe.vocabulary import Vocabulary  # noqa: E402
from teller_core.data.capture import Capture  # noqa: E402
from teller_core.data.table import Int64  # noqa: E402
from teller_core.data.trace import Layer  # noqa: E402
from teller_core.data.tree import Tree  # noqa: E402
from teller_core.errors import TellerError  # noqa: E402
from teller_core.ingest.reading import plan, read_trees  # noqa: E402
from teller_core.judge.baseline import MIN_SPANS, Spans, learn  # noqa: E402
from teller_core.judge.classes import classify  # noqa: E402
from teller_core.rebuild.capture import rebuild  # noqa: E402
from teller_core.rebuild.nest import nest  # noqa: E402

HELD_OUT = ("sglang_", "vllm_b200", "vllm_rocm", "hta_ns", "param_dlrm", "tfserve")
"""Producers on whose steps is measured: SGLang, vLLM on NVIDIA and on AMD, two trainings, transformers serve."""
SIZES = (128, 256, 512, 1024, 2048, 4096)
SLOWER = (1.2, 1.5, 2.0, 5.0)
ADDS = (0.05, 0.02)
"""Shares of a step: the first can be felt, the second is beneath what the guard promises."""
FAMILIES = ("vllm_", "tp_", "hta_missing")
"""Folders that begin alike are of one producer: this project's recordings of vLLM, of two ranks over Gloo; one training twice."""
SHARES = (1000, 500, 400, 300, 200, 100)
CHOSEN_AT = 1024
LEAST_ROWS, MOST_STEPS, MOST_SLOW = 20, 40, 8
"""Steps shorter than that are no steps; of one producer so many are taken, and of one step so many slow operators."""
WORK = (Layer.OPERATOR, Layer.RUNTIME, Layer.KERNEL, Layer.COMMUNICATION)


@dataclass(frozen=True)
class Step:
    """One step on one rank, with what is normal for its rows and, float64 a row, how wide that is (NaN where nobody knows)."""

    producer: str
    tree: Tree
    normal: Normal
    width: "np.ndarray[tuple[int], np.dtype[np.float64]]"


def steps_of(folder: Path) -> Iterator[Step]:
    """The steps that the files of ``folder`` hold."""
    for group in plan([folder]):
        try:
            read = read_trees(group, nest)
        except TellerError as error:
            print(f"{folder.name}: left out: {error}")
            continue
        capture = rebuild(read.recording, read.trees, capture_id="study", name=group.name)
        yield from steps_in(folder.name, capture)


def steps_in(producer: str, capture: Capture) -> Iterator[Step]:
    """The steps of ``capture``, which holds its trees."""
    baselines, ranks = learn(capture, classify(capture.steps, capture.work))
    width = np.where(baselines.count >= MIN_SPANS, baselines.spread, np.nan)
    for spans in ranks:
        mine = np.flatnonzero((capture.work.rank == spans.rank) & (capture.work.row >= 0))
        for low, high in zip(capture.work.row[mine].tolist(), capture.work.row_stop[mine].tolist(), strict=True):
            if high - low >= LEAST_ROWS:
                yield cut(producer, spans, width, low, high)


def cut(
    producer: str, spans: Spans, width: "np.ndarray[tuple[int], np.dtype[np.float64]]", low: int, high: int
) -> Step:
    """Rows ``low`` to ``high`` of a rank."""
    normal = Normal(spans.normal[low:high], spans.residual[low:high], spans.group[low:high])
    return Step(producer, spans.tree.part(low, high), normal, width[spans.baseline[low:high]])


def slowed(step: Step, own: Int64, row: int, times: float) -> Step:
    """``step`` had the call at ``row`` taken ``times`` as long."""
    tree, trace = step.tree, step.tree.trace
    more = int(own[row] * (times - 1))
    start, dur = trace.start.copy(), trace.dur.copy()
    start[start >= trace.end[row]] += more
    above = [row, *tree.ancestors(row)]
    waits = [each for each in above if trace.lane[each] == trace.lane[row]]
    start[above] = trace.start[above]
    dur[waits] += more
    residual = step.normal.residual.copy()
    residual[row] += np.log(times) / step.width[row]
    slower = Tree(replace(trace, start=start, dur=dur), tree.parent, tree.stop)
    return replace(step, tree=slower, normal=step.normal._replace(residual=residual))


@dataclass(frozen=True)
class Slow:
    """A slow operator: the step it is in, its row, how many times slower, and what it adds at least."""

    step: Step
    row: int
    times: float
    adds: float


def slow_operators(steps: Sequence[Step]) -> list[Slow]:
    """Slow operators drawn from ``steps``."""
    chance = random.Random(5)
    made: list[Slow] = []
    for step in steps:
        own = step.tree.self_time()
        work = np.isin(step.tree.trace.layer, np.array(WORK, dtype=np.uint8))
        for adds in ADDS:
            for times in SLOWER:
                able = np.flatnonzero(work & (own * (times - 1) >= adds * step.tree.trace.lasted)).tolist()
                rows = chance.sample(able, min(MOST_SLOW, len(able)))
                made += [Slow(slowed(step, own, row, times), row, times, adds) for row in rows]
    return made


def alone(vocabulary: Vocabulary, slow: Slow, guarded: bool) -> bool:
    """Whether the slow operator is a token of its own in ours."""
    tree = slow.step.tree
    tokens = encode(tree, vocabulary, opened(tree, tree.self_time(), slow.step.normal) if guarded else None).tokens
    at = int(np.searchsorted(tokens.low, slow.row, "right")) - 1
    return (int(tokens.low[at]), int(tokens.high[at])) == (slow.row, slow.row + 1)


def alone_in_rule(stream: reference.Stream, slow: Slow) -> bool:
    """Whether the slow operator's name is in a token of its own in the paper's rule."""
    tokens = reference.encode(slow.step.tree, stream)
    named = np.cumsum(tokens.spans)
    at = int(np.searchsorted(named, slow.row, "right"))
    return int(tokens.spans[at]) == 1 and int(tokens.row[at]) == slow.row


def share_visible(found: Sequence[tuple[Slow, bool]], times: float, adds: float) -> str:
    """The share of slow operators that are visible."""
    seen = [one for slow, one in found if (slow.times, slow.adds) == (times, adds)]
    return f"{100 * sum(seen) / len(seen):.1f}" if seen else "-"


def choose(known: dict[str, list[Step]]) -> None:
    """Print, by the share that is light, how much shorter the steps of a producer become that is not learned from."""
    family: dict[str, list[Tree]] = {}
    for name, steps in known.items():
        own = next((prefix for prefix in FAMILIES if name.startswith(prefix)), name)
        family.setdefault(own, []).extend(step.tree for step in steps)
    print(f"\n| light: one in | mean of producers, fewer % | {' | '.join(family)} |")
    print("|" + "---|" * (2 + len(family)))
    for share in SHARES:
        fewer: list[float] = []
        for name, trees in family.items():
            vocabulary = learned(
                [tree for other in family if other != name for tree in family[other]], CHOSEN_AT, share
            )
            tokens = sum(len(encode(tree, vocabulary).tokens) for tree in trees)
            fewer.append(100 * (1 - tokens / sum(map(len, trees))))
        print(
            f"| {share} | {sum(fewer) / len(fewer):.1f} | {' | '.join(f'{each:.1f}' for each in fewer)} |", flush=True
        )


METHODS = ("the paper's rule", "structural", "structural and guard")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--captures", type=Path, required=True)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--choose", action="store_true")
    chosen = parser.parse_args()
    folders = [path for root in (chosen.traces, chosen.captures) for path in sorted(root.iterdir()) if path.is_dir()]
    by_producer = {folder.name: list(steps_of(folder)) for folder in folders}
    taken = {name: found[:: -(-len(found) // MOST_STEPS) or 1] for name, found in by_producer.items() if found}
    if chosen.choose:
        choose({name: found for name, found in taken.items() if not name.startswith(HELD_OUT)})
        return
    test = [step for name, found in taken.items() if name.startswith(HELD_OUT) for step in found]
    known = [step.tree for name, found in taken.items() if not name.startswith(HELD_OUT) for step in found]
    events = sum(len(step.tree) for step in test)
    slow = slow_operators(test)
    print(
        f"learned from {len(known)} steps, {sum(map(len, known)):,} events; measured on {len(test)} steps, {events:,} events"
    )
    print(f"{len(slow)} slow operators: ", end="")
    print(
        ", ".join(f"{sum((s.times, s.adds) == (t, a) for s in slow)} x{t} adding {a:.0%}" for a in ADDS for t in SLOWER)
    )
    columns = [f"x{times} +{adds:.0%}" for adds in ADDS for times in SLOWER]
    print(f"\n| vocabulary | method | tokens a step | fewer, % | opened, % | {' | '.join(columns)} |")
    print("|" + "---|" * (5 + len(columns)))
    given = samples(known)
    drawn: list[tuple[int, str, float, float]] = []
    for size in SIZES:
        for method, tokens, open_, found in measured(size, known, given, test, slow):
            seen = [share_visible(found, times, adds) for adds in ADDS for times in SLOWER]
            fewer = 100 * (1 - tokens / events)
            cells = [f"{tokens / len(test):.0f}", f"{fewer:.1f}", f"{100 * open_ / tokens:.2f}", *seen]
            print(f"| {size} | {method} | {' | '.join(cells)} |", flush=True)
            drawn.append((size, method, tokens / len(test), float(share_visible(found, 2.0, ADDS[0]))))
    if chosen.plot:
        chosen.plot.write_text(plot(drawn), encoding="utf-8")


def measured(
    size: int, known: Sequence[Tree], given: Sequence[reference.Sample], test: Sequence[Step], slow: Sequence[Slow]
) -> Iterator[tuple[str, int, int, list[tuple[Slow, bool]]]]:
    """Of each method: its name, its tokens for ``test``, how many rows its guard opened there, and which slow ones are seen."""
    stream = reference.train(given, size)
    tokens = sum(len(reference.encode(step.tree, stream)) for step in test)
    yield METHODS[0], tokens, 0, [(each, alone_in_rule(stream, each)) for each in slow]
    vocabulary = learned(known, size)
    for method, guarded in ((METHODS[1], False), (METHODS[2], True)):
        yield method, *encoded(vocabulary, test, slow, guarded)


def encoded(
    vocabulary: Vocabulary, test: Sequence[Step], slow: Sequence[Slow], guarded: bool
) -> tuple[int, int, list[tuple[Slow, bool]]]:
    """Tokens for ``test``, how many rows the guard opened there, and which slow operators are seen."""
    masks = [opened(s.tree, s.tree.self_time(), s.normal) if guarded else np.zeros(len(s.tree), bool) for s in test]
    tokens = sum(len(encode(step.tree, vocabulary, mask).tokens) for step, mask in zip(test, masks, strict=True))
    return tokens, int(sum(mask.sum() for mask in masks)), [(each, alone(vocabulary, each, guarded)) for each in slow]


COLORS = dict(zip(METHODS, ("#b3541e", "#7a8ba3", "#1f6f5c"), strict=True))


def plot(drawn: Sequence[tuple[int, str, float, float]]) -> str:
    """Two panels as SVG: slow operators that stay visible, and tokens a step, over the size of the vocabulary."""
    most = max(tokens for _, _, tokens, _ in drawn)
    panels = (
        ("twice as slow, adding 5 % to its step: visible, %", 3, lambda value: value / 100, (0, 50, 100)),
        ("tokens a step", 2, lambda value: np.log10(max(value, 1)) / np.log10(most * 1.5), (1, 10, 100, 1000)),
    )
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 330" font-family="sans-serif" font-size="12">']
    parts.append('<rect width="860" height="330" fill="white"/>')
    for at, (title, column, scale, marks) in enumerate(panels):
        left = 50 + 430 * at
        parts.append(f'<text x="{left}" y="24" font-weight="bold">{title}</text>')
        for mark in (mark for mark in marks if scale(mark) <= 1):
            y = 270 - 230 * scale(mark)
            parts.append(f'<path d="M{left} {y:.1f}h360" stroke="#ddd"/>')
            parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{mark}</text>')
        xs = {size: left + 20 + 320 * i / (len(SIZES) - 1) for i, size in enumerate(SIZES)}
        parts += [f'<text x="{x:.0f}" y="290" text-anchor="middle">{size}</text>' for size, x in xs.items()]
        for method, color in COLORS.items():
            line = [(xs[row[0]], 270 - 230 * scale(row[column])) for row in drawn if row[1] == method]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.5"/>')
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in line]
    for at, (method, color) in enumerate(COLORS.items()):
        parts.append(f'<rect x="{50 + 180 * at}" y="305" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{68 + 180 * at}" y="315">{method}</text>')
    parts.append('<text x="800" y="315" text-anchor="end">symbols of the vocabulary</text></svg>\n')
    return "\n".join(parts)


if __name__ == "__main__":
    main()
