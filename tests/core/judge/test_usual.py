"""What is usual, and what was beside, against plain loops over the same rows."""

import statistics
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from teller_core.data.steps import Role
from teller_core.data.table import UNKNOWN
from teller_core.judge import rules_device, rules_scheduler, sheet_ranks

STEPS, REQUESTS = 5, 4
parts = some.dictionaries(
    some.tuples(some.integers(0, STEPS - 1), some.integers(0, REQUESTS - 1)),
    some.tuples(some.sampled_from([Role.PREFILL, Role.DECODE]), some.integers(1, 50)),
    max_size=STEPS * REQUESTS,
)
"""By step and request: its role there, and its tokens."""


@given(parts, some.integers(0, REQUESTS - 1))
def test_the_longest_prompt_beside_a_request_is_that_of_another_one(
    part: dict[tuple[int, int], tuple[Role, int]], request: int
) -> None:
    table = SimpleNamespace(
        step=np.array([step for step, _ in part], np.int32),
        request=np.array([who for _, who in part], np.int32),
        role=np.array([role for role, _ in part.values()], np.uint8),
        tokens=np.array([tokens for _, tokens in part.values()], np.int32),
    )
    case: Any = SimpleNamespace(capture=SimpleNamespace(participation=table), begin=np.zeros(STEPS))
    expected = [0] * STEPS
    for (step, who), (role, tokens) in part.items():
        if role == Role.PREFILL and who != request:
            expected[step] = max(expected[step], tokens)
    assert rules_scheduler._longest(case).beside(request).tolist() == expected


steps = some.lists(
    some.tuples(some.integers(0, 10**9), some.booleans(), some.booleans()), min_size=1, max_size=40
)  # ns that it stood still, computes a prompt, has a profile


@given(steps)
def test_steps_stand_still_usually_for_the_median_of_profiled_ones_of_their_kind(
    table: list[tuple[int, bool, bool]],
) -> None:
    ns = np.array([each for each, *_ in table], np.int64)
    case: Any = SimpleNamespace(
        profiled=np.array([profiled for *_, profiled in table]),
        capture=SimpleNamespace(
            steps=SimpleNamespace(context_tokens=np.array([7 * prompt for _, prompt, _ in table], np.int32))
        ),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules_device, "marks", lambda _: SimpleNamespace(ns={"sync": ns}))
        found = rules_device._usually(case, "sync")
    alike = [[each for each, prompt, profiled in table if profiled and prompt == kind] for kind in (False, True)]
    assert found == tuple(int(statistics.median(mine)) if mine else 0 for mine in alike)


calls = some.lists(
    some.tuples(some.integers(-1, 2), some.integers(0, 10**6), some.one_of(some.none(), some.integers(0, 2 * 10**6))),
    min_size=1,
    max_size=40,
)  # its meeting, what it took, what it waited of that


@given(calls)
def test_collectives_of_a_kind_take_usually_the_median_of_what_they_did_not_wait(
    table: list[tuple[int, int, int | None]],
) -> None:
    kinds = ["all_reduce", "all_gather", "all_reduce"]
    met = SimpleNamespace(
        rank=np.zeros(len(table), np.int32),
        sequence=np.array([at for at, *_ in table], np.int64),
        dur=np.array([dur for _, dur, _ in table], np.int64),
        wait=np.array([UNKNOWN if wait is None else wait for *_, wait in table], np.int64),
    )
    case: Any = SimpleNamespace(capture=SimpleNamespace(collectives=met, meetings=SimpleNamespace(kind=kinds)))
    usual, kind = sheet_ranks._usually(case)
    assert kind == [sheet_ranks.CALLED if at < 0 else kinds[at] for at, *_ in table]
    assert set(usual) == set(kind)
    for name, middle in usual.items():
        moved = [
            max(dur - (wait or 0), 0) for (_, dur, wait), called in zip(table, kind, strict=True) if called == name
        ]
        assert statistics.median_low(moved) <= middle <= statistics.median_high(moved)
