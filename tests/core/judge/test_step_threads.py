"""What the thread that steps wait for did meanwhile tells apart causes that look alike in the time of a step."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture, Pauses, Samples
from teller_core.data.report import WhyReport
from teller_core.judge.diagnose import diagnose_all
from teller_core.judge.prepare import prepare
from teller_core.judge.step_threads import step_threads
from tests.core.judge.serving import MS, ZERO, Ask, Trouble, serve

CROWD = [Ask(at * 60) for at in range(40)]
STRUCK, QUIET = 14, 2
EXTRA = 30


def watched(capture: Capture, *, asleep: int = 0, waited: int = 0, held: int = 0, beside: int = 0) -> Capture:
    """With the counters of the thread that runs the steps: in each slow step it was so many ms asleep, or waited for a processor,
    or its group was held back; else it ran. ``beside``: ms that other threads of the process ran in it.
    """
    steps = capture.steps
    edges = np.arange(int(steps.launched.min()) - 100 * MS, int(steps.finished.max()) + 200 * MS, 100 * MS)
    slow = steps.finished - steps.launched > EXTRA * MS
    rows: list[tuple[int, int, str, int]] = []
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        inside = (np.minimum(steps.finished, high) - np.maximum(steps.launched, low)).clip(0)
        share = float((inside / (steps.finished - steps.launched))[slow].sum())
        lost = share * (asleep + waited + held) * MS
        ran, queued = int(inside.sum() - lost) + MS // 2, int(share * waited * MS) + MS // 10
        other = int(share * beside * MS) + MS // 2
        told = {
            "step_thread_run_ns": ran,
            "step_thread_run_queue_wait_ns": queued,
            "run_ns": ran + other,
            "run_queue_wait_ns": queued + MS // 10,
            "cgroup_throttled_us": int(share * held * 1000),
        }
        rows += [(low, high, name, value) for name, value in told.items()]
    n = len(rows)
    return replace(
        capture,
        samples=Samples(
            start=np.array([row[0] for row in rows]),
            stop=np.array([row[1] for row in rows]),
            name=[row[2] for row in rows],
            process=["host/7"] * n,
            role=["worker"] * n,
            delta=np.array([row[3] for row in rows]),
        ),
    )


def slow(*, every: int = 1, extra: int = EXTRA) -> tuple[Capture, Assessment]:
    return serve(CROWD, [Trouble("mystery", 800, 1300, extra + 1, every)])


def named(reports: list[WhyReport]) -> list[str]:
    return [finding.cause for finding in reports[STRUCK].findings]


@pytest.mark.parametrize(
    ("did", "cause"),
    [
        ({"asleep": 28}, "host.blocking_call"),
        ({"waited": 28}, "host.cpu_starvation"),
        ({"held": 28}, "host.cpu_starvation"),
        ({"asleep": 28, "beside": 28}, "frontend.detok_stream"),
        ({}, None),
    ],
)
def test_a_slow_step_is_told_by_whether_its_thread_slept_waited_was_held_back_or_ran(
    did: dict[str, int], cause: str | None
) -> None:
    capture, numbers = slow()
    reports = diagnose_all(watched(capture, **did), numbers)
    assert named(reports)[:1] == ([cause] if cause else [])
    assert not reports[QUIET].findings


def test_a_thread_that_sleeps_while_all_of_its_process_stands_still_is_the_interpreter_lock_s() -> None:
    capture, numbers = slow(every=5, extra=90)
    steps = capture.steps
    at = steps.launched[steps.finished - steps.launched > 90 * MS] + 20 * MS
    n = len(at)
    late = Pauses(at, np.full(n, 60 * MS), np.ones(n, np.int64), ["host/7"] * n, ["worker"] * n, ["thread_lag"] * n)
    asleep = watched(capture, asleep=85)
    assert named(diagnose_all(replace(asleep, pauses=late), numbers))[:1] == ["host.interpreter_lock"]
    assert named(diagnose_all(asleep, numbers))[:1] == ["host.blocking_call"]


@pytest.mark.parametrize(
    ("did", "cause"),
    [
        ({}, "host.step_overhead"),
        ({"asleep": 28}, "host.blocking_call"),
        ({"asleep": 28, "beside": 28}, "frontend.detok_stream"),
    ],
)
def test_what_takes_long_between_steps_is_the_engine_s_own_work_where_its_thread_ran(
    did: dict[str, int], cause: str
) -> None:
    capture, numbers = slow()
    capture = watched(capture, **did)
    steps, long = capture.steps, capture.steps.finished - capture.steps.launched > EXTRA * MS
    moved = np.where(long, steps.launched + EXTRA * MS, steps.launched)
    took = np.where(long, numbers.steps.took - EXTRA * MS, numbers.steps.took)
    told = replace(numbers, steps=replace(numbers.steps, took=took))
    reports = diagnose_all(replace(capture, steps=replace(steps, launched=moved)), told)
    assert named(reports)[:1] == [cause]
    assert not reports[QUIET].findings


def test_a_fault_that_fills_most_of_the_time_is_not_taken_for_calm() -> None:
    capture, numbers = serve(CROWD, [Trouble("mystery", 2000, 9000, 300)])
    capture = watched(capture, waited=295)
    case = prepare(capture, numbers)
    steps = capture.steps
    slow_time = (steps.finished - steps.launched)[steps.finished - steps.launched > 300 * MS].sum()
    assert slow_time > 0.6 * (steps.finished.max() - steps.launched.min())
    (thread,) = step_threads(case).run
    assert thread.waited.calm < 0.1e9


def test_without_counters_of_threads_nothing_is_said_of_them() -> None:
    capture, numbers = slow()
    threads = step_threads(prepare(capture, numbers))
    assert threads.doing(np.array([ZERO]), np.array([ZERO + MS]), np.zeros(1, np.bool_)) is None
    assert not threads.awake


@pytest.mark.parametrize(
    ("waits", "cause", "rank"),
    [((28, 1), "comm.straggler_rank", 0), ((1, 28), "comm.straggler_rank", 1), ((28, 28), "host.cpu_starvation", None)],
)
@pytest.mark.parametrize("traces", [1, 3])
def test_one_rank_that_is_kept_from_running_is_told_from_all_of_them_however_many_traces_it_has(
    waits: tuple[int, int], cause: str, rank: int | None, traces: int
) -> None:
    capture, numbers = slow()
    first, second = (watched(capture, waited=ms).samples for ms in waits)
    both = Samples(
        start=np.concatenate([first.start, second.start]),
        stop=np.concatenate([first.stop, second.stop]),
        name=[*first.name, *second.name],
        process=[*first.process, *["host/8"] * len(second.name)],
        role=[*first.role, *second.role],
        delta=np.concatenate([first.delta, second.delta]),
    )
    ranks = [replace(capture.ranks[0], rank=at, host="host", pid=7 + at, role="worker") for at in range(2)]
    ranks = [one for one in ranks for _ in range(traces)]
    report = diagnose_all(replace(capture, samples=both, ranks=ranks), numbers)[STRUCK]
    assert (report.findings[0].cause, report.findings[0].rank) == (cause, rank)


@pytest.mark.parametrize(("foreign", "named_too"), [(1.0, True), (0.0, False)])
def test_that_a_neighbor_uses_up_the_memory_is_not_excluded_where_it_uses_the_processors(
    foreign: float, named_too: bool
) -> None:
    capture, numbers = slow()
    capture = watched(capture, waited=28)
    own, name = capture.samples, np.array(capture.samples.name)
    ran, waited = name == "run_ns", own.delta[name == "step_thread_run_queue_wait_ns"]
    n = int(ran.sum())
    samples = Samples(
        start=np.append(own.start, own.start[ran]),
        stop=np.append(own.stop, own.stop[ran]),
        name=[*own.name, *["machine_busy_ns"] * n],
        process=[*own.process, *[""] * n],
        role=[*own.role, *[""] * n],
        delta=np.append(own.delta, own.delta[ran] + np.rint(foreign * waited).astype(np.int64)),
    )
    causes = named(diagnose_all(replace(capture, samples=samples), numbers))
    assert causes == ["host.cpu_starvation", *["host.memory_bandwidth"] * named_too]
