"""A small loss counts where the requests beside it lost as much to the same, and not where chance may have struck one."""

import numpy as np
import pytest

from teller_core.judge.claims import LASTING_SHARE, LEAST_NS, LEAST_SHARE, dearest
from teller_core.judge.diagnose import diagnose_all
from teller_core.judge.evidence import Clue
from tests.core.judge.serving import Ask, Trouble, serve

APART = [Ask(at * 420.0) for at in range(16)]
"""One after the other: what strikes one strikes no other."""


def causes_of(troubles: list[Trouble]) -> list[list[str]]:
    return [[finding.cause for finding in report.findings] for report in diagnose_all(*serve(APART, troubles))]


def small(at: float) -> Trouble:
    """Less than what counts alone, and more than a twentieth of a request."""
    return Trouble("gc", at, at + 5, 20)


def test_a_small_loss_of_one_request_is_not_told() -> None:
    assert causes_of([small(8 * 420 + 100)]) == [[]] * 16


def test_the_same_loss_of_several_in_a_row_is_told_of_each_of_them() -> None:
    told = causes_of([small(at * 420 + 100) for at in range(6, 11)])
    assert [named[:1] for named in told[6:11]] == [["host.gc_pause"]] * 5
    assert not any(told[:5] + told[12:])


def test_what_is_lost_everywhere_at_once_to_a_busy_host_needs_more_than_that() -> None:
    told = causes_of([Trouble("starved", at * 420.0 + 40, at * 420.0 + 340, 1.0) for at in range(6, 11)])
    assert not any(told)


def test_of_what_is_said_twice_of_a_cause_the_dearer_counts_and_has_its_place_by_that() -> None:
    said = [Clue("a", 1, 0.5, []), Clue("b", 3, 0.5, []), Clue("a", 4, 0.5, []), Clue("c", 3, 0.5, [])]
    assert [(clue.cause, clue.ns) for clue in dearest(said)] == [("a", 4), ("b", 3), ("c", 3)]


@pytest.mark.parametrize("extra", [2, 60])
def test_less_than_a_twentieth_counts_nowhere_and_a_tenth_counts_alone(extra: float) -> None:
    capture, numbers = serve(APART, [Trouble("gc", 8 * 420 + 100, 8 * 420 + 105, extra)])
    took = int(np.median(numbers.requests.value[np.array(numbers.requests.metric, object) == "e2e"]))
    assert (extra * 1e6 >= max(LEAST_NS, LEAST_SHARE * took)) or (extra * 1e6 < LASTING_SHARE * took)
    told = [bool(report.findings) for report in diagnose_all(capture, numbers)]
    assert told == [at == 8 and extra == 60 for at in range(16)]
