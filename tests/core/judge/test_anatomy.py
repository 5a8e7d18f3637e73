"""Slow profiled steps tell how they were slow, and a few of them tell it of all that were slow in the same way."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.capture import Capture, Collectives
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge.anatomy import Way, grown, slow_way, suspects
from teller_core.judge.assess import assess
from teller_core.judge.prepare import prepare
from tests.core.judge.service import MS, US, Work, service

STRUCK = range(8, 14)


def way_of(fault: Work, *, struck: int = 6, of: int = 24, since: int = 8) -> tuple[str, str] | None:
    """Of so many profiled decode steps: the way in which slow ones were slow, and the operator."""
    steps = [fault if since <= at < since + struck else Work() for at in range(of)]
    made = service(steps)
    numbers = assess(made)
    calm = int(np.median(numbers.steps.took))
    even = replace(numbers, steps=replace(numbers.steps, expected=np.full(len(steps), calm)))
    found = slow_way(prepare(made, even))
    return None if found is None else (found.kind, found.operator)


@pytest.mark.parametrize(
    ("fault", "way"),
    [
        (Work(repeat=4), ("operator", "aten::addmm")),
        (Work(slow={"aten::sdpa": 12.0}), ("operator", "aten::sdpa")),
        (Work(slow={"aten::addmm": 2.5}), ("weights", "")),
        (Work(gap=2 * MS), ("one silence", "")),
        (Work(pauses=20), ("silences", "")),
        (Work(), None),
    ],
)
def test_what_slow_profiled_steps_have_more_is_how_they_are_slow(fault: Work, way: tuple[str, str] | None) -> None:
    assert way_of(fault) == way


def test_what_most_steps_repeat_is_told_by_the_few_that_do_not() -> None:
    assert way_of(Work(repeat=4), struck=60, of=70) == ("operator", "aten::addmm")
    assert way_of(Work(gap=2 * MS), struck=60, of=70) is None


def test_silences_that_are_hardly_longer_are_chance() -> None:
    assert way_of(Work(gap=600 * US)) is None


def test_one_slow_step_is_chance() -> None:
    assert way_of(Work(gap=2 * MS), struck=1) is None


@pytest.mark.parametrize(("struck", "way"), [(2, None), (3, ("one silence", ""))])
def test_the_first_steps_of_a_profile_are_slow_where_one_that_it_only_watches_is_as_slow(
    struck: int, way: tuple[str, str] | None
) -> None:
    assert way_of(Work(gap=20 * MS), struck=struck, since=0) == way


def test_slow_steps_that_do_not_agree_say_nothing() -> None:
    faults = [Work(gap=2 * MS), Work(pauses=20), Work(slow={"aten::sdpa": 12.0})]
    steps = [faults[at % 3] if at in STRUCK else Work() for at in range(24)]
    made = service(steps)
    numbers = assess(made)
    even = replace(numbers, steps=replace(numbers.steps, expected=np.full(24, int(np.median(numbers.steps.took)))))
    assert slow_way(prepare(made, even)) is None


def test_silences_in_other_places_are_those_of_who_is_set_aside() -> None:
    made = service([Work(gap=2 * MS) if at in STRUCK else Work() for at in range(24)])
    tree = made.ranks[0].tree
    assert tree is not None
    rows = made.work.row[[9, 11, 13]]  # the silence of every other slow step becomes one before all of its operators
    trace = tree.trace
    start, dur = trace.start.copy(), trace.dur.copy()
    for low, high in zip(rows.tolist(), made.work.row_stop[[9, 11, 13]].tolist(), strict=True):
        inside = slice(low + 1, high)
        first = int(start[low + 1])
        before = np.maximum(start[inside] - first, 0)
        start[inside] = np.where(before > 2 * MS, start[inside], start[inside] + 2 * MS)
    moved = replace(
        made, ranks=[replace(made.ranks[0], tree=replace(tree, trace=replace(trace, start=start, dur=dur)))]
    )
    numbers = assess(moved)
    even = replace(numbers, steps=replace(numbers.steps, expected=np.full(24, int(np.median(numbers.steps.took)))))
    assert slow_way(prepare(moved, even)) is None


def test_steps_that_all_take_alike_have_no_way() -> None:
    assert way_of(Work(gap=100 * US), struck=24) is None


@pytest.mark.parametrize(("met", "way"), [((0, 1), "collectives"), ((0,), None)])
def test_longer_in_collectives_are_all_ranks_or_those_who_wait_for_another(
    met: tuple[int, ...], way: str | None
) -> None:
    made = service([Work(gap=2 * MS) if at in STRUCK else Work() for at in range(24)], ranks=2)
    found = found_in(in_collectives(made, STRUCK, met))
    assert (found.kind if found else None) == way


def in_collectives(made: Capture, steps: Iterable[int], ranks: tuple[int, ...]) -> Capture:
    """``made`` with those ranks in collectives for all of these steps."""
    struck = np.flatnonzero(np.isin(made.work.step, list(steps)) & np.isin(made.work.rank, ranks))
    none = np.full(len(struck), -1, np.int32)
    table = Collectives(
        group=none,
        sequence=made.work.step[struck].astype(np.int64),
        step=made.work.step[struck],
        rank=made.work.rank[struck],
        row=none,
        start=made.work.start[struck],
        dur=made.work.stop[struck] - made.work.start[struck],
        wait=none.astype(np.int64),
        late=none,
    )
    return replace(made, collectives=table)


def found_in(made: Capture) -> Way | None:
    numbers = assess(made)
    steps = len(made.steps.number)
    even = replace(numbers, steps=replace(numbers.steps, expected=np.full(steps, int(np.median(numbers.steps.took)))))
    return slow_way(prepare(made, even))


@pytest.mark.parametrize(("pids", "way"), [((7, 7), None), ((7, 8), "collectives"), ((0, 0), "collectives")])
def test_two_recordings_of_one_process_are_not_all_ranks(pids: tuple[int, int], way: str | None) -> None:
    made = service([Work(gap=2 * MS) if at in STRUCK else Work() for at in range(24)], ranks=2)
    ranks = [replace(rank, pid=pid) for rank, pid in zip(made.ranks, pids, strict=True)]
    found = found_in(replace(in_collectives(made, STRUCK, (0, 1)), ranks=ranks))
    assert (found.kind if found else None) == way
    assert found is None or found.steps.tolist() == [*STRUCK]


def test_one_slow_step_is_chance_on_two_ranks_as_well() -> None:
    made = service([Work(gap=2 * MS) if at == 8 else Work() for at in range(24)], ranks=2)
    step, rank = made.work.step, made.work.rank
    seen = np.where(rank == 0, step <= 8, step >= 8)  # the one ends with it, the other one begins with it
    row, stop = (np.where(seen, column, -1).astype(np.int32) for column in (made.work.row, made.work.row_stop))
    assert found_in(replace(made, work=replace(made.work, row=row, row_stop=stop))) is None


def test_a_step_that_two_recordings_of_a_process_have_is_told_by_the_one_with_more_operators() -> None:
    steps = [Work(slow={"aten::sdpa": 12.0}) if at in STRUCK else Work() for at in range(24)]
    once, twice = service(steps, noise=0.0), service(steps, ranks=2, noise=0.0)
    twice = replace(twice, ranks=[replace(rank, pid=7) for rank in twice.ranks])
    told = [grown(prepare(made, assess(made)))[STRUCK[0]] for made in (once, twice)]
    assert told[0] == told[1] and told[0][0].name == "aten::sdpa"


def test_what_takes_longer_than_in_calm_steps_is_suspected_first_and_in_calm_ones_nothing_is() -> None:
    steps = [Work(slow={"aten::sdpa": 12.0, "aten::silu": 9.0}) if at in STRUCK else Work() for at in range(24)]
    made = service(steps, noise=0.0)
    found = suspects(prepare(made, assess(made)))
    assert found[STRUCK[0]][:2] == ["aten::sdpa", "aten::silu"]
    assert not found[0]


@pytest.mark.parametrize(("share", "named"), [(0.5, True), (0.01, False)])
def test_where_a_rank_waited_for_another_one_the_collectives_of_the_step_are_suspected(
    share: float, named: bool
) -> None:
    made = service([Work()] * 24, ranks=2, noise=0.0)
    ranks = [replace(rank, tree=_gathering(rank.tree)) for rank in made.ranks]
    met = in_collectives(replace(made, ranks=ranks), STRUCK, (0, 1)).collectives
    here = np.zeros(len(met.rank), np.int64)
    met = replace(
        met, wait=np.where(met.rank == 0, (met.dur * share).astype(np.int64), 0), late=(here + 1).astype(np.int32)
    )
    waited = replace(made, ranks=ranks, collectives=met)
    found = suspects(prepare(waited, assess(waited)))
    assert (found[STRUCK[0]] == ["aten::silu"]) is named
    assert not found[0]


def _gathering(tree: Tree | None) -> Tree:
    """``tree`` with one of its operators as a collective."""
    assert tree is not None
    trace = tree.trace
    own = trace.name == trace.names.index("aten::silu")
    return replace(tree, trace=replace(trace, layer=np.where(own, Layer.COMMUNICATION, trace.layer).astype(np.uint8)))
