"""What requests would have gained, against the second engine served again without what held it up."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.table import Int64
from teller_core.judge.reschedule.arrivals import arrivals
from teller_core.judge.reschedule.batches import batches
from teller_core.judge.reschedule.costs import features, learn, took
from teller_core.judge.reschedule.savings import kept_away, rescheduled, same_schedule
from teller_core.judge.reschedule.simulate import Setting
from tests.core.judge.reschedule.made import setting, told
from tests.core.judge.reschedule.served import MS, Ask, Engine, Served, capture, crowd, served

Extra = Callable[[int], int]


def during(low_ms: int, high_ms: int, extra_ms: int) -> Extra:
    return lambda now: extra_ms * MS if low_ms * MS <= now < high_ms * MS else 0


def lost(happened: Served) -> Int64:
    """ns that each step took beyond its work."""
    took = np.array(happened.ended) - np.array(happened.decided)
    return took - np.array([happened.work(step) for step in range(len(took))])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("engine", "extra"),
    [
        (Engine(), during(100, 140, 120)),
        (Engine(), during(0, 10_000, 4)),
        (Engine(seats=3), during(100, 400, 30)),
        (Engine(tokens=48), during(150, 300, 15)),
        (Engine(blocks=40), during(100, 300, 25)),
    ],
)
def test_batched_anew_requests_gain_what_they_gain_on_an_engine_without_the_trouble(
    engine: Engine, extra: Extra, seed: int
) -> None:
    wanted = crowd(seed, 40, 18.0, prompt=80)
    troubled, clean = served(wanted, engine, extra), served(wanted, engine)
    made, saved = setting(troubled), lost(troubled)
    off: list[float] = []
    for one in range(len(wanted)):
        found = rescheduled(made, one, saved)
        assert found is not None and found.first_token is not None
        truth = troubled.done[one] - clean.done[one]
        off.append(abs(found.end - truth) / max(truth, 10 * MS))
        first = troubled.first[one] - clean.first[one]
        assert abs(found.first_token - first) <= max(0.25 * first, 12 * MS)
    assert np.median(off) <= 0.1 and max(off) <= 0.45


@given(st.integers(0, 50), st.integers(1, 30))
def test_with_the_same_batches_nobody_gains_more_than_what_was_saved_before_his_end(seed: int, saved_ms: int) -> None:
    happened = served(crowd(seed, 12), Engine(), during(50, 150, 40))
    made = setting(happened)
    rng = np.random.default_rng(seed)
    saved = np.where(rng.random(len(made.ran.step)) < 0.3, saved_ms * MS, 0)
    for one in range(12):
        found = same_schedule(made, one, saved)
        assert 0 <= found.end <= saved[: made.ran.last[one] + 1].sum()
        assert found.first_token is not None and 0 <= found.first_token <= saved[: made.ran.answers[one] + 1].sum()


@given(st.integers(0, 50))
def test_saving_more_never_ends_a_request_of_the_same_batches_later(seed: int) -> None:
    made = setting(served(crowd(seed, 12), Engine(), during(50, 150, 40)))
    rng = np.random.default_rng(seed)
    less = rng.integers(0, 10 * MS, len(made.ran.step))
    more = less + rng.integers(0, 10 * MS, len(made.ran.step))
    for one in range(12):
        assert same_schedule(made, one, less).end <= same_schedule(made, one, more).end


def test_nothing_saved_saves_nothing() -> None:
    made = setting(served(crowd(6, 20), Engine(seats=4), during(50, 90, 30)))
    nothing = np.zeros(len(made.ran.step), dtype=np.int64)
    for one in range(20):
        assert same_schedule(made, one, nothing) == (0, 0)
        assert rescheduled(made, one, nothing) == (0, 0)


def test_a_request_alone_gains_what_its_steps_save_and_a_later_one_nothing() -> None:
    happened = served([Ask(0, 40, 20), Ask(900 * MS, 40, 20)], Engine(), during(20, 40, 50))
    made, saved = setting(happened), lost(happened)
    assert saved.sum() == 50 * MS
    assert same_schedule(made, 0, saved).end == pytest.approx(50 * MS, abs=2_000)
    found = rescheduled(made, 0, saved)
    assert found is not None and found.end == pytest.approx(50 * MS, abs=2_000)
    assert same_schedule(made, 1, saved).end == 0
    assert rescheduled(made, 1, saved) == (0, 0)


def test_one_who_waited_for_a_seat_gains_by_what_others_were_spared() -> None:
    happened = served([Ask(0, 40, 20), Ask(MS, 40, 20), Ask(2 * MS, 40, 5)], Engine(seats=2), during(0, 40, 60))
    made, saved = setting(happened), lost(happened)
    last = int(made.ran.first[2])
    assert saved[last:].sum() == 0
    found = rescheduled(made, 2, saved)
    assert found is not None and found.end == pytest.approx(60 * MS, abs=8 * MS)


def test_who_was_kept_from_the_scheduler_by_a_long_step_comes_sooner_without_it() -> None:
    wanted = crowd(3, 40, 40.0, prompt=60)
    stalls = during(400, 410, 500)
    troubled, clean = served(wanted, Engine(), stalls), served(wanted, Engine())
    whole, decided = capture(troubled), np.array(troubled.decided)
    asked = whole.requests.queued
    seen = decided[np.searchsorted(decided, asked)]  # an engine that stamps in its loop, just before it decides
    whole = replace(whole, requests=replace(whole.requests, received=asked, queued=seen - MS // 100))
    ran = batches(whole, 0)
    costs = learn(features(ran), took(ran))
    assert costs is not None
    made, saved = Setting(ran, arrivals(whole, ran), told(Engine()), costs), lost(troubled)
    stalled = int(np.argmax(saved))
    kept = np.flatnonzero((asked > decided[stalled]) & (asked < troubled.ended[stalled])).tolist()
    assert len(kept) >= 5
    early = kept_away(made, saved)
    assert (early[kept] > 0).sum() >= len(kept) - 2
    assert (early <= 510 * MS).all() and saved[stalled] > 400 * MS
    for one in kept:
        found = rescheduled(made, one, saved)
        assert found is not None
        assert abs(found.end - (troubled.done[one] - clean.done[one])) <= 40 * MS
    assert not kept_away(made, np.zeros_like(saved)).any()
