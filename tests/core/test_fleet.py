"""The tail of many captures: parts that sum to the gap to the ns, as a plain computation has them; who stands out is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller_core.data.report_fleet import FleetReport
from teller_core.errors import InputError, UnknownName
from teller_core.fleet import fleet
from teller_core.store.store import Store
from tests.core.fleet_made import MINUTE, MS, NOON, cohorts, drawn, keep, mean, together

CALM = 300


def groups(report: FleetReport, of: str) -> dict[str, dict[str, Any]]:
    rows: list[dict[str, Any]] = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    return {str(row["what"]): row for row in rows if row["of"] == of}


def replicas(report: FleetReport) -> dict[str, dict[str, Any]]:
    rows: list[dict[str, Any]] = [dict(zip(report.replica_columns, row, strict=True)) for row in report.replica_rows]
    return {str(row["replica"]): row for row in rows}


def struck(store: Store) -> list[dict[str, Any]]:
    """Six calm replicas and one whose queue is long: for half of its requests a cause is named, on rank 2 of it."""
    parts = [drawn(seed, CALM) for seed in range(6)]
    parts.append(drawn(6, 120, queue=60))
    for at, phases in enumerate(parts):
        bad = at == 6
        cause = ["scheduler.queue_saturation" if bad and one % 2 else "" for one in range(len(phases["queue"]))]
        keep(
            store,
            f"0{at}" * 8,
            phases,
            cause=cause,
            rank=[2] * len(cause),
            host="host-b" if bad else "host-a",
            prompt_tokens=np.full(len(cause), 5000 if bad else 100 + at, np.int32),
        )
    return parts


def test_what_phases_add_sums_to_the_gap_and_is_what_sorting_all_requests_gives(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        phases = together(struck(store))
        report = fleet(store)
    assert (report.captures, report.replicas, report.requests, report.quantile) == (7, 7, 1920, 0.99)
    tail, middle = cohorts(phases, 0.99)
    value = np.array(list(phases.values())).sum(axis=0)
    assert (
        report.gap_ns == round(mean(value[tail]) - mean(value[middle])) == sum(part.ns or 0 for part in report.phases)
    )
    assert report.tail is not None
    assert report.middle is not None
    assert (report.tail.requests, report.middle.requests) == (int(tail.sum()), int(middle.sum()))
    for part in report.phases:
        if part.part not in phases:
            assert (part.ns, part.share, part.tail_ms) == (None, None, None)
            continue
        ns = phases[part.part]
        assert part.ns is not None
        assert part.low_ms is not None
        assert part.high_ms is not None
        assert abs(part.ns - float(mean(ns[tail]) - mean(ns[middle]))) < 1
        error = np.sqrt(ns[tail].var() / (tail.sum() - 1) + ns[middle].var() / (middle.sum() - 1)) * 1.959964 / MS
        assert part.low_ms == pytest.approx(part.ns / MS - error, abs=0.01)
        assert part.high_ms == pytest.approx(part.ns / MS + error, abs=0.01)


def test_of_every_kind_the_parts_sum_to_the_same_gap_and_the_counts_to_the_cohorts(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        struck(store)
        report = fleet(store)
    assert report.tail is not None
    assert report.middle is not None
    kinds = {str(row[0]) for row in report.rows}
    assert kinds == {"cause", "rank", "replica", "host", "prompt"}  # all are of one service, and ended alike
    for of in kinds:
        told = groups(report, of).values()
        assert sum(row["ns"] for row in told) == report.gap_ns
        assert sum(row["in_tail"] for row in told) == report.tail.requests
        assert sum(row["in_middle"] for row in told) == report.middle.requests


def test_the_replica_that_was_struck_is_named_with_its_host_its_phase_its_kind_and_what_would_be_without_it(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "t.db") as store:
        parts = struck(store)
        report = fleet(store)
    found = replicas(report)
    assert [label for label, row in found.items() if row["named"]] == ["06" * 6]
    row = found["06" * 6]
    value = np.sort(np.array(list(together(parts[:6]).values())).sum(axis=0))
    assert row["without_ms"] == pytest.approx(value[int(np.ceil(0.99 * len(value))) - 1] / MS, abs=0.001)
    assert (row["tail_share"], row["share"], row["name"]) == (1.0, 0.062, f"capture {'06' * 8}")
    assert [part.part for part in report.phases if part.named] == ["queue"]
    assert groups(report, "cause")["scheduler.queue_saturation"]["named"]
    assert groups(report, "rank")["rank 2"]["named"]
    assert groups(report, "host")["host-b"]["named"]
    assert groups(report, "prompt")["4,096 to 16,383 tokens"]["named"]
    assert not groups(report, "cause")["none named"]["named"]
    assert report.verdict == "explained"
    for words in (f"Replica {'06' * 6} has 100 % of the tail and 6.2 % of all requests", "are queue", "host host-b"):
        assert words in report.explanation
    assert {one.capture for one in report.examples} == {"06" * 8}
    slowest = np.array(list(parts[6].values())).sum(axis=0)
    assert [one.request for one in report.examples] == (np.argsort(-slowest)[:3] + 1).tolist()


def test_where_nobody_was_struck_no_replica_and_no_kind_is_named(tmp_path: Path) -> None:
    named = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        with Store.open(tmp_path / f"{seed}.db") as store:
            for at in range(4):
                cause = random.choice(["", "host.gc_pause", "comm.degraded_link"], 100).tolist()
                prompt = random.integers(1, 9000, 100).astype(np.int32)
                keep(store, f"{at}a", drawn(100 * seed + at, 100), cause=cause, rank=[at] * 100, prompt_tokens=prompt)
            report = fleet(store)
        named += any(row[-1] for row in report.replica_rows) or any(row[-1] for row in report.rows)
    assert named <= 1


@pytest.mark.parametrize(
    ("size", "quantile"), [(30, None), (89, None), (90, 0.9), (179, 0.9), (180, 0.95), (899, 0.95), (900, 0.99)]
)
def test_a_tail_has_ten_requests_at_least_or_nothing_is_told(tmp_path: Path, size: int, quantile: float | None) -> None:
    with Store.open(tmp_path / "t.db") as store:
        keep(store, "0a", drawn(1, size))
        report = fleet(store)
    assert report.quantile == quantile
    if quantile is None:
        assert report.verdict == "could_not_tell"
        assert (report.phases, report.rows, report.explanation) == ([], [], "")
        assert report.reason.startswith(f"{size} requests measured are too few")
    else:
        assert report.tail is not None
        assert report.tail.requests >= 10


def test_where_all_took_as_long_there_is_no_tail(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        keep(store, "0a", {"decode": np.full(200, 7 * MS)})
        report = fleet(store)
    assert (report.verdict, report.phases) == ("could_not_tell", [])
    assert "there is no tail" in report.reason


def test_by_default_the_last_hour_of_what_is_stored_is_looked_at_and_what_is_left_out_is_counted(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "t.db") as store:
        keep(store, "0a", drawn(1, 100), began=NOON - 3 * 60 * MINUTE)
        keep(store, "0b", drawn(2, 100), began=NOON)
        keep(store, "0c", drawn(3, 100), began=NOON - 30 * MINUTE)
        keep(store, "0d", drawn(4, 100), began=5)  # since its machine started: no day
        hour, all_of_it = fleet(store), fleet(store, since="4h")
        some = fleet(store, since="2026-11-30 11:30:00", until="2026-11-30T11:31:00+00:00")
        one = fleet(store, since="10min")
        with pytest.raises(InputError, match="it is not before the end"):
            fleet(store, since="10min", until="30min")
        with pytest.raises(InputError, match="it is no date") as refused:
            fleet(store, since="yesterday")
        assert "yesterday" not in str(refused.value)
    assert (hour.captures, hour.requests, hour.left_out) == (2, 200, {"without dates": 1, "of other times": 1})
    assert (all_of_it.captures, all_of_it.requests) == (3, 300)
    assert (some.captures, some.requests, some.since) == (1, 60, "2026-11-30 11:30:00.000")
    assert (one.captures, one.requests) == (1, 100)


def test_where_no_capture_has_dates_all_are_looked_at_and_no_time_can_be_asked_for(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        keep(store, "0a", drawn(1, 100), began=5)
        keep(store, "0b", drawn(2, 100), began=10**15)
        report = fleet(store)
        with pytest.raises(InputError, match="no capture here has dates"):
            fleet(store, since="1h")
    assert (report.requests, report.since, report.until) == (200, None, None)


def test_one_service_is_asked_for_by_its_name_its_engine_or_its_model(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        keep(store, "0a", drawn(1, 100), model="tiny")
        keep(store, "0b", drawn(2, 100, decode=9), model="Large-70B")
        both, large = fleet(store), fleet(store, service="large-70b")
        assert fleet(store, service="vllm-1-Large-70B") == large.model_copy(update={"service": "vllm-1-Large-70B"})
        assert fleet(store, service="vllm").captures == 2
        with pytest.raises(UnknownName, match="of 2 services here") as refused:
            fleet(store, service="mistral")
        assert "mistral" not in str(refused.value)
    assert both.services == {"vllm-1-tiny": 1, "vllm-1-Large-70B": 1}
    assert groups(both, "service")["vllm-1-Large-70B"]["named"]  # two services in one answer: that is why
    assert (large.captures, large.left_out) == (1, {"of other services": 1})


def test_engines_of_one_capture_are_replicas_of_their_own(tmp_path: Path) -> None:
    phases = together([drawn(1, 300), drawn(2, 60, own_prefill=40)])
    engine = np.repeat([0, 1], [300, 60]).astype(np.int32)
    with Store.open(tmp_path / "t.db") as store:
        keep(store, "0a" * 8, phases, engine=engine)
        report = fleet(store)
    assert [label for label, row in replicas(report).items() if row["named"]] == [f"{'0a' * 6} engine 1"]


def test_a_store_without_requests_says_what_to_do(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store, pytest.raises(UnknownName, match="Import logs or traces"):
        fleet(store)
