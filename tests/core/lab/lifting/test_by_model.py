"""Savings of requests and steps, predicted from healthy windows of other rounds, against an engine that was served without."""

from dataclasses import replace
from typing import Any

import pytest

from teller_core.data.capture import Capture
from teller_core.judge.reschedule.plan import plan
from teller_core.lab.benchmark import pack
from teller_core.lab.blocks import healthy_in
from teller_core.lab.lifting import predict
from teller_core.lab.lifting.calm import calm, during, others
from teller_core.lab.lifting.figures import figures
from teller_core.lab.lifting.pairs import Pair, Sums, summed
from teller_core.lab.lifting.predict import ELSEWHERE
from teller_core.lab.lifting.told import NOT_NAMED, of_told
from tests.core.judge.reschedule.served import MS
from tests.core.lab.lifting.life import life


def steady(now: int) -> int:
    return 5 * MS


def stalls(now: int) -> int:
    return 80 * MS if now % (150 * MS) < 12 * MS else 0


def nothing(now: int) -> int:
    return 0


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    capture, block = life([steady, stalls, nothing])
    block = replace(block, strikes=[*block.strikes[:2], replace(block.strikes[2], role="front_end")])
    packed = pack.Packed("0a1b", None, {"kind": {"engine": "vllm"}}, [block])  # pyright: ignore[reportArgumentType]
    struck = [predict._Struck(packed, block, at, truth) for at, truth in enumerate(block.strikes)]
    return list(predict._by_model(capture, plan(capture), struck))


@pytest.mark.parametrize("fault", ["trouble_0", "trouble_1"])
@pytest.mark.parametrize("what", ["requests", "steps"])
def test_what_a_fault_cost_is_predicted_from_the_healthy_windows_of_other_rounds(
    pairs: list[Pair], fault: str, what: str
) -> None:
    (pair,) = [pair for pair in pairs if (pair.fault, pair.what) == (fault, what)]
    assert pair.silent == ""
    assert pair.sums.truth > 0.1 * pair.sums.before
    assert pair.error("ours") <= 0.15
    assert pair.noise < 0.1 * pair.sums.truth


def test_what_is_not_in_steps_is_not_predicted(pairs: list[Pair]) -> None:
    assert {pair.silent for pair in pairs if pair.role == "front_end"} == {ELSEWHERE}
    requests = figures(pairs)[0]
    assert (requests.cause, requests.pairs, requests.silent) == ("all", 2, 1)


def test_the_round_that_is_predicted_teaches_nothing() -> None:
    capture, block = life([steady])
    (setting,) = plan(capture).settings.values()
    for turn in range(4):
        here = calm(setting, others([block], block, turn))
        assert here is not None
        own = [window for window in block.windows if window.round == turn]
        assert len(healthy_in(block, turn)) == 2
        assert not (here.healthy & during(setting, own)).any()
        assert here.healthy.sum() > 50


def test_what_why_claims_of_struck_requests_is_held_against_their_twins(samples: Any) -> None:
    capture, block = life([steady])
    finding = samples.finding().model_copy(
        update={"cause": "host.blocking_call", "rescheduled_ms": 200.0, "saving_ms": 120.0}
    )

    def answers(part: Capture) -> list[Any]:
        assert 0 < len(part.requests.number) < len(capture.requests.number)
        return [samples.verdict(findings=[finding])] * len(part.requests.number)

    profiled = [replace(window, profiled=window.round == 0) for window in block.windows]
    sums, why = of_told(capture, replace(block, windows=profiled), 0, answers)
    assert why == "" and sums is not None
    assert sums.size == 18
    assert (sums.ours, sums.own) == pytest.approx((18 * 200 * MS, 18 * 120 * MS))
    names = [name for window in profiled if window.strike == 0 and not window.profiled for name in window.requests]
    taken = dict(
        zip(capture.requests.client_id, capture.requests.client_end - capture.requests.client_start, strict=True)
    )
    assert sums.before == sum(int(taken[name]) for name in names)
    assert 0.1 * sums.before < sums.truth < sums.before
    nothing, reason = of_told(
        capture, block, 0, lambda part: [samples.verdict(findings=[])] * len(part.requests.number)
    )
    assert (nothing, reason) == (None, NOT_NAMED)


def one(truth: float, ours: float, silent: str = "", cause: str = "host.gc_pause") -> Pair:
    sums = Sums(6, 1000.0, truth, 10.0, ours, truth * 1.1, truth * 1.2)
    return Pair("0a", "vllm", "gc_pause", cause, "clear", "worker", "requests", sums, 10.0, silent)


def test_a_cause_is_claimed_where_predictions_are_close_and_better_than_simple_ones() -> None:
    def why(*pairs: Pair) -> str:
        return figures(pairs)[1].why_not

    assert why(one(300, 310), one(300, 290), one(300, 305)) == ""
    assert why(one(300, 310), one(300, 290)) == "it was checked on 2 faults only"
    assert why(one(300, 400), one(300, 390), one(300, 400)) == "predictions were off by 33% as a rule"
    assert why(one(300, 331), one(300, 331), one(300, 331)) == ""
    assert why(one(300, 340), one(300, 340), one(300, 340)) == "simpler predictions were better"
    assert figures([one(300, 300, "no"), one(20, 300)])[1].pairs == 0


def test_noise_of_windows_adds_up_as_draws_do() -> None:
    sums, noise = summed([Sums(6, 100, 40, 3.0, 41, 42, 43), Sums(6, 100, 60, -4.0, 61, 62, 63)])
    assert (sums.size, sums.truth, sums.ours, noise) == (12, 100, 102, 5.0)
