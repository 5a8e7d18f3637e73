"""What the end of a cause saves in a step is what the machine saves when the fault is taken out of its program."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from teller_core.context.linking import step_linked
from teller_core.data.assessment import Assessment, Baselines, Candidates, RequestExpectations, StepExpectations
from teller_core.data.trace import Layer
from teller_core.judge.diagnose import diagnose_each
from teller_core.judge.evidence import Clue
from teller_core.judge.replay import network, saving
from teller_core.judge.replay.steps import REPLAYED
from teller_core.judge.replay.suspects import Known, Suspect, suspect
from teller_core.judge.replay.what_if import taking
from teller_core.judge.rules import RULES
from tests.core.judge.captured import TRIMMED, rebuilt
from tests.core.judge.replay.machine import Do, Program, Ran, recorded, run
from tests.core.judge.service import MS, US

FIRST, LAST, TOKEN = Do("op", "first", 10 * US), Do("op", "last", 10 * US), Do("sync", "token", 0)
MEET = Do("meet", "ncclDevKernel_AllReduce", 50 * US)
GEMM = Do("launch", "gemm", 60 * US)


def end(rans: list[Ran]) -> int:
    return max(start + dur for ran in rans for _, _, start, dur, *_ in ran.spans)


def numbers(names: list[str], rows: list[tuple[int, int, int, int, str]]) -> Assessment:
    """Candidates as (rank, row, value, normal, method), with baselines of a spread of a tenth."""
    n, none32, none64 = len(rows), np.empty(0, np.int32), np.empty(0, np.int64)
    one = np.ones(n)
    column = np.array([row[:4] for row in rows], dtype=np.int64).reshape(-1, 4).T
    baselines = Baselines(
        names,
        [""] * n,
        [""] * n,
        np.zeros(n, np.uint8),
        np.ones(n, np.int32),
        column[3],
        one / 10,
        column[3],
        one,
        one,
        one,
    )
    found = Candidates(
        step=np.zeros(n, np.int32),
        rank=column[0].astype(np.int32),
        row=column[1].astype(np.int32),
        name=names,
        layer=np.full(n, Layer.OPERATOR, np.uint8),
        value=column[2],
        normal=column[3],
        residual=one * 9,
        excess=column[2] - column[3],
        baseline=np.arange(n, dtype=np.int32),
        method=[row[4] for row in rows],
    )
    steps = StepExpectations(none64, none64, np.empty(0), none64)
    return Assessment(baselines, steps, found, RequestExpectations(none32, [], none64, none64, none64, np.empty(0)))


NOTHING = numbers([], [])


def clue(cause: str, rank: int | None = None, operator: str | None = None) -> Clue:
    return Clue(cause, MS, 0.9, [], step=0, rank=rank, operator=operator)


def without(program: Sequence[Program], *names: str) -> list[Program]:
    return [tuple(do for do in one if do.name not in names) for one in program]


GC = [(FIRST, GEMM, MEET, TOKEN, LAST), (FIRST, Do("pause", "gc", 700 * US), GEMM, MEET, TOKEN, LAST)]
OPERATOR = [(FIRST, MEET, TOKEN, LAST), (FIRST, Do("op", "aten::sort", 900 * US), MEET, TOKEN, LAST)]
LINK = [(FIRST, replace(MEET, ns=4 * MS), TOKEN, LAST)] * 2
SYNC = [(FIRST, Do("launch", "big", 400 * US), Do("sync", "item", 0), Do("op", "python", 90 * US), GEMM, TOKEN, LAST)]
MALLOC = [(FIRST, Do("call", "cudaMalloc", 90 * US), Do("call", "cudaMalloc2", 80 * US), GEMM, TOKEN, LAST)]
STOP = [(FIRST, Do("pause", "profiler_stop", 900 * US), GEMM, TOKEN, LAST)]


@pytest.mark.parametrize(
    ("faulty", "healthy", "about"),
    [
        (GC, without(GC, "gc"), clue("host.gc_pause")),
        (GC, without(GC, "gc"), clue("comm.straggler_rank", rank=1)),
        (OPERATOR, without(OPERATOR, "aten::sort"), clue("comm.straggler_rank", rank=1)),
        (LINK, [(FIRST, MEET, TOKEN, LAST)] * 2, clue("comm.degraded_link")),
        (SYNC, without(SYNC, "item"), clue("cuda.host_device_sync")),
        (MALLOC, without(MALLOC, "cudaMalloc", "cudaMalloc2"), clue("cuda.allocator")),
        (STOP, without(STOP, "profiler_stop"), clue("host.observer_overhead")),
    ],
    ids=lambda case: case.cause if isinstance(case, Clue) else None,
)
def test_a_step_without_a_fault_ends_as_replay_says(faulty: list[Program], healthy: list[Program], about: Clue) -> None:
    begin = [MS] * len(faulty)
    rans = run(faulty, {}, begin)
    linked, _, pauses = recorded(rans)
    graph = network(linked)
    found = suspect(graph, about, 0, NOTHING, Known(pauses.kind, 50.0 * US))
    assert found is not None
    said = saving(graph, found.owners, found.normal, free=found.free)
    assert said.low == pytest.approx(end(rans) - end(run(healthy, {}, begin)), abs=12 * US)


@pytest.mark.parametrize("method", ["residual", "family"])
def test_a_slow_operator_is_made_normal_within_the_spread_of_its_baseline(method: str) -> None:
    rans = run(OPERATOR, {}, [MS, MS])
    linked, rows, _ = recorded(rans)
    graph = network(linked)
    row = rows[1][1] - int(linked.first[1])
    about = numbers(["aten::sort"], [(1, row, 900 * US, 100 * US, method)])
    found = suspect(graph, clue("host.slow_operator", 1, "aten::sort"), 0, about, Known([], float("nan")))
    assert isinstance(found, Suspect)
    assert found.normal.tolist() == [100 * US]
    assert found.fast[0] == pytest.approx(100 * US / np.exp(0.1), abs=1)
    assert found.slow[0] == pytest.approx(100 * US * np.exp(0.1), abs=1)
    other = run(OPERATOR, {"1.aten::sort": 100 * US}, [MS, MS])
    assert saving(graph, found.owners, found.normal).low == end(rans) - end(other)
    assert suspect(graph, clue("host.slow_operator", 1, "aten::mm"), 0, about, Known([], float("nan"))) is None


def test_silence_is_made_as_short_as_it_is_in_other_steps() -> None:
    program = [(FIRST, Do("quiet", "-", 600 * US), GEMM, TOKEN, LAST)]
    rans = run(program, {}, [MS])
    linked, rows, _ = recorded(rans)
    graph = network(linked)
    about = numbers(["first"], [(0, rows[0][0], 600 * US, 60 * US, "gap")])
    found = suspect(graph, clue("host.step_overhead"), 0, about, Known([], float("nan")))
    assert found is not None
    assert saving(graph, found.owners, found.normal).low == pytest.approx(540 * US, abs=US)


def test_a_cause_that_stands_at_no_span_of_the_step_saves_nothing_that_could_be_told() -> None:
    graph = network(recorded(run(OPERATOR, {}, [MS, MS]))[0])
    for cause in REPLAYED - {"comm.straggler_rank"}:
        assert suspect(graph, clue(cause, 0, "x"), 0, NOTHING, Known([], float("nan"))) is None
    assert set(RULES) >= REPLAYED - {"host.slow_operator"}


@pytest.mark.parametrize("name", ["vllm_2node"])
def test_findings_of_a_real_capture_say_what_they_save_or_why_that_cannot_be_said(name: str) -> None:
    capture, judged = rebuilt(TRIMMED / name)
    plain = list(diagnose_each(capture, judged))
    reports = list(diagnose_each(capture, judged, partial(step_linked, capture)))
    assert [sorted(f.cause for f in one.findings) for one in plain] == [
        sorted(f.cause for f in one.findings) for one in reports
    ]
    assert not any("re-timed" in f.saving_assumes for one in plain for f in one.findings)
    findings = [(one, f) for one in reports for f in one.findings]
    assert findings
    for report, found in findings:
        assert found.saving_assumes
        if found.saving_ms is None:
            assert (found.saving_low_ms, found.saving_high_ms) == (None, None)
            continue
        assert found.saving_low_ms is not None and found.saving_high_ms is not None and report.value_ms is not None
        assert found.saving_low_ms <= found.saving_ms <= found.saving_high_ms <= report.value_ms


def test_without_a_profile_a_saving_is_what_steps_took_beyond_their_work_or_says_why_not() -> None:
    folder = Path(TRIMMED / "vllm_faults")
    for name in sorted(path for path in folder.iterdir() if path.is_dir())[:1]:
        capture, judged = rebuilt(name)
        for report in diagnose_each(capture, judged, partial(step_linked, capture)):
            for found in report.findings if not report.coverage.profiled else ():
                told = "beyond what their work predicts" in found.saving_assumes
                assert told if found.saving_ms is not None else found.saving_assumes


def test_what_if_an_all_reduce_had_taken_a_millisecond() -> None:
    rans = run(LINK, {}, [MS, MS])
    linked, rows, _ = recorded(rans)
    graph = network(linked)
    call = rows[1][rans[1].calls[0][1]]
    owners, durations = taking(graph, call, MS)
    other = run(LINK, {MEET.name: MS}, [MS, MS])
    assert saving(graph, owners, durations).low == end(rans) - end(other)


def test_what_if_an_all_reduce_on_a_thread_of_its_own_had_taken_another_time_than_the_call_that_handed_it_over() -> (
    None
):
    gloo = [(FIRST, Do("gloo", "all_reduce", 3 * MS), LAST)] * 2
    rans = run(gloo, {}, [MS, MS])
    linked, rows, _ = recorded(rans)
    graph = network(linked)
    handed = rows[0][[span[0] for span in rans[0].spans].index("c10d::allreduce_")]
    assert saving(graph, *taking(graph, handed, MS)).low == 2 * MS


def test_what_if_an_operator_had_taken_twice_as_long_with_all_that_it_called() -> None:
    rans = run(OPERATOR, {}, [MS, MS])
    linked, rows, _ = recorded(rans)
    graph = network(linked)
    assert saving(graph, *taking(graph, rows[1][1], 1800 * US)).low == -900 * US
    with pytest.raises(ValueError, match="less than nothing"):
        taking(graph, 0, -1)
