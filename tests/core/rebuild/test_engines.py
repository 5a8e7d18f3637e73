"""Several engines, restarts, lost ends of logs, and steps that only one source knows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from teller_core.data.log_lines import LogLine, LogLines
from teller_core.data.records import Decision, Execution, FileRead, Iteration, Process, Recording, Sample
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.capture import rebuild

MS = 10**6
BEGIN = 1_800_000_000 * 10**9
Engine = Callable[..., Any]


def moved(recording: Recording, by: int, pids: int, engine: int, name: str) -> Recording:
    """The same run by other processes, later, as another engine, for other requests."""

    def other(process: Process) -> Process:
        return process if process.role == "frontend" else process._replace(pid=process.pid + pids)

    def renamed(tokens: Any) -> Any:
        return {name + key: value for key, value in tokens.items()}

    return replace(
        recording,
        decisions=[
            d._replace(process=other(d.process), start=d.start + by, tokens=renamed(d.tokens), prompt=renamed(d.prompt))
            for d in recording.decisions
        ],
        executions=[
            e._replace(process=other(e.process), start=e.start + by, tokens=renamed(e.tokens))
            for e in recording.executions
        ],
        iterations=[i._replace(time=i.time + by, engine=engine, line=None) for i in recording.iterations],
        requests=[],
        clients=[],
        lines=LogLines(),
    )


def both(a: Recording, b: Recording) -> Recording:
    return replace(
        a,
        decisions=a.decisions + b.decisions,
        executions=a.executions + b.executions,
        iterations=a.iterations + b.iterations,
    )


def test_two_engines_side_by_side_keep_their_own_steps_workers_and_lines(engine: Engine) -> None:
    one, two = engine(1).recording, engine(2).recording
    capture = rebuild(both(one, moved(two, 5 * MS, 100, 1, "x")), [], capture_id="c", name="n")
    capture.check()
    steps = capture.steps
    for number, recording in enumerate((one, two)):
        own = steps.engine == number
        assert own.sum() == len(recording.iterations)
        assert np.array_equal(steps.number[own], np.arange(own.sum()))
        assert not np.any(steps.launched[own] == UNKNOWN)
    names = np.array([name.startswith("x") for name in capture.requests.engine_id])
    assert np.array_equal(capture.requests.engine == 1, names)


def test_an_engine_that_starts_again_counts_its_steps_from_0_again(engine: Engine) -> None:
    one, two = engine(1).recording, engine(2).recording
    capture = rebuild(both(one, moved(two, 60_000 * MS, 100, 0, "x")), [], capture_id="c", name="n")
    capture.check()
    assert set(capture.steps.engine.tolist()) == {0}
    assert capture.steps.number.tolist() == [*range(len(one.iterations)), *range(len(two.iterations))]


def test_a_recorder_that_came_late_leaves_the_first_steps_to_the_lines(engine: Engine) -> None:
    service = engine(3)
    chosen = [d for d in service.recording.decisions if d.tokens][5:]
    since = chosen[0].start
    late = replace(
        service.recording, decisions=chosen, executions=[e for e in service.recording.executions if e.start > since]
    )
    steps = rebuild(late, [], capture_id="c", name="n").steps
    assert steps.number.tolist() == list(range(len(service.steps)))
    assert np.flatnonzero(steps.scheduled == UNKNOWN).tolist() == [0, 1, 2, 3, 4]


def test_empty_decisions_are_no_steps_and_what_they_evict_counts_for_the_next() -> None:
    engine, worker = Process("", 2, "engine"), Process("", 3, "worker")
    recording = Recording(
        decisions=[
            Decision(engine, BEGIN, 10, {"a": 5, "b": 6}),
            Decision(engine, BEGIN + 10 * MS, 10, {}, preempted=["b"]),
            Decision(engine, BEGIN + 20 * MS, 10, {"a": 1}),
            Decision(engine, BEGIN + 30 * MS, 10, {"b": 7}),
        ],
        executions=[Execution(worker, BEGIN + n * MS, 10, tokens) for n, tokens in ((1, {"a": 5, "b": 6}), (11, {}))],
    )
    capture = rebuild(recording, [], capture_id="c", name="n")
    assert capture.steps.preempted.tolist() == [0, 1, 0]
    assert capture.requests.preemptions.tolist() == [0, 1]
    assert capture.participation.recomputed.tolist() == [0, 0, 0, 6]


def test_lines_that_disagree_with_the_decisions_are_joined_by_order_and_counted(engine: Engine) -> None:
    recording = engine(4).recording
    wrong = [line._replace(generation_requests=line.generation_requests + 1) for line in recording.iterations]
    capture = rebuild(replace(recording, iterations=wrong), [], capture_id="c", name="n")
    assert capture.problems["iterations_disagree"] == len(wrong)
    assert capture.steps.number.tolist() == list(range(len(wrong)))


def test_a_text_log_of_another_zone_is_put_on_the_unix_clock_by_its_requests(engine: Engine) -> None:
    recording = engine(5).recording
    zone = 7 * 3600 * 10**9
    whole = 10**9

    def wall(time: int) -> int:
        return (time - zone) // whole * whole

    coarse = replace(
        recording,
        files=[FileRead("server.log", "engine_log", 1, clock="wall")],
        lines=LogLines(line._replace(time=wall(line.time), resolution=whole) for line in recording.lines),
        requests=[fact._replace(time=wall(fact.time), resolution=whole) for fact in recording.requests],
        iterations=[line._replace(time=wall(line.time), resolution=whole) for line in recording.iterations],
    )
    capture = rebuild(coarse, [], capture_id="c", name="n")
    assert capture.problems == {}
    assert (capture.lines.time >= BEGIN).all()
    assert (capture.steps.delivered == UNKNOWN).all()
    unknown = rebuild(replace(coarse, requests=[], clients=[]), [], capture_id="c", name="n")
    assert unknown.problems == {"files_of_unknown_zone": 1, "lines_of_unknown_zone": len(coarse.lines)}
    assert unknown.lines.time.max() < BEGIN


def test_a_line_of_the_engine_belongs_to_the_step_that_alone_ran_while_it_was_written() -> None:
    engine = Process("", 2, "engine")

    def line(time: int, resolution: int, process: Process = engine) -> LogLine:
        return LogLine(process, BEGIN + time, resolution, "INFO", "", {}, "text", 0, 1)

    recording = Recording(
        files=[FileRead("a", "engine_log", 1)],
        decisions=[Decision(engine, BEGIN, 1, {"a": 1}), Decision(engine, BEGIN + 20, 1, {"a": 1})],
        executions=[Execution(engine, BEGIN + 2, 10), Execution(engine, BEGIN + 22, 10)],
        lines=LogLines([line(5, 1), line(5, 10), line(15, 1), line(25, 1), line(25, 1, Process("", 9, "frontend"))]),
    )
    lines = rebuild(recording, [], capture_id="c", name="n").lines
    assert lines.step.tolist() == [0, -1, -1, 1, -1]


def test_samples_are_growth_between_two_readings_and_a_fall_is_counted() -> None:
    process = Process("h", 7, "worker")
    readings = [Sample(process, 10 * n, "run_ns", value) for n, value in enumerate((5, 9, 2, 4))]
    capture = rebuild(
        Recording(samples=[*readings, Sample(process, 1, "thread_run_ns", 3, 8)]), [], capture_id="c", name="n"
    )
    assert capture.samples.delta.tolist() == [4, 2]
    assert capture.samples.process == ["h/7", "h/7"]
    assert capture.problems == {"counters_reset": 1}


def test_of_single_threads_the_one_that_runs_the_steps_is_kept() -> None:
    both, engine = Process("h", 7, "engine"), Process("h", 8, "engine")
    readings = [
        Sample(process, BEGIN + time, "thread_run_ns", time * thread, thread)
        for process in (both, engine)
        for thread in (1, 2, 3)
        for time in (10, 20)
    ]
    recording = Recording(
        decisions=[Decision(process, BEGIN, 1, {"a": 1}, thread=2) for process in (both, engine)],
        executions=[Execution(both, BEGIN + 2 + at, 1, thread=thread) for at, thread in enumerate((3, 1, 3))],
        samples=readings,
    )
    samples = rebuild(recording, [], capture_id="c", name="n").samples
    assert samples.name == ["step_thread_run_ns"] * 2
    assert sorted(zip(samples.process, samples.delta.tolist(), strict=True)) == [("h/7", 30), ("h/8", 20)]


def test_lines_alone_are_steps_of_their_counts() -> None:
    frontend = Process("", 1, "frontend")
    lines = [Iteration(frontend, BEGIN + n * MS, 1000, 0, n, 0, 0, 4, 4, MS, 0.5) for n in range(3)]
    capture = rebuild(Recording(iterations=lines), [], capture_id="c", name="n")
    assert capture.tier == 2
    assert capture.steps.delivered.tolist() == [BEGIN + n * MS + 1000 for n in range(3)]
    assert capture.steps.generation_requests.tolist() == [4, 4, 4]
    assert capture.steps.mapping.tolist() == [0, 0, 0]
