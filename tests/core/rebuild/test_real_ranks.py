"""The eight ranks of a real DLRM training step, against their raw JSON read with nothing of ours."""

import gzip
import json
from collections import defaultdict
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from teller_core.data.capture import Capture
from teller_core.data.table import UNKNOWN
from teller_core.ingest.reading import plan, read_group
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.nest import nest

FOLDER = Path(__file__).parents[4] / "shared" / "traces" / "kineto" / "param_dlrm_8rank_v100"
SAME_MACHINE_US = 50
NAMED = {0: 7, 1: 7, 2: 7, 3: 7, 4: None, 5: 5, 6: None, 7: 4}
"""Which rank came last to each collective of the step, in their order; None where 50 us do not tell."""

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the traces of other projects are not here")


def raw() -> list[list[tuple[int, int]]]:
    """Start and end in us of the NCCL kernels of each rank, by time."""
    ranks: dict[int, list[tuple[int, int]]] = {}
    for path in FOLDER.iterdir():
        document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
        kernels = [e for e in document["traceEvents"] if e.get("cat") == "kernel" and "nccl" in e["name"]]
        ranks[document["distributedInfo"]["rank"]] = sorted((e["ts"], e["ts"] + e["dur"]) for e in kernels)
    return [ranks[rank] for rank in sorted(ranks)]


def upper_bounds(ranks: list[list[tuple[int, int]]]) -> dict[tuple[int, int], int]:
    """(a, b): the most, in us, that must be added to the clock of b beyond that of a. Bellman-Ford style, to the end."""
    n = range(len(ranks))
    bound = {(a, b): 0 if a == b else SAME_MACHINE_US for a in n for b in n}
    for a, b in permutations(n, 2):
        # A time in whole us is cut off: the true end may be 2 us later.
        ends = (own[1] + 2 - other[0] for own, other in zip(ranks[a], ranks[b], strict=True))
        bound[a, b] = min(bound[a, b], *ends)
    changed = True
    while changed:
        changed = False
        for a, b, c in permutations(n, 3):
            if bound[a, b] + bound[b, c] < bound[a, c]:
                bound[a, c], changed = bound[a, b] + bound[b, c], True
    return bound


def last_of(collective: list[tuple[int, int]], bound: dict[tuple[int, int], int]) -> int | None:
    """The rank that surely began after all others."""
    for rank, (start, _) in enumerate(collective):
        others = [k for k in range(len(collective)) if k != rank]
        if all(start - collective[k][0] > bound[rank, k] + 1 for k in others):
            return rank
    return None


@pytest.fixture(scope="module")
def capture() -> Capture:
    recording = read_group(plan([FOLDER])[0])
    trees = [nest(trace) for _, trace in recording.traces]
    recording.traces[:] = [(file, tree.trace) for (file, _), tree in zip(recording.traces, trees, strict=True)]
    made = rebuild(recording, trees, capture_id="c", name="dlrm")
    made.check()
    return made


def test_the_clocks_of_eight_ranks_meet_all_constraints_of_their_collectives(capture: Capture) -> None:
    ranks = raw()
    shift = [rank.shift // 1000 for rank in capture.ranks]
    assert [rank.rank for rank in capture.ranks] == list(range(8))
    for a, b in permutations(range(8), 2):
        for own, other in zip(ranks[a], ranks[b], strict=True):
            assert other[0] + shift[b] <= own[1] + 2 + shift[a]
    assert [rank.clock_error for rank in capture.ranks] == [0, *[SAME_MACHINE_US * 1000] * 7]


def test_the_last_rank_of_each_collective_is_named_where_it_may_be(capture: Capture) -> None:
    ranks = raw()
    bound = upper_bounds(ranks)
    truth = {k: last_of([rank[k] for rank in ranks], bound) for k in range(8)}
    assert truth == NAMED
    by_sequence: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    table = capture.collectives
    for sequence, start, late in zip(table.sequence.tolist(), table.start.tolist(), table.late.tolist(), strict=True):
        by_sequence[sequence].append((start, late))
    order = sorted(by_sequence.values(), key=min)
    assert [len(of) for of in order] == [8] * 8
    assert {k: of[0][1] for k, of in enumerate(order)} == {k: -1 if who is None else who for k, who in NAMED.items()}
    assert capture.meetings.kind.count("all_to_all") == 5
    assert capture.meetings.kind.count("all_reduce") == 3


def test_a_wait_lasts_until_the_last_one_came(capture: Capture) -> None:
    ranks = raw()
    table = capture.collectives
    first = [k for k in range(len(table.rank)) if table.start[k] < 1_694_128_201_432_000_000]
    assert len(first) == 8
    for k in first:
        rank = int(table.rank[k])
        waited = (ranks[7][0][0] - ranks[rank][0][0]) * 1000
        assert table.wait[k] == waited


def test_two_of_128_ranks_tell_nothing_of_who_was_late() -> None:
    folder = FOLDER.parent / "hta_sampled_2of128"
    recording = read_group(plan([folder])[0])
    trees = [nest(trace) for _, trace in recording.traces]
    recording.traces[:] = [(file, tree.trace) for (file, _), tree in zip(recording.traces, trees, strict=True)]
    made = rebuild(recording, trees, capture_id="c", name="sampled")
    assert made.collectives.late.max() == -1
    assert (made.collectives.wait == UNKNOWN).all()
    assert made.ranks[1].clock_error > 10**6
