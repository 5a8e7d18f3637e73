"""Slow is three questions, each answered by a ratio or not at all."""

from dataclasses import replace

import numpy as np

from teller_core.data.table import UNKNOWN
from teller_core.judge.prepare import prepare
from teller_core.judge.questions import ask
from tests.core.judge.serving import MS, Ask, Trouble, serve


def test_each_ratio_is_the_value_over_its_prediction() -> None:
    capture, numbers = serve([Ask(at * 60) for at in range(10)], [Trouble("gc", 100, 105, 500)])
    said = ask(prepare(capture, numbers), 1, "e2e", 100 * MS)
    assert said.over_slo == round(said.value / (100 * MS), 2)
    assert said.over_work == round(said.value / said.by_work, 2)
    assert said.over_load is None
    assert "over_load" in said.why
    assert said.slow


def test_a_limit_is_asked_of_the_whole_and_of_each_metric_alike() -> None:
    case = prepare(*serve([Ask(0, 50, 20)]))
    assert ask(case, 0, "slo", MS).over_slo == ask(case, 0, "e2e", MS).over_slo
    assert ask(case, 0, "ttft", 10_000 * MS).over_slo == round(ask(case, 0, "ttft", None).value / (10_000 * MS), 2)


def test_an_unknown_value_has_no_ratios_and_a_reason() -> None:
    capture, numbers = serve([Ask(0, 50, 20)])
    table = numbers.requests
    blind = replace(table, value=np.full(len(table.value), UNKNOWN), by_work=np.full(len(table.value), UNKNOWN))
    said = ask(prepare(capture, replace(numbers, requests=blind)), 0, "e2e", MS)
    assert (said.over_slo, said.over_work, said.over_load) == (None, None, None)
    assert set(said.why) == {"value", "over_work", "over_load"}
    assert not said.slow
    assert said.worst == float("inf")
