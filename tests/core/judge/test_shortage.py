"""When an engine had no place for more, and what that cost those that had one."""

import numpy as np

from teller_core.data.table import UNKNOWN
from teller_core.judge.diagnose import diagnose_all
from teller_core.judge.intervals import covers
from teller_core.judge.prepare import prepare
from teller_core.judge.scene import scene
from teller_core.judge.shortage import SHORT_NS, crowded, kept_out
from tests.core.judge.serving import MS, ZERO, Ask, serve

CROWD = [Ask(at * 60) for at in range(40)]


def test_requests_are_kept_out_from_the_end_of_the_step_in_which_they_came() -> None:
    case = prepare(*serve(CROWD, slots=3))
    table, begin, stop = case.capture.requests, case.begin, case.stop
    found = kept_out(case, 0)
    for moment in range(ZERO, int(table.finished.max()), 7 * MS):
        waiting = False
        for queued, taken in zip(table.queued.tolist(), table.scheduled.tolist(), strict=True):
            running = (begin <= queued) & (stop > queued)
            since = max(int(stop[running].max()) if running.any() else queued, queued)
            waiting |= since <= moment < taken and taken - since > SHORT_NS
        assert bool(covers(found, np.array([moment]))[0]) == waiting


def test_nobody_is_kept_out_and_nothing_is_crowded_where_there_is_room() -> None:
    case = prepare(*serve(CROWD, slots=60))
    assert kept_out(case, 0).length() == 0
    assert kept_out(case, 7).length() == 0
    assert all(crowded(scene(case, request, "e2e")) == 0 for request in range(40))


def test_whom_others_wait_for_is_crowded_by_no_more_than_it_took_over_its_work() -> None:
    capture, numbers = serve([*CROWD, *[Ask(900.0, output=200) for _ in range(12)]], slots=6)
    case = prepare(capture, numbers)
    table = numbers.requests
    over = {
        int(request): int(value - work)
        for request, name, value, work in zip(table.request, table.metric, table.value, table.by_work, strict=True)
        if name == "e2e" and UNKNOWN not in (int(value), int(work))
    }
    for request in range(len(capture.requests.number)):
        assert 0 <= crowded(scene(case, request, "e2e")) <= max(over.get(request, 0), 0)


def test_who_waited_for_a_place_is_told_so_and_not_that_it_was_evicted() -> None:
    reports = diagnose_all(*serve(CROWD, slots=3))
    assert reports[30].findings[0].cause == "scheduler.queue_saturation"
    assert not any(finding.cause == "scheduler.kv_preemption" for report in reports for finding in report.findings)
