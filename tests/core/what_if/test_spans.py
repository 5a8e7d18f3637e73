"""What spans would have saved, asked of a store: a request alone gains what its steps lose."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.capture import Capture, Rank
from teller_core.data.records import FileRead
from teller_core.data.steps import StepWork
from teller_core.data.trace import Layer
from teller_core.errors import InputError, UnknownName
from teller_core.judge.assess import assess
from teller_core.store.store import Store
from teller_core.tell.summary import capture_report
from teller_core.what_if import what_if
from tests.core.judge.reschedule.served import MS, Ask, Engine, capture, served
from tests.core.judge.service import Rows

STEPS, MM = 10, 2 * MS
"""Of each request, and ns of the product in each of its steps."""


def profiled() -> Capture:
    """Requests one after the other; each step runs a product of MM ns and a copy under one call of the engine."""
    whole = capture(served([Ask(at * 400 * MS, 30, STEPS) for at in range(12)], Engine()))
    rows, steps = Rows(), whole.steps
    first, stop = [], []
    for begin, end in zip(steps.scheduled.tolist(), steps.finished.tolist(), strict=True):
        first.append(rows.open("execute_model", Layer.ENGINE, begin))
        rows.open("aten::mm", Layer.OPERATOR, begin + 100_000)
        rows.close(begin + 100_000 + MM)
        rows.open("aten::copy_", Layer.OPERATOR, begin + 200_000 + MM)
        rows.close(end - 100_000)
        rows.close(end)
        stop.append(first[-1] + 3)
    count = len(first)
    work = StepWork(
        step=np.arange(count, dtype=np.int32),
        rank=np.zeros(count, np.int32),
        start=steps.scheduled,
        stop=steps.finished,
        row=np.array(first, np.int32),
        row_stop=np.array(stop, np.int32),
    )
    # A span after all steps, in none of them.
    last = int(steps.finished[-1])
    rows.open("aten::late", Layer.OPERATOR, last + MS)
    rows.close(last + 2 * MS)
    return replace(
        whole,
        files=[FileRead("trace.json", "kineto", 1)],
        ranks=[Rank(0, "host", 7, "worker", rows.tree(), 0)],
        work=work,
        tier=4,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Generator[Store]:
    whole = profiled()
    with Store.open(Path(tmp_path_factory.mktemp("s")) / "t.db") as opened:
        told = capture_report(whole, already_known=False, imported_at="2026-11-29T12:00:00Z", findings=[])
        opened.save(whole, assess(whole), [], told)
        yield opened


def test_an_operator_that_had_taken_less_ends_a_request_sooner_by_that_in_each_step(store: Store) -> None:
    found = what_if(store, "5", ["aten::mm=0.5ms"])
    assert found.steps == STEPS
    assert found.same_schedule.saving_high_ms == found.same_schedule.saving_low_ms == pytest.approx(STEPS * 1.5)
    # Shorter steps meet what disturbed others: what is tied to a time stays there.
    assert found.rescheduled.saving_high_ms == pytest.approx(STEPS * 1.5, rel=0.03)


def test_a_span_that_had_taken_longer_ends_it_later(store: Store) -> None:
    step = 4 * STEPS + 3
    found = what_if(store, "5", [f"0:{3 * step + 1}=7ms"])
    assert found.steps == 1
    assert found.same_schedule.saving_ms == pytest.approx(-5.0, abs=0.05)


def test_a_step_that_is_named_takes_what_was_said_of_it(store: Store) -> None:
    step = 4 * STEPS + 3
    alone = what_if(store, "5", [f"step {step}=1ms"])
    both = what_if(store, "5", [f"step {step}=1ms", f"0:{3 * step + 1}=1ms"])
    assert alone.same_schedule == both.same_schedule


def test_spans_and_operators_that_are_not_there_are_refused(store: Store) -> None:
    for text in ("0:99999=1ms", "7:1=1ms", "aten::nothing=1ms"):
        with pytest.raises(UnknownName):
            what_if(store, "5", [text])
    with pytest.raises(InputError, match="no step"):
        what_if(store, "5", [f"0:{3 * 12 * STEPS}=1ms"])
