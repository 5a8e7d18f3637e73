"""What the steps of an engine computed, read from who took part in them, against an engine that is written down a second time."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.steps import Mapping
from teller_core.data.table import UNKNOWN
from teller_core.judge.reschedule.batches import batches, unfit
from tests.core.judge.reschedule.served import Ask, Engine, Served, capture, crowd, served

asks = st.lists(
    st.builds(Ask, st.integers(0, 400_000_000), st.integers(1, 90), st.integers(1, 25)), min_size=1, max_size=12
)
engines = st.builds(
    Engine,
    tokens=st.sampled_from([16, 48, 10**9]),
    seats=st.sampled_from([2, 4, 10**9]),
    blocks=st.sampled_from([14, 40, 10**9]),
    decodes_first=st.booleans(),
)


def _rows(run: Served) -> list[tuple[int, int, int, int]]:
    return [(step, one, n, cached) for step, rows in enumerate(run.rows) for one, n, cached, _, _ in sorted(rows)]


@given(asks, engines)
def test_every_row_says_what_was_in_the_cache_and_what_was_still_to_compute(wanted: list[Ask], engine: Engine) -> None:
    run = served(wanted, engine)
    found = batches(capture(run), 0)
    columns = (found.at, found.request, found.tokens, found.held)
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == _rows(run)
    for at, rows in enumerate(run.rows):
        for one, n, _, answered, _ in rows:
            (row,) = np.flatnonzero((found.at == at) & (found.request == one))
            if not answered:
                assert n <= found.ahead[row] <= wanted[one].prompt


@given(asks, engines)
def test_a_request_is_answered_by_the_step_that_ends_its_prompt_and_has_its_tokens_after(
    wanted: list[Ask], engine: Engine
) -> None:
    run = served(wanted, engine)
    found = batches(capture(run), 0)
    for one, ask in enumerate(wanted):
        assert found.ended[found.last[one]] == run.done[one]
        assert found.prompt[one] == ask.prompt
        units = found.unit[found.units[one] : found.units[one + 1]]
        assert units.tolist() == [1] * (ask.output - 1)
        assert found.ended[found.answers[one]] == run.first[one]


def test_what_was_only_inferred_is_not_batched_anew() -> None:
    whole = capture(served(crowd(1), Engine()))
    guessed = replace(whole.participation, mapping=np.full_like(whole.participation.mapping, Mapping.INFERRED))
    untimed = replace(
        whole.steps, finished=np.full_like(whole.steps.finished, UNKNOWN), delivered=whole.steps.finished * 0 + UNKNOWN
    )
    assert unfit(whole, 0) == ""
    assert "which request" in unfit(replace(whole, participation=guessed), 0)
    assert "ended" in unfit(replace(whole, steps=untimed), 0)
