"""Two captures or two requests side by side."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from teller_core.data.capture import Capture
from teller_core.data.report import CompareReport, Difference
from teller_core.judge.assess import assess
from teller_core.tell.compare import CaptureView, RequestView, compare_captures, compare_requests
from teller_core.tell.compare_intervals import order_interval
from tests.core.judge.service import MS, Work, requests_table, service


def view(made: Capture) -> CaptureView:
    return CaptureView(made, assess(made))


def with_requests(made: Capture, e2e_ms: np.ndarray, prompt: int = 20) -> Capture:
    n = len(e2e_ms)
    start = np.arange(n, dtype=np.int64) * 10 * MS + 1_000 * MS
    return replace(
        made,
        requests=requests_table(
            n,
            client_start=start,
            client_end=start + (e2e_ms * MS).astype(np.int64),
            prompt_tokens=np.full(n, prompt, dtype=np.int32),
            output_tokens=np.full(n, 10, dtype=np.int32),
        ),
    )


def named(said: CompareReport, what: str) -> Difference:
    return next(d for d in said.differences if d.what == what)


HEALTHY = [Work(generation=2 + 2 * (i % 3)) for i in range(60)]


def test_two_runs_of_one_service_do_not_differ_surely() -> None:
    said = compare_captures(view(service(HEALTHY, seed=1)), view(service(HEALTHY, seed=2)))
    assert said.differences
    assert [d.what for d in said.differences if d.sure] == []
    assert said.explanation == "No difference is larger than chance explains."


def test_a_slower_operator_is_named_with_what_it_adds_to_a_step() -> None:
    slow = [replace(work, slow={"aten::sdpa": 6.0}) for work in HEALTHY]
    said = compare_captures(view(service(HEALTHY, seed=1)), view(service(slow, seed=2)))
    found = [d for d in said.differences if d.layer == "operator" and d.sure and "layer" not in d.what]
    assert {d.what.partition(" in ")[0] for d in found} == {"aten::sdpa"}
    assert all(d.ratio == pytest.approx(6.0, rel=0.1) and d.low <= d.ratio <= d.high for d in found)  # type: ignore[operator]
    assert named(said, "decode step of as many tokens").sure
    assert "aten::sdpa" in said.explanation or "decode step" in said.explanation


def test_more_calls_of_an_operator_are_a_difference_of_their_own() -> None:
    more = [replace(work, repeat=3) for work in HEALTHY]
    said = compare_captures(view(service(HEALTHY, seed=1)), view(service(more, seed=2)))
    calls = [d for d in said.differences if d.what.startswith("calls of aten::silu")]
    assert calls and all((d.before, d.after, d.ratio, d.unit) == (4.0, 12.0, 3.0, "calls") for d in calls)


def test_steps_of_as_many_tokens_are_set_against_each_other() -> None:
    larger = [Work(generation=4 + 2 * (i % 3)) for i in range(60)]
    said = compare_captures(view(service(HEALTHY, seed=1)), view(service(larger, seed=2)))
    assert named(said, "decode step").ratio > 1.2  # type: ignore[operator]
    assert not named(said, "decode step of as many tokens").sure


def test_values_of_requests_are_exact_and_few_of_them_are_never_sure() -> None:
    made = service(HEALTHY)
    fast, slow = np.linspace(90, 110, 21), np.linspace(190, 210, 21)
    said = named(compare_captures(view(with_requests(made, fast)), view(with_requests(made, slow))), "end to end (e2e)")
    assert (said.before, said.after, said.ratio, said.sure) == (100.0, 200.0, 2.0, True)
    few = compare_captures(view(with_requests(made, fast[:5])), view(with_requests(made, slow[:5])))
    assert not named(few, "end to end (e2e)").sure


def test_other_engines_and_other_models_are_not_compared() -> None:
    made = service(HEALTHY)
    other = compare_captures(view(made), view(replace(made, engine="sglang")))
    assert other.differences == [] and "vllm" in other.note and "sglang" in other.note
    strange = view(made)
    renamed = replace(strange.assessment.baselines, name=[f"x{name}" for name in strange.assessment.baselines.name])
    model = compare_captures(view(made), replace(strange, assessment=replace(strange.assessment, baselines=renamed)))
    assert model.differences == [] and "different models" in model.note


def test_two_requests_are_sure_to_differ_only_beyond_what_like_requests_do() -> None:
    rng = np.random.default_rng(0)
    e2e = 100 * np.exp(rng.normal(0, 0.1, 30))
    e2e[3], e2e[7], e2e[9] = 100, 110, 300
    one = view(with_requests(service(HEALTHY), e2e))
    near = named(compare_requests(RequestView(one, 3), RequestView(one, 7)), "end to end (e2e)")
    far = compare_requests(RequestView(one, 3), RequestView(one, 9))
    assert (near.before, near.after, near.sure) == (100.0, 110.0, False)
    assert named(far, "end to end (e2e)").sure
    assert far.explanation.startswith("End to end (e2e) 100 -> 300 ms (x3), further apart than like requests")
    assert (far.before, far.after, far.kind) == ("0123456789abcdef/4", "0123456789abcdef/10", "requests")


SAID = re.compile(
    r"(?:before: |; )(?P<what>[^;]+?) (?P<before>[\d.]+) -> (?P<after>[\d.]+) ?[^;(]*\(x(?P<ratio>[\d.]+)\)"
)


@given(st.floats(0.001, 1000), st.floats(1.5, 50))
@example(0.99999, 2.0)
@example(0.0099999, 2.0)
@example(999.99, 1.5)
@settings(max_examples=20)
def test_the_words_are_short_and_every_number_of_them_rounds_one_of_the_differences(
    middle: float, times: float
) -> None:
    made, spread = service(HEALTHY), np.linspace(0.95, 1.05, 21)
    slow = with_requests(made, middle * times * spread, prompt=27)
    said = compare_captures(view(with_requests(made, middle * spread)), view(slow))
    found = list(SAID.finditer(said.explanation))
    assert len(found) == said.explanation.count("->") > 0
    for match in found:
        exact = named(said, match["what"])
        for word in ("before", "after", "ratio"):
            assert float(match[word]) == pytest.approx(getattr(exact, word), rel=0.005)
            assert len(match[word].replace(".", "").lstrip("0")) <= 3 or "." not in match[word]


@given(st.integers(1, 300), st.sampled_from([0.5, 0.9]), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_an_interval_holds_its_quantile(n: int, q: float, seed: int) -> None:
    value = np.random.default_rng(seed).normal(size=n)
    middle, low, high = order_interval(value, q)
    assert low <= middle <= high
    assert middle == pytest.approx(np.quantile(value, q))


def test_nineteen_in_twenty_intervals_hold_the_true_median() -> None:
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        _, low, high = order_interval(rng.normal(size=41), 0.5)
        held += low <= 0 <= high
    assert held >= 0.93 * 400
