"""Slow profiled steps tell how they were slow, and a few of them tell it of all that were slow in the same way."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.capture import Collectives
from teller_core.judge.anatomy import slow_way, suspects
from teller_core.judge.assess import assess
from teller_core.judge.prepare import prepare
from tests.core.judge.service import MS, US, Work, service

STRUCK = range(8, 14)


def way_of(fault: Work, *, struck: int = 6, of: int = 24) -> tuple[str, str] | None:
    """Of so many profiled decode steps: the way in which slow ones were slow, and the operator."""
    steps = [fault if 8 <= at < 8 + struck else Work() for at in range(of)]
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
    struck = np.flatnonzero(np.isin(made.work.step, STRUCK) & np.isin(made.work.rank, met))
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
    numbers = assess(made)
    even = replace(numbers, steps=replace(numbers.steps, expected=np.full(24, int(np.median(numbers.steps.took)))))
    found = slow_way(prepare(replace(made, collectives=table), even))
    assert (found.kind if found else None) == way


def test_what_takes_longer_than_in_calm_steps_is_suspected_first_and_in_calm_ones_nothing_is() -> None:
    steps = [Work(slow={"aten::sdpa": 12.0, "aten::silu": 9.0}) if at in STRUCK else Work() for at in range(24)]
    made = service(steps, noise=0.0)
    found = suspects(prepare(made, assess(made)))
    assert found[STRUCK[0]][:2] == ["aten::sdpa", "aten::silu"]
    assert not found[0]
