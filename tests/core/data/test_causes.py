"""The taxonomy is complete, and a cause that is not in it is refused."""

import pytest

from teller_core.data.causes import cause, causes
from teller_core.errors import UnknownName

LAYERS = {"frontend", "scheduler", "host", "cuda", "gpu", "comm", "lifecycle"}


def test_every_cause_says_what_it_is_how_it_looks_and_what_to_do():
    for key, each in causes().items():
        assert each.layer in LAYERS, key
        assert each.title and each.definition and each.next_check and each.fix, key
        assert each.plain and each.plain == each.plain.strip(".") and ":" not in each.plain, key
        assert each.trace or each.logs, key
        assert 0 <= each.tier <= 4, key
        assert each.look_alikes, key
        assert key not in each.look_alikes, key


def test_the_thirty_causes_of_the_field_study_and_those_added_since_are_there():
    assert len(causes()) >= 35
    assert {"host.io_stall", "host.slow_operator", "host.interpreter_lock", "comm.degraded_link"} <= set(causes())


def test_a_cause_outside_the_taxonomy_is_refused():
    with pytest.raises(UnknownName):
        cause("host.ghost")
