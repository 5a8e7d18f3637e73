"""What the end of a cause saves in steps that no profile shows, against an engine that was served without it."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data import unclaimed
from teller_core.data.causes import causes
from teller_core.data.table import UNKNOWN, Int64
from teller_core.judge import savings
from teller_core.judge.assess import assess
from teller_core.judge.evidence import Clue
from teller_core.judge.overtime import ELSEWHERE, LENGTHENS, NOT_TIMED, OFF, Overtime, overtime
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.replay.steps import REPLAYED
from teller_core.judge.savings import by_saving, together
from teller_core.judge.scene import Scene, scene
from tests.core.judge.reschedule.served import MS, ZERO, Engine, Served, capture, crowd, served

LOW, HIGH, EXTRA = 400, 700, 40
WANTED = crowd(2, 60, 25.0, prompt=60)
STALL, GC = "host.blocking_call", "host.gc_pause"


def happened(extra: int) -> Served:
    rng = np.random.default_rng(3)
    noise = {at: int(rng.exponential(MS / 4)) for at in range(4_000)}

    def disturbed(now: int) -> int:
        return noise[now // MS] + (extra * MS if LOW * MS <= now < HIGH * MS else 0)

    return served(WANTED, Engine(seats=4), disturbed)


TROUBLED, CALM = happened(EXTRA), happened(0)


@pytest.fixture(scope="module")
def case() -> Case:
    whole = capture(TROUBLED)
    return prepare(whole, assess(whole))


@pytest.fixture
def all_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which causes are claimed is measured anew with the lab's lives: here it is asked what is said of those that are."""
    monkeypatch.setattr(unclaimed, "unclaimed", lambda: {})


def stretch(view: Scene) -> Int64:
    """The steps that were decided on between the request's arrival and its end."""
    decided = np.array(TROUBLED.decided)
    return np.flatnonzero((decided >= view.life.begin) & (decided < view.life.end))


def own_steps(view: Scene) -> Int64:
    """The steps that served the request."""
    return np.unique(view.life.step).astype(np.int64)


def lost(steps: Int64) -> int:
    """ns that the trouble took of ``steps``."""
    decided = np.array(TROUBLED.decided)[steps] - ZERO
    return int(((decided >= LOW * MS) & (decided < HIGH * MS)).sum()) * EXTRA * MS


def worst() -> list[int]:
    return sorted(range(len(WANTED)), key=lambda one: CALM.done[one] - TROUBLED.done[one])[:5]


def most(case: Case) -> int:
    """The request whose own steps lost most."""
    return max(range(len(WANTED)), key=lambda one: lost(own_steps(scene(case, one, "e2e"))))


def clue(cause: str, ns: int) -> Clue:
    return Clue(cause, ns, 0.9, [])


@pytest.mark.usefixtures("all_claimed")
def test_steps_and_requests_save_what_they_save_on_an_engine_without_the_trouble(case: Case) -> None:
    for one in worst():
        view = scene(case, one, "e2e")
        cost = lost(stretch(view))
        ((_, said),) = by_saving(view, [clue(STALL, cost)], None)
        assert said.middle is not None and said.low is not None and said.high is not None
        assert said.middle == pytest.approx(lost(own_steps(view)) / MS, rel=0.1, abs=10)
        assert said.low <= said.middle <= said.high
        truth = (TROUBLED.done[one] - CALM.done[one]) / MS
        assert said.anew.middle == pytest.approx(truth, rel=0.15)
        assert said.anew.low is not None and said.anew.high is not None
        assert said.anew.low <= truth <= said.anew.high


@pytest.mark.usefixtures("all_claimed")
def test_causes_divide_the_overtime_by_what_each_cost_and_have_no_more_of_it_all_at_once(case: Case) -> None:
    view = scene(case, most(case), "e2e")
    cost, own = lost(stretch(view)), lost(own_steps(view)) / MS
    parts = by_saving(view, [clue(STALL, cost // 4), clue(GC, cost // 2)], None)
    assert [found.cause for found, _ in parts] == [GC, STALL]
    each = [said.middle or 0.0 for _, said in parts]
    assert each[0] == pytest.approx(2 * each[1], rel=0.01)
    assert sum(each) == pytest.approx(own, rel=0.1)
    low = parts[1][1].low
    assert low is not None and low <= own / 4
    both = together(view, parts, None)
    assert both is not None and both.causes == [GC, STALL]
    assert both.saving_ms == pytest.approx(own, rel=0.1)
    assert both.rescheduled_ms == pytest.approx((TROUBLED.done[most(case)] - CALM.done[most(case)]) / MS, rel=0.15)
    assert together(view, parts[:1], None) is None


def test_what_lies_outside_of_steps_is_not_claimed_by_them(case: Case) -> None:
    view = scene(case, worst()[0], "e2e")
    queue, long, fits = (
        clue("scheduler.queue_saturation", 90 * MS),
        clue(STALL, 3 * lost(stretch(view))),
        clue(STALL, MS),
    )
    assert overtime(view, [queue], [queue]) == ELSEWHERE
    assert overtime(view, [long], [long]) == ELSEWHERE
    assert isinstance(overtime(view, [fits], [fits, queue]), Overtime)


def test_without_times_of_steps_nothing_is_claimed() -> None:
    whole = capture(TROUBLED)
    unknown = np.full(len(whole.steps.engine), UNKNOWN)
    bare = replace(whole, steps=replace(whole.steps, finished=unknown, delivered=unknown))
    view = scene(prepare(bare, assess(bare)), worst()[0], "e2e")
    stall = clue(STALL, 90 * MS)
    assert overtime(view, [stall], [stall]) == NOT_TIMED


def test_a_cause_in_the_table_says_why_it_is_not_claimed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    view = scene(case, worst()[0], "e2e")
    cost = lost(stretch(view))
    table = {STALL: {"requests": "it was off by half"}, GC: {"steps": "nothing came true"}}
    monkeypatch.setattr(unclaimed, "unclaimed", lambda: table)
    found = by_saving(view, [clue(STALL, cost), clue(GC, cost)], None)
    said = {one.cause: told for one, told in found}
    assert said[STALL].middle is not None
    assert (said[STALL].anew.middle, said[STALL].anew.assumes) == (None, "saving not claimed: it was off by half")
    assert (said[GC].middle, said[GC].assumes) == (None, "saving not claimed: nothing came true")


def test_the_table_names_causes_whose_savings_would_else_be_claimed() -> None:
    table = unclaimed.unclaimed()
    assert set(table) <= set(causes()) & (LENGTHENS | REPLAYED)
    assert {whose for one in table.values() for whose in one} <= {"steps", "profiled", "work_first", "requests"}
    assert all(why and not why.endswith(".") for one in table.values() for why in one.values())
    assert 0 < OFF < 1
    assert savings.why_unclaimed("host.nothing", "steps") == ""
