"""Reports of real incidents, told again: the cause is named where it struck, and not where something else looks like it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.causes import causes
from teller_core.data.report import WhyReport
from teller_core.data.table import UNKNOWN
from teller_core.judge.diagnose import judge
from teller_core.judge.prepare import prepare
from tests.core.incidents.cases import Case, cases, changed, write
from tests.core.incidents.page import PAGE, left_out, written
from tests.core.judge.captured import rebuilt

CASES = cases()
REPORTS = 104
"""Reports that were read."""


def asked(capture: Capture, assessment: Assessment, case: Case) -> int:
    """The request that is asked about: the one that the case names, else the one that took longest by the metric."""
    table = assessment.requests
    if case.request >= 0:
        return next(i for i, name in enumerate(capture.requests.client_id) if name == f"r{case.request:03d}")
    metric = "e2e" if case.metric == "slo" else case.metric
    mine = np.array([name == metric for name in table.metric], dtype=np.bool_) & (table.value != UNKNOWN)
    assert mine.any(), "nobody knows how long a request took"
    return int(table.request[mine][np.argmax(table.value[mine])])


def why(folder: Path, case: Case) -> WhyReport:
    capture, assessment = rebuilt(folder)
    limit = round(case.limit * 1e6) or None
    return judge(prepare(capture, assessment), asked(capture, assessment, case), case.metric, limit)


def named(report: WhyReport) -> list[str]:
    return [finding.cause for finding in report.findings]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cause_of_a_report_is_named_and_its_look_alike_is_not(case: Case, tmp_path: Path) -> None:
    write(case.capture, tmp_path / "a")
    found = named(why(tmp_path / "a", case))
    if case.forbids:
        assert case.forbids not in found
    else:
        assert case.cause in found[: case.place], f"{found}"
    write(changed(case.capture, case.change), tmp_path / "b")
    instead = named(why(tmp_path / "b", case))
    if case.forbids:
        assert case.forbids in instead[: case.place], f"{instead}"
    else:
        assert case.cause not in instead


def test_what_all_steps_wait_for_breaks_a_limit_and_makes_no_request_slower_than_its_peers(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.cause == "cuda.host_device_sync" and case.metric == "slo")
    write(case.capture, tmp_path / "a")
    assert case.cause not in named(why(tmp_path / "a", replace(case, metric="e2e", limit=0.0)))


def test_every_report_has_a_case_or_a_reason() -> None:
    told = [case.report for case in CASES if case.report]
    assert len(told) == len(set(told))
    assert set(told).isdisjoint(left_out())
    assert len(told) + len(left_out()) == REPORTS


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == written(), "run python -m tests.core.incidents.page"


def test_causes_are_those_of_the_taxonomy() -> None:
    assert {case.cause for case in CASES if not case.forbids} <= causes().keys()
