"""What a finding says of its cause's end with new batches."""

import numpy as np

from teller_core.judge.assess import assess
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.reschedule import findings
from teller_core.judge.reschedule.findings import NO_STEPS, OTHER_METRIC, TOO_MANY, anew
from tests.core.judge.reschedule.served import MS, Engine, capture, crowd, served

LATE = 40


def case() -> Case:
    rng = np.random.default_rng(2)
    happened = served(
        crowd(4, 60, 20.0), Engine(), lambda now: int(rng.exponential(MS)) + (now % (90 * MS) < 8 * MS) * 60 * MS
    )
    whole = capture(happened)
    return prepare(whole, assess(whole))


def own(here: Case) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    part = here.capture.participation
    return np.unique(part.step[part.request == LATE])


def test_a_request_gains_by_what_its_steps_are_spared() -> None:
    here = case()
    step = own(here)
    low, high = np.full(len(step), MS), np.full(len(step), 2 * MS)
    found = anew(here, LATE, "e2e", step=step, low=low, middle=(low + high) // 2, high=high)
    assert found.middle is not None and found.low is not None and found.high is not None and found.assumes
    assert found.low <= found.middle <= found.high
    # It may be done before a stall of 60 ms that held it up.
    assert found.low > 0 and found.high <= 2 * len(step) + 62


def test_what_cannot_be_simulated_says_why() -> None:
    here = case()
    step = own(here)
    ns = np.full(len(step), MS)
    assert anew(here, LATE, "e2e", step=step[:0], low=ns[:0], middle=ns[:0], high=ns[:0]).assumes == NO_STEPS
    assert anew(here, LATE, "tpot", step=step, low=ns, middle=ns, high=ns) == (None, None, None, OTHER_METRIC)
    assert anew(here, LATE, "ttft", step=step, low=ns, middle=ns, high=ns).middle is not None
    here.measured[findings.LEFT] = 0
    assert anew(here, LATE, "e2e", step=step, low=ns, middle=ns, high=ns) == (None, None, None, TOO_MANY)
