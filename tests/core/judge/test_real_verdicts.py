"""Verdicts on real captures: the faults that were put in are named, their neighbors are not, and the phases add up."""

from pathlib import Path

import numpy as np
import pytest

from teller_core.data.report import WhyReport
from teller_core.tell.explain import unsupported
from tests.core.judge.captured import TRIMMED, WHOLE, answers, rebuilt

HERE = [TRIMMED / name for name in ("vllm_full", "vllm_2node", "vllm_faults/base", "vllm_faults/kv", "tfserve_shim")]
THERE = [
    WHOLE / name
    for name in (
        "vllm_full",
        "vllm_shim",
        "vllm_2node",
        "vllm_faults/base",
        "vllm_faults/kv",
        "vllm_faults/batched",
        "vllm_faults/omp8",
    )
]


@pytest.fixture(params=[*HERE, *THERE], ids=lambda path: "/".join(path.parts[-3:]))
def folder(request: pytest.FixtureRequest) -> Path:
    if not request.param.exists():
        pytest.skip("the whole captures are not at hand")
    return request.param


@pytest.fixture(params=[TRIMMED, WHOLE], ids=["trimmed", "whole"])
def root(request: pytest.FixtureRequest) -> Path:
    if not request.param.exists():
        pytest.skip("the whole captures are not at hand")
    return request.param


def first(report: WhyReport) -> str | None:
    return report.findings[0].cause if report.findings else None


def test_the_phases_of_every_request_sum_and_leave_little_unexplained(folder: Path) -> None:
    requests = rebuilt(folder)[0].requests
    whole = requests.end() - requests.begin()
    dark: list[float] = []
    for report, took in zip(answers(folder), whole.tolist(), strict=True):
        assert sum(part.ns or 0 for part in report.phases) == took
        dark.append(next(part.ns or 0 for part in report.phases if part.part == "unexplained") / took)
    assert np.median(dark) <= 0.10
    assert np.quantile(dark, 0.95) <= 0.25


def test_the_resources_of_every_request_sum_to_the_time_of_its_steps(folder: Path) -> None:
    for report in answers(folder):
        known = {part.part: part.ns for part in report.resources}
        inside = sum(part.ns or 0 for part in report.phases if part.part in ("own_prefill", "decode", "recompute"))
        assert sum(ns or 0 for ns in known.values()) <= inside + sum(
            part.ns or 0
            for part in report.phases
            if part.part in ("preempted", "queue", "between_own_chunks", "delivery")
        )


def test_every_number_of_every_explanation_stands_in_its_report(folder: Path) -> None:
    for report in answers(folder):
        assert unsupported(report) == []


def test_the_delayed_link_is_named_for_delayed_requests_and_never_for_healthy_ones(root: Path) -> None:
    reports = answers(root / "vllm_2node")
    delayed = [report for report in reports if "delay" in (report.engine_id or "")]
    healthy = [report for report in reports if "healthy" in (report.engine_id or "")]
    assert delayed
    assert healthy
    assert {first(report) for report in delayed} == {"comm.degraded_link"}
    assert not any(one.cause.startswith("comm.") for report in healthy for one in report.findings)


def test_the_evicted_requests_and_no_others_are_preempted(root: Path) -> None:
    folder = root / "vllm_faults" / "kv"
    evicted = rebuilt(folder)[0].requests.preemptions > 0
    assert evicted.sum() == 4
    named = np.array([first(report) == "scheduler.kv_preemption" for report in answers(folder)])
    assert (named == evicted).all()


def test_in_a_healthy_service_hardly_a_request_has_a_cause(root: Path) -> None:
    reports = answers(root / "vllm_faults" / "base")
    quiet = [report for report in reports if report.verdict in ("typical_here", "could_not_tell")]
    assert len(quiet) >= 0.85 * len(reports)


def test_requests_that_waited_for_the_recorder_say_so(root: Path) -> None:
    reports = answers(root / "vllm_full")
    stalled = [
        report
        for report in reports
        if next((part.ns or 0 for part in report.phases if part.part == "capture_stall"), 0) > 1_000_000_000
    ]
    assert stalled
    assert {first(report) for report in stalled} == {"host.observer_overhead"}
