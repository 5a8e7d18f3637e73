"""Who slowed whom down, against what the second engine charges."""

import numpy as np
import pytest

from teller_core.judge.reschedule.neighbors import slowed, slowed_by, weights
from tests.core.judge.reschedule.made import setting
from tests.core.judge.reschedule.served import MS, Ask, Engine, crowd, served


def test_a_request_alone_slows_nobody_down() -> None:
    made = setting(served([Ask(0), Ask(800 * MS)], Engine()))
    weighed = weights(made)
    assert slowed_by(made, weighed, 0) == slowed(made, weighed, 0) == []


def test_what_all_members_have_of_a_step_is_what_it_took() -> None:
    made = setting(served(crowd(3, 40), Engine(), lambda now: now % (3 * MS)))
    whole = np.bincount(made.ran.at, weights=weights(made).whole, minlength=len(made.ran.step))
    assert whole == pytest.approx(made.ran.ended - made.ran.decided, rel=1e-6)


def test_a_long_prompt_is_blamed_by_those_who_decode_beside_it() -> None:
    wanted = [
        *(Ask(at * MS, 10, 40) for at in range(4)),
        Ask(60 * MS, 2_000, 3),
        *(Ask((300 + at) * MS) for at in range(30)),
    ]
    made = setting(served(wanted, Engine()))
    weighed = weights(made)
    for one in range(4):
        worst = slowed_by(made, weighed, one)[0]
        assert worst.request == 4 and worst.before == 0
        assert worst.beside == pytest.approx(2_000 * 30_000, rel=0.15)
    assert {found.request for found in slowed(made, weighed, 4)[:4]} == {0, 1, 2, 3}


def test_one_who_waits_for_a_seat_blames_those_who_sit() -> None:
    happened = served(
        [Ask(0, 40, 30), Ask(MS, 40, 4), *(Ask((500 + 90 * at) * MS) for at in range(10))], Engine(seats=1)
    )
    made = setting(happened)
    (found,) = slowed_by(made, weights(made), 1)
    waited = made.ran.ended[made.ran.last[0]] - made.came.time[1]
    assert (found.request, found.beside) == (0, 0)
    assert 0.85 * waited <= found.before <= waited


def test_both_sides_tell_the_same() -> None:
    made = setting(served(crowd(8, 25), Engine(seats=4)))
    weighed = weights(made)
    by = {(one, found.request): found for one in range(25) for found in slowed_by(made, weighed, one)}
    for one in range(25):
        for found in slowed(made, weighed, one):
            other = by[found.request, one]
            assert (found.beside, found.before) == pytest.approx((other.beside, other.before), abs=2)
