"""The scheduler decides as the second engine does, and its limits are read from what it decided."""

import numpy as np
import pytest
from hypothesis import assume, given

from teller_core.judge.reschedule.arrivals import arrivals
from teller_core.judge.reschedule.batches import batches
from teller_core.judge.reschedule.check import decided_alike, ordered
from teller_core.judge.reschedule.limits import limits
from teller_core.judge.reschedule.scheduler import Limits, Order, Queue, choose, computed
from tests.core.judge.reschedule.made import told
from tests.core.judge.reschedule.served import Ask, Engine, capture, crowd, served
from tests.core.judge.reschedule.test_batches import asks, engines


def waiting(*prompts: int) -> Queue:
    queue = Queue()
    for one, prompt in enumerate(prompts):
        queue.arrive(one, prompt=prompt, cached=0, units=[1, 1], rank=one)
    return queue


@given(asks, engines)
def test_every_decision_is_made_as_the_other_engine_made_it(wanted: list[Ask], engine: Engine) -> None:
    # A request alone that does not fit would never be served.
    assume(all(ask.prompt + ask.output < 16 * (engine.blocks - 2) for ask in wanted))
    run = served(wanted, engine)
    whole = capture(run)
    ran = batches(whole, 0)
    alike = decided_alike(ran, arrivals(whole, ran), told(engine), np.arange(len(ran.step)))
    assert alike.all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "engine",
    [Engine(tokens=64), Engine(seats=3), Engine(blocks=24), Engine(tokens=64, seats=4, decodes_first=True), Engine()],
)
def test_the_limits_that_were_met_are_learned(engine: Engine, seed: int) -> None:
    whole = capture(served(crowd(seed, 60, 15.0), engine))
    ran = batches(whole, 0)
    came = arrivals(whole, ran)
    found = ordered(ran, came, limits(whole, ran, came))
    wanted = told(engine)
    assert (found.tokens, found.requests, found.depth) == (wanted.tokens, wanted.requests, 1)
    if wanted.blocks is not None:
        assert found.blocks is not None and abs(found.blocks * found.block - wanted.blocks * 16) <= 32
    steps = np.arange(1, len(ran.step))
    assert decided_alike(ran, came, found, steps).mean() >= 0.99


def test_prompts_and_decodes_do_not_share_a_step_where_they_are_kept_apart() -> None:
    queue, apart = waiting(8, 8), Limits(order=Order.APART)
    first = choose(queue, apart)
    assert [share[:3] for share in first] == [(0, 8, True), (1, 8, True)]
    assert computed(queue, first) == ([0, 1], [])
    queue.arrive(2, prompt=5, cached=0, units=[], rank=2)
    second = choose(queue, apart)
    assert [share[:3] for share in second] == [(2, 5, True)]
    assert computed(queue, second) == ([2], [2])
    assert [share[:3] for share in choose(queue, apart)] == [(0, 1, False), (1, 1, False)]


def test_a_prompt_that_must_not_be_cut_waits_for_room() -> None:
    queue = waiting(10, 30)
    assert [share[:2] for share in choose(queue, Limits(tokens=32, chunked=False))] == [(0, 10)]
    queue = waiting(10, 30)
    assert [share[:2] for share in choose(queue, Limits(tokens=32))] == [(0, 10), (1, 22)]


def test_by_priority_the_urgent_come_first_and_the_others_are_evicted() -> None:
    queue = Queue()
    for one, rank in ((0, 5), (1, 1), (2, 9)):
        queue.arrive(one, prompt=16, cached=0, units=[1] * 40, rank=rank)
    assert queue.waiting == [1, 0, 2]
    limits = Limits(blocks=4, ranked=True)
    batch = choose(queue, limits)
    assert [share.request for share in batch] == [1, 0, 2]
    computed(queue, batch)
    batch = choose(queue, limits)
    assert [share.request for share in batch] == [1, 0] and queue.waiting == [2]
    assert (queue.held[2], queue.ahead[2]) == (0, 17)
