"""The slow beside the fast: what was put there is found, and nothing is claimed of too few or by chance."""

from typing import Any

import numpy as np
import pytest

from teller_core.data.outcomes import Outcomes
from teller_core.data.steps import Participation, Requests, Role
from teller_core.data.table import UNKNOWN
from teller_core.store.told_lines import ToldLines
from teller_core.tell.cohort_features import Known
from teller_core.tell.cohorts import FEWEST, Told, what_differs
from tests.core.store.made import empty, filled

MS = 1_000_000
SECOND = 1_000 * MS


def requests_of(size: int, **columns: Any) -> Requests:
    """Requests of which all times are unknown but those in ``columns``."""
    times = ("client_start", "received", "tokenized", "queued", "scheduled", "first_token", "last_token", "finished")
    times += ("client_first", "client_end", "itl_max", "itl_max_at", "queue_ns")
    unknown = {name: [UNKNOWN] * size for name in times}
    counts = {name: [-1] * size for name in ("prompt_tokens", "output_tokens", "cached_tokens", "preemptions")}
    return filled(Requests, size, **{"number": range(1, size + 1), **unknown, **counts, **columns})


def known_of(requests: Requests, **parts: Any) -> Known:
    nothing = {"participation": empty(Participation), "outcomes": empty(Outcomes), "lines": None}
    return Known(requests, **{**nothing, **parts})


def slowest_quarter(size: int) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    """int64 ns a request, and which of them are the slowest quarter: every fourth."""
    slow = np.arange(size) % 4 == 3
    return np.where(slow, 9 * SECOND, SECOND) + np.arange(size) * MS, slow


def rows(told: Told) -> dict[str, dict[str, Any]]:
    assert told.contrast is not None
    return {str(row[0]): dict(zip(told.contrast.columns, row, strict=True)) for row in told.contrast.rows}


def test_columns_hold_medians_effect_interval_and_counts_and_the_sentence_is_theirs() -> None:
    value, slow = slowest_quarter(40)
    prompt = np.where(slow, 4000, 100) + np.arange(40)
    told = what_differs(known_of(requests_of(40, prompt_tokens=prompt, output_tokens=[7] * 40)), value)
    row = rows(told)["prompt tokens"]
    assert (row["slow"], row["fast"]) == (pytest.approx(np.median(prompt[slow]), rel=1e-3), np.median(prompt[~slow]))
    assert (row["effect"], row["high"], row["of_slow"], row["of_fast"], row["claimed"]) == (1.0, 1.0, 10, 30, True)
    assert "output tokens" not in rows(told)  # the same of all: no respect in which they could differ
    assert (
        told.sentence
        == f"The slowest quarter differs from the rest in prompt tokens (median {row['slow']:.4g} against 119)."
    )


def test_what_is_true_of_many_slow_ones_and_few_others_is_told_in_shares() -> None:
    value, slow = slowest_quarter(80)
    causes = ["host.gc_pause" if is_slow and at % 8 == 3 else "" for at, is_slow in enumerate(slow)]
    outcomes = filled(
        Outcomes, 80, request=range(1, 81), cause=causes, rank=np.where(slow, 3, -1), queue=np.where(slow, 5, 1) * MS
    )
    told = what_differs(known_of(requests_of(80), outcomes=outcomes), value)
    assert (rows(told)["cause host.gc_pause"]["slow"], rows(told)["cause host.gc_pause"]["fast"]) == (0.5, 0.0)
    assert rows(told)["rank named 3"]["claimed"]
    assert "rank named 3 (100 % of them against 0 %)" in told.sentence


def test_the_batch_and_the_prompts_beside_it_are_those_of_the_steps_that_served_it() -> None:
    value, slow = slowest_quarter(32)
    # A step for each fast one alone, and one for every slow one, in which all requests of an idle load take part as well.
    steps = [(step, step, 1, Role.DECODE) for step in range(32)]
    beside = [(step, at, 500, Role.PREFILL) for step in np.flatnonzero(slow).tolist() for at in (0, 1, 2)]
    table = sorted(steps + beside)
    part = filled(
        Participation,
        len(table),
        **{name: [row[at] for row in table] for at, name in enumerate(("step", "request", "tokens", "role"))},
    )
    told = what_differs(known_of(requests_of(32), participation=part), value)
    assert rows(told)["batch"]["slow"] == 4.0
    assert rows(told)["batch"]["fast"] == 1.0
    assert rows(told)["prompts of others in its steps"]["slow"] == 1500.0


def test_lines_around_slow_requests_are_found_and_those_that_are_everywhere_are_not() -> None:
    size = 64
    value, slow = slowest_quarter(size)
    began = np.arange(size) * 100 * SECOND
    requests = requests_of(size, client_start=began, client_end=began + value)
    stalls, everywhere = began[slow] + 5 * SECOND, began + SECOND // 2
    rare = began[:3] + SECOND
    time = np.concatenate([stalls, everywhere, rare])
    template = np.repeat([0, 1, 2], [len(stalls), len(everywhere), len(rare)])
    called = [("", "stalled for *"), ("vllm.stats", ""), ("vllm.rare", "")]
    lines = ToldLines(time, template.astype(np.int32), np.full(len(time), -1, np.int32), called)
    found = rows(what_differs(known_of(requests, lines=lines), value))
    assert (found["log line like"]["slow"], found["log line like"]["fast"], found["log line like"]["claimed"]) == (
        1,
        0,
        True,
    )
    assert found["log line like"]["untrusted_text"] == "stalled for *"
    assert "log line vllm.stats" not in found
    assert not found["log line vllm.rare"]["claimed"]


def test_who_takes_longer_has_no_more_lines_around_it_than_others_by_that_alone() -> None:
    size, random = 200, np.random.default_rng(3)
    value, _ = slowest_quarter(size)
    began = np.sort(random.integers(0, 1000 * SECOND, size))
    requests = requests_of(size, client_start=began, client_end=began + value)
    time = np.sort(
        random.integers(0, 1000 * SECOND, 60)
    )  # one in 17 s, whatever happens: most of what takes 9 s, few of 1 s
    during = [bool(((time >= low) & (time <= low + took)).any()) for low, took in zip(began, value, strict=True)]
    slow = value > 5 * SECOND
    assert (
        np.mean(np.array(during)[slow]) - np.mean(np.array(during)[~slow]) > 0.3
    )  # what looking while it lasts would claim
    lines = ToldLines(time, np.zeros(60, np.int32), np.full(60, -1, np.int32), [("vllm.stats", "")])
    assert abs(rows(what_differs(known_of(requests, lines=lines), value))["log line vllm.stats"]["effect"]) < 0.2


def test_a_line_that_names_a_request_is_only_around_that_one() -> None:
    value, slow = slowest_quarter(32)
    named = np.flatnonzero(slow).astype(np.int32)
    requests = requests_of(32, client_start=[0] * 32, client_end=value)
    lines = ToldLines(np.zeros(8, np.int64), np.zeros(8, np.int32), named, [("vllm.preempted", "")])
    row = rows(what_differs(known_of(requests, lines=lines), value))["log line vllm.preempted"]
    assert (row["slow"], row["fast"]) == (1.0, 0.0)


def test_of_too_few_requests_nothing_is_said_however_clear_it_looks() -> None:
    value, slow = slowest_quarter(FEWEST - 1)
    told = what_differs(known_of(requests_of(FEWEST - 1, prompt_tokens=np.where(slow, 9000, 1))), value)
    assert told.contrast is None
    assert told.sentence == "Only 15 requests measured: too few to tell the slow from the fast (at least 16)."
    nothing = what_differs(known_of(requests_of(3)), np.full(3, UNKNOWN))
    assert nothing.contrast is None
    assert nothing.sentence.startswith("Nothing recorded how long")


@pytest.mark.parametrize("size", [FEWEST, 40, 400])
def test_where_nothing_differs_a_claim_is_made_in_one_of_twenty_captures_at_most(size: int) -> None:
    claimed = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        requests = requests_of(
            size,
            prompt_tokens=random.integers(1, 4000, size),
            output_tokens=random.integers(1, 300, size),
            cached_tokens=random.integers(0, 3, size) * 16,
            finish_reason=random.choice(["stop", "length"], size).tolist(),
        )
        told = what_differs(known_of(requests), random.permutation(size).astype(np.int64) * MS)
        claimed += any(row["claimed"] for row in rows(told).values())
    assert claimed <= 10


def test_a_log_that_is_too_long_to_look_through_is_said() -> None:
    value, _ = slowest_quarter(40)
    contrast = what_differs(known_of(requests_of(40, prompt_tokens=range(40))), value).contrast
    assert contrast is not None
    assert "too many lines" in contrast.note
