"""What is done once a step besides its work makes long steps and short ones longer by the same time, and nothing else does."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.judge.prepare import prepare
from teller_core.judge.rules_pace import same_in_all
from tests.core.judge.serving import MS, ZERO, Ask, Trouble, serve

MIXED = [Ask(at * 60, prompt=900 if at % 4 == 0 else 50) for at in range(160)]
"""Every fourth asks with a prompt that makes a step several times as long as others are."""


def slowed(times: float) -> tuple[Capture, Assessment]:
    """For four seconds every step takes so many times what its work asks for."""
    made, numbers = serve(MIXED, tier=3)
    begin, took = made.steps.launched, numbers.steps.took
    struck = (begin >= ZERO + 2000 * MS) & (begin < ZERO + 6000 * MS)
    longer = np.where(struck, np.rint(took * times), took).astype(np.int64)
    return made, replace(numbers, steps=replace(numbers.steps, took=longer))


@pytest.mark.parametrize("extra", [4.0, 9.0])
def test_what_every_step_does_besides_its_work_is_found_with_its_cost(extra: float) -> None:
    found = same_in_all(prepare(*serve(MIXED, [Trouble("mystery", 2000, 6000, extra)], tier=3)))
    assert found is not None
    assert (found.short, found.long) == (extra * MS, extra * MS)
    assert found.times >= 2


@pytest.mark.parametrize("times", [1.4, 2.5])
def test_what_grows_with_the_work_of_a_step_is_no_such_thing(times: float) -> None:
    assert same_in_all(prepare(*slowed(times))) is None


def test_where_no_step_is_slow_or_none_is_long_nothing_is_said() -> None:
    assert same_in_all(prepare(*serve(MIXED, tier=3))) is None
    even = [Ask(at * 60) for at in range(160)]
    assert same_in_all(prepare(*serve(even, [Trouble("mystery", 2000, 6000, 9)], tier=3))) is None


def test_profiled_steps_are_no_measure() -> None:
    assert same_in_all(prepare(*serve(MIXED, [Trouble("mystery", 2000, 6000, 9)], tier=4))) is None
