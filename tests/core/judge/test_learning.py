"""What is learned from captures in which all was well, and what captures look like that are held against it."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.assessment import Assessment, Baselines
from teller_core.data.capture import Capture
from teller_core.data.learned import HealthyClaims, Learned
from teller_core.data.report import Metric, WhyReport
from teller_core.data.steps import Lines
from teller_core.data.table import take
from teller_core.judge.assess import assess
from teller_core.judge.baseline import learn
from teller_core.judge.classes import classify
from teller_core.judge.diagnose import diagnose, diagnose_all
from teller_core.judge.learned import held_against
from teller_core.judge.learning import Claimed, Healthy, claims_on, folds, learned_from, levels_of, with_claims
from teller_core.judge.levels import WANDERS, near
from teller_core.judge.pooling import pooled
from teller_core.judge.prepare import prepare
from teller_core.judge.questions import ask
from tests.core.judge.service import Work, service
from tests.core.judge.serving import BASE, MS, OUTPUT, PROMPT, TURN, ZERO, Ask, Trouble, serve

ASKS = [Ask(at * 90, prompt=30 + 13 * (at % 7), output=30 + 5 * (at % 5)) for at in range(60)]
ALWAYS = 1e9
NOW = "2026-11-30T12:00:00+00:00"


def recorded(
    *troubles: Trouble,
    version: str = "0.32.0",
    model: str = "tiny",
    dtype: str = "",
    asks: Sequence[Ask] = ASKS,
) -> Capture:
    """A capture of the simulated service, which says at its start what it is."""
    capture = serve(asks, troubles)[0]
    fields = {"version": version, "model": f"./{model}", "tensor_parallel": "1", "dtype": dtype}
    few = np.array([-1], np.int32)
    lines = Lines(
        np.array([ZERO - 900 * MS]),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        ["INFO"],
        ["vllm.engine_config"],
        [json.dumps(fields)],
        [""],
        ["host/7"],
        np.zeros(1, np.int32),
        np.ones(1, np.int32),
        few,
        few,
    )
    return replace(capture, lines=lines)


def taught(*captures: Capture) -> Learned:
    several = [Healthy(capture, assess(capture)) for capture in captures]
    plain = learned_from(several, "monday", {"engine": "vllm"}, NOW)
    claims = [
        claims_on(prepare(each, assess(each, fold.learned)), fold.requests)
        for at, each in enumerate(captures)
        for fold in folds(several, at, plain)
    ]
    return with_claims(plain, claims)


@pytest.fixture(scope="module")
def learned() -> Learned:
    return taught(recorded(), recorded(asks=ASKS[10:]))


def answers(capture: Capture, numbers: Assessment) -> list[WhyReport]:
    return diagnose_all(capture, numbers)


def test_what_steps_and_requests_cost_is_learned_as_it_was_simulated(learned: Learned) -> None:
    learned.check()
    assert learned.step_costs is not None
    costs = dict(zip(("", *learned.step_costs.costs.used), learned.step_costs.costs.cost.tolist(), strict=True))
    assert costs[""] == pytest.approx(BASE, rel=0.05) and costs["context_tokens"] == pytest.approx(PROMPT, rel=0.05)
    assert costs["generation_requests"] == pytest.approx(OUTPUT, rel=0.1)
    assert learned.rest["tpot"] == pytest.approx(TURN, rel=0.4) and set(learned.request_costs) >= {"e2e", "ttft"}
    assert learned.requests == 110 and learned.captures == ["c0ffee"] * 2
    assert learned.levels["turnaround"] == pytest.approx(TURN, rel=0.1)
    assert learned.levels["counter run_queue_wait_ns"] == pytest.approx(20 * MS, rel=0.1)
    assert learned.levels["front in"] == pytest.approx(0.3 * MS, rel=0.05)


def test_a_healthy_request_held_against_a_baseline_is_normal_and_says_whose(learned: Learned) -> None:
    capture = recorded(asks=ASKS[5:])
    alone, held = answers(capture, assess(capture)), answers(capture, assess(capture, learned))
    assert {report.verdict for report in alone} == {"typical_here"} and {report.reference for report in alone} == {""}
    assert {report.verdict for report in held} == {"normal"}
    assert {report.reference for report in held} == {"the baseline monday of 2026-11-30 12:00:00"}
    assert "the baseline monday" in held[0].reason


def test_a_service_that_is_slow_all_the_time_is_slow_to_whom_learned_what_is_usual(learned: Learned) -> None:
    capture = recorded(Trouble("starved", 0, ALWAYS, 6))
    alone, held = answers(capture, assess(capture)), answers(capture, assess(capture, learned))
    assert not any(report.findings for report in alone)
    assert all((report.over_work or 0) > 1.5 for report in held)
    firsts = [report.findings[0].cause if report.findings else None for report in held]
    assert firsts.count("host.cpu_starvation") >= 0.9 * len(firsts)


def test_without_trees_numbers_are_held_against_the_same(learned: Learned) -> None:
    capture = recorded()
    own, direct = assess(capture), assess(capture, learned)
    again = held_against(capture, own, learned)
    assert again.steps.expected.tolist() == direct.steps.expected.tolist()
    assert again.requests.by_work.tolist() == direct.requests.by_work.tolist()
    back = held_against(capture, again, None)
    assert back.reference == "" and back.steps.expected.tolist() == own.steps.expected.tolist()
    assert back.requests.by_load.tolist() == own.requests.by_load.tolist()


@pytest.mark.parametrize(("share", "claimed"), [(0.9, False), (0.0, True)])
def test_a_cause_must_cost_more_than_it_costs_healthy_requests(learned: Learned, share: float, claimed: bool) -> None:
    claims = HealthyClaims(["e2e"], ["host.gc_pause"], np.array([0.25]), np.array([share]))
    capture = recorded(Trouble("gc", 400, 2000, 80, 5))
    before = answers(capture, assess(capture, learned))
    after = answers(capture, assess(capture, replace(learned, claims=claims)))
    struck = [at for at, report in enumerate(before) if report.findings and report.findings[0].cause == "host.gc_pause"]
    assert struck
    for at in struck:
        mine = [finding for finding in after[at].findings if finding.cause == "host.gc_pause"]
        assert bool(mine) is claimed
        if claimed:
            assert mine[0].confidence == pytest.approx(0.75 * before[at].findings[0].confidence, abs=0.02)


def test_what_healthy_requests_lose_now_and_then_is_learned_with_how_many_lose_it() -> None:
    found = taught(recorded(Trouble("gc", 400, 2000, 80, 5)))
    rate, share = found.claims.of("host.gc_pause", "e2e")
    assert 0.1 < rate < 0.6 and 0.05 < share < 1
    assert found.claims.of("host.io_stall", "e2e") == (0.0, 0.0)
    capture = recorded(Trouble("gc", 400, 2000, 80, 5), asks=ASKS[:50])
    named = [finding.cause for report in answers(capture, assess(capture, found)) for finding in report.findings]
    assert named.count("host.gc_pause") <= 2


def test_no_request_is_held_against_what_it_taught_itself() -> None:
    calm = recorded()
    several = [Healthy(calm, assess(calm)), Healthy(slow := recorded(Trouble("gc", 400, 2000, 80, 5)), assess(slow))]
    whole = learned_from(several, "monday", {}, NOW)
    ((of_others, mine),) = folds(several, 0, whole)
    assert of_others.captures == [slow.id] and of_others.requests == 60 and mine.all()
    early, late = folds(several[:1], 0, whole)
    assert (early.requests ^ late.requests).all() and 25 <= early.requests.sum() <= 35
    assert early.learned.request_costs["e2e"].peers + late.learned.request_costs["e2e"].peers == 60
    both = [each.learned.step_costs for each in (early, late)]
    assert (
        whole.step_costs is not None and sum(each.costs.peers for each in both if each) < whole.step_costs.costs.peers
    )


@given(
    shares=st.lists(st.floats(0.01, 2.0), min_size=0, max_size=40),
    others=st.integers(1, 400),
)
def test_the_cost_that_is_asked_is_that_of_99_in_100_requests(shares: list[float], others: int) -> None:
    bare = _EMPTY
    claims = with_claims(bare, [Claimed({"host.gc_pause": shares} if shares else {}, len(shares) + others)]).claims
    rate, share = claims.of("host.gc_pause", "e2e")
    asked = len(shares) + others
    assert rate == pytest.approx(len(shares) / asked)
    above = sum(each > share for each in shares)
    assert above <= 0.01 * asked and (share == 0 or share in shares)


def test_who_is_slow_is_told_by_how_much_longer_healthy_requests_take() -> None:
    ratios = [1.0] * 35 + [1.6] * 4 + [3.0]
    told = with_claims(_EMPTY, [Claimed({}, 40, ratios[:20]), Claimed({}, 40, ratios[20:])])
    assert told.levels["slow"] == 1.6
    assert "slow" not in with_claims(_EMPTY, [Claimed({}, 40, ratios[:39])]).levels
    capture = recorded()
    asked = [ask(prepare(capture, assess(capture, each)), 3, "e2e", None).least for each in (None, told)]
    assert asked == [1.25, 1.6]


def test_what_is_learned_by_one_metric_is_said_of_no_other() -> None:
    by_e2e = Claimed({"host.gc_pause": [0.9] * 20}, 40, [1.6] * 40)
    by_ttft = Claimed({"host.io_stall": [0.1] * 20}, 40, [2.5] * 40, "ttft")
    told = with_claims(_EMPTY, [by_e2e, by_ttft])
    assert told.claims.of("host.gc_pause", "e2e") == told.claims.of("host.gc_pause", "slo") == (0.5, 0.9)
    assert told.claims.of("host.io_stall", "ttft") == (0.5, 0.1)
    assert told.claims.of("host.gc_pause", "ttft") == told.claims.of("host.io_stall", "e2e") == (0.0, 0.0)
    capture = recorded()
    case = prepare(capture, assess(capture, told))
    assert [ask(case, 3, metric, None).least for metric in ("e2e", "slo", "ttft", "tpot")] == [1.6, 1.6, 2.5, 1.25]


@pytest.mark.parametrize("metric", ["ttft", "tpot", "itl_max"])
def test_what_rules_claim_is_asked_by_every_metric(metric: Metric) -> None:
    capture = recorded(Trouble("gc", 400, 2000, 80, 5))
    found = claims_on(prepare(capture, assess(capture)), metric=metric)
    assert found.metric == metric and found.asked == 60
    mine = with_claims(_EMPTY, [found]).claims
    assert set(mine.metric) == {metric} and mine.of("host.gc_pause", metric)[0] > 0


def test_what_an_answer_that_was_held_against_something_else_says_of_savings_is_not_said_again(
    learned: Learned,
) -> None:
    capture = recorded(Trouble("gc", 400, 2000, 80, 5))
    numbers = assess(capture, learned)
    at, said = next((at, each) for at, each in enumerate(answers(capture, numbers)) if each.findings)
    odd = [finding.model_copy(update={"saving_ms": 123456.0}) for finding in said.findings]
    for reference, kept in ((said.reference, True), ("", False), ("the baseline monday of 1999-01-01 00:00:00", False)):
        earlier = said.model_copy(update={"findings": odd, "reference": reference})
        again = diagnose(capture, numbers, at, earlier=earlier)
        assert (again.findings[0].saving_ms == 123456.0) is kept


def test_a_level_that_nobody_learned_is_the_captures_own(learned: Learned) -> None:
    capture = recorded(Trouble("starved", 0, ALWAYS, 6))
    own = prepare(capture, assess(capture)).counters
    held = prepare(capture, assess(capture, replace(learned, levels={"counter run_ns": 7.0}))).counters
    assert held["run_ns"].calm == 7.0 * WANDERS and held["run_queue_wait_ns"].calm == own["run_queue_wait_ns"].calm
    assert levels_of(prepare(capture, assess(capture)))["counter run_ns"] == own["run_ns"].calm


@given(own=st.floats(-1e12, 1e12), there=st.floats(-1e12, 1e12))
def test_a_level_is_the_captures_own_no_further_than_levels_wander_from_what_was_learned(
    own: float, there: float
) -> None:
    numbers = Assessment(*[None] * 4, learned=replace(_EMPTY, levels={"x": there}))  # pyright: ignore[reportArgumentType]
    found = near(numbers, "x", own)
    low, high = sorted((there / WANDERS, there * WANDERS))
    assert low <= found <= high and (found == own or not low <= own <= high)
    assert near(numbers, "y", own) == own


STEADY = [Work(kv=800 + 10 * at) for at in range(24)]


def operators_of(capture: Capture, known: Baselines | None = None) -> Baselines:
    return learn(capture, classify(capture.steps, capture.work), known)[0]


def test_an_operator_that_is_slow_in_every_step_is_suspected_by_whom_learned_what_it_takes() -> None:
    usual = pooled([operators_of(service(STEADY, seed)) for seed in (1, 2)])
    slow = service([replace(work, slow={"aten::silu": 30.0}) for work in STEADY], 3)
    bare = replace(_EMPTY, operators=usual)
    alone, held = assess(slow), assess(slow, bare)
    assert "aten::silu" not in alone.candidates.name
    assert held.candidates.name.count("aten::silu") >= len(STEADY) and set(held.candidates.name) <= {
        "aten::silu",
        "aten::linear",
    }


def test_baselines_of_one_capture_are_those_of_the_capture_and_of_twice_the_same_no_others() -> None:
    one = operators_of(service(STEADY, 1))
    enough = take(one, one.count >= 8)
    for same in (pooled([one]), pooled([one, one])):
        assert (same.name, same.place, same.phase) == (enough.name, enough.place, enough.phase)
        assert np.abs(same.median - enough.median).max() <= 1
        assert same.spread.tolist() == pytest.approx(enough.spread.tolist())
    assert pooled([one, one]).count.tolist() == (2 * enough.count).tolist()


@given(medians=st.lists(st.integers(1, 10**9), min_size=1, max_size=6), counts=st.data())
def test_a_pooled_median_lies_between_those_it_is_of(medians: list[int], counts: st.DataObject) -> None:
    calls = counts.draw(st.lists(st.integers(8, 99), min_size=len(medians), max_size=len(medians)))
    tables = [_place(median, count) for median, count in zip(medians, calls, strict=True)]
    (found,) = pooled(tables).median.tolist()
    assert min(medians) - 1 <= found <= max(medians) * (1 + 1e-9) + 1
    weight = sum(calls)
    assert sum(c for m, c in zip(medians, calls, strict=True) if m <= found * (1 + 1e-9) + 1) >= weight / 2 - 1e-9


def _place(median: int, count: int) -> Baselines:
    return Baselines(
        ["aten::mm"],
        ["p"],
        ["decode"],
        np.zeros(1, np.uint8),
        np.array([count], np.int32),
        np.array([median]),
        np.array([0.1]),
        np.array([median * count]),
        np.ones(1),
        np.array([np.nan]),
        np.array([np.nan]),
    )


_EMPTY = Learned("x", {}, NOW, [], 0, 0, None, {}, {}, pooled([]), {})
