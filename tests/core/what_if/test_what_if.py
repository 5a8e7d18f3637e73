"""What a request would have gained, asked of a store."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.table import UNKNOWN
from teller_core.errors import InputError, UnknownName
from teller_core.judge.assess import assess
from teller_core.store.store import Store
from teller_core.tell.layout import Style
from teller_core.tell.summary import capture_report
from teller_core.tell.text import page
from teller_core.what_if import what_if
from teller_core.what_if.supposed import supposed
from tests.core.judge.reschedule.served import MS, Engine, Served, capture, crowd, served

ENGINE = Engine(seats=4)
LOW, HIGH, EXTRA = 400, 700, 40
WANTED = crowd(2, 60, 25.0, prompt=60)


def happened(extra: int = EXTRA) -> Served:
    rng = np.random.default_rng(3)
    noise = {at: int(rng.exponential(MS / 4)) for at in range(4_000)}

    def disturbed(now: int) -> int:
        return noise[now // MS] + (extra * MS if LOW * MS <= now < HIGH * MS else 0)

    return served(WANTED, ENGINE, disturbed)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Generator[Store]:
    whole = capture(happened())
    bare = replace(
        whole, id="ba5e", requests=replace(whole.requests, queued=np.full_like(whole.requests.queued, UNKNOWN))
    )
    with Store.open(Path(tmp_path_factory.mktemp("s")) / "t.db") as opened:
        for one in (bare, whole):
            told = capture_report(one, already_known=False, imported_at="2026-11-29T12:00:00Z", findings=[])
            opened.save(one, assess(one), [], told)
        yield opened


def test_slow_steps_at_their_usual_time_give_what_an_engine_without_the_trouble_gives(store: Store) -> None:
    troubled, calm = happened(), happened(0)
    gained = sorted(range(60), key=lambda one: calm.done[one] - troubled.done[one])[:5]
    for one in gained:
        found = what_if(store, str(one + 1), ["steps=usual"], capture="5e77ed").rescheduled
        truth = (troubled.done[one] - calm.done[one]) / MS
        assert truth > 100
        assert found.saving_ms == pytest.approx(truth, rel=0.15)
        assert found.saving_ms is not None and found.saving_low_ms is not None and found.saving_high_ms is not None
        assert found.saving_low_ms <= found.saving_ms <= found.saving_high_ms


def test_one_step_made_shorter_or_longer_moves_its_requests_by_that(store: Store) -> None:
    whole = capture(happened())
    (step,) = whole.participation.step[whole.participation.request == 30][-1:].tolist()
    took = (whole.steps.finished[step] - whole.steps.scheduled[step]) / MS
    for change in (-3.0, 25.0):
        found = what_if(store, "31", [f"step {step}={took + change:.6f}ms"], capture="5e77ed")
        assert found.steps == 1
        assert found.same_schedule.saving_ms == pytest.approx(-change, abs=0.01)
        assert found.rescheduled.saving_ms == pytest.approx(-change, abs=0.01)


def test_neighbors_are_called_by_their_numbers_and_the_page_names_them(store: Store) -> None:
    found = what_if(store, "31", ["steps=usual"], capture="5e77ed")
    assert 0 < len(found.slowed_by) <= 5 and all(one.request != 31 for one in found.slowed_by)
    shown = page(found, Style(width=100))
    assert f"request {found.slowed_by[0].request}: " in shown and "With batches made anew" in shown
    assert "sooner" in shown


def test_without_arrivals_no_claim_is_made_and_the_page_says_why(store: Store) -> None:
    found = what_if(store, "31", ["steps=usual"], capture="ba5e")
    assert found.rescheduled.saving_ms is None and found.check is None
    assert "reached the engine" in found.rescheduled.saving_assumes
    assert page(found, Style(width=100)).count("No saving is claimed") == 2


def test_first_tokens_are_asked_for_by_metric(store: Store) -> None:
    found = what_if(store, "31", ["steps=usual"], capture="5e77ed", metric="ttft")
    whole = what_if(store, "31", ["steps=usual"], capture="5e77ed")
    assert found.rescheduled.saving_ms is not None and whole.rescheduled.saving_ms is not None
    assert found.metric == "ttft" and found.rescheduled.saving_ms <= whole.rescheduled.saving_ms


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([], "it is nothing"),
        (["step 17"], "what took what"),
        (["=1ms"], "what took what"),
        (["step 17=soon"], "cannot be read"),
        (["steps=1ms"], "only be as usual"),
        (["step 17=1ms", "step 17=2ms"], "two times"),
        (["aten::mm=usual"], "cannot be read"),
    ],
)
def test_what_says_nothing_is_refused(texts: list[str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        supposed(texts)


def test_durations_are_read_in_every_unit() -> None:
    assert [supposed([f"step 1={text}"])[0].ns for text in ("2", "2ms", "1.5 us", "7ns", "3s", "0")] == [
        2 * MS,
        2 * MS,
        1_500,
        7,
        3_000 * MS,
        0,
    ]
    kinds = [supposed([text])[0].kind for text in ("0:12=1ms", "aten::mm=1ms", "step 3=usual", "steps=usual")]
    assert kinds == ["span", "operator", "step", "steps"]


def test_what_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(UnknownName, match="the steps 0 to"):
        what_if(store, "31", ["step 99999=1ms"], capture="5e77ed")
    with pytest.raises(UnknownName):
        what_if(store, "999", ["steps=usual"], capture="5e77ed")
    with pytest.raises(InputError, match="e2e or ttft"):
        what_if(store, "31", ["steps=usual"], capture="5e77ed", metric="tpot")
