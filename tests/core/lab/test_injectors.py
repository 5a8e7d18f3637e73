"""The table of injectors: each has one cause of the taxonomy, and what is wrong in it is refused."""

import random
import re

import pytest

from teller_core.data.causes import causes
from teller_core.errors import InputError, UnknownName
from teller_core.lab.injectors import NEEDS, SEVERITIES, draw, injector, injectors, read

KNOB = "{ slight = [1, 2], clear = [3.0, 4.0], strong = [5, 6], extreme = [7, 8] }"
GOOD = f"""[one]
title = "t"
cause = "host.gc_pause"
where = "inside"
role = "worker"
act = "collect"
moves = "itl_max"
[one.knobs]
objects = {KNOB}
"""
WRONG = [
    (GOOD.replace('title = "t"', 'title = "t"\ncolor = "red"'), "keys that nobody knows: color"),
    (GOOD.replace('moves = "itl_max"\n', ""), "lacks moves"),
    (GOOD.replace("host.gc_pause", "host.ghost"), "no cause host.ghost"),
    (GOOD + GOOD, "Cannot declare"),
    (GOOD + GOOD.replace("one", "two"), "two does what one does"),
    (GOOD.replace('"collect"', '"burn"'), "burn is no act from inside"),
    (GOOD.replace('"worker"', '"waiter"'), "waiter is no role"),
    (GOOD.replace('"itl_max"', '"itl"'), "itl is no latency"),
    (GOOD.replace('act = "collect"', 'act = "busy"'), "a hook point belongs"),
    (GOOD.replace('act = "collect"', 'act = "busy"\npoint = "schedule"'), "schedule is not in a worker"),
    (GOOD.replace('title = "t"', 'title = "t"\nneeds = ["luck"]'), "nobody knows the need luck"),
    (GOOD.replace('title = "t"', 'title = "t"\nengines = ["abacus"]'), "nobody knows the engine abacus"),
    (GOOD.replace('title = "t"', 'title = "t"\nrank = 1'), "one beyond the first to a service of several"),
    (
        GOOD.replace('title = "t"', 'title = "t"\nrank = 0').replace('"worker"', '"engine"'),
        "a rank belongs to a worker",
    ),
    (GOOD.replace("slight = [1, 2], ", ""), "a range for each of"),
    (GOOD.replace("[7, 8]", "[8, 7]"), "no range for extreme"),
    ("one = 1\n", "one is no table"),
]


def test_every_injector_has_a_cause_of_the_taxonomy_or_is_a_hard_negative() -> None:
    made = injectors()
    assert {one.cause for one in made.values() if one.cause} <= set(causes())
    assert len({one.cause for one in made.values() if one.cause}) >= 18
    assert len([one for one in made.values() if one.cause is None]) >= 6


def test_every_need_is_of_some_injector() -> None:
    assert {need for one in injectors().values() for need in one.needs} == set(NEEDS)


@pytest.mark.parametrize(("text", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_table_that_does_not_hold_what_it_should_is_refused(text: str, why: str) -> None:
    assert list(read(GOOD)) == ["one"]
    with pytest.raises(InputError, match=re.escape(why)):
        read(text)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_drawn_values_lie_in_their_ranges_and_are_the_seeds_own(severity: str) -> None:
    for one in injectors().values():
        values = draw(one, severity, random.Random(5))
        assert values == draw(one, severity, random.Random(5))
        assert all(
            one.knobs[name][severity][0] <= value <= one.knobs[name][severity][1] for name, value in values.items()
        )
        whole = [
            name for name, ranges in one.knobs.items() if all(isinstance(limit, int) for limit in ranges[severity])
        ]
        assert all(isinstance(values[name], int) for name in whole)


def test_no_two_severities_of_an_injector_are_the_same() -> None:
    for one in injectors().values():
        drawn = {tuple(ranges[severity] for ranges in one.knobs.values()) for severity in SEVERITIES}
        assert len(drawn) == len(SEVERITIES), one.name


def test_an_unknown_fault_or_severity_is_refused() -> None:
    with pytest.raises(UnknownName, match="none of"):
        injector("gremlins")
    with pytest.raises(UnknownName, match="none of slight"):
        draw(injector("gc_pause"), "mild", random.Random(1))
