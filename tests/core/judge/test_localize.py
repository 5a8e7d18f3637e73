"""Which spans of a step are suspected, and which are not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from teller_core.data.assessment import Candidates
from teller_core.data.capture import Capture, Collectives, Pauses
from teller_core.data.trace import Layer
from teller_core.judge.assess import MOST, assess
from tests.core.judge.service import MS, US, Rows, Work, service

STRUCK = [i for i in range(60) if i % 10 in (0, 3, 7)]


def suspected(made: Capture) -> Candidates:
    found = assess(made).candidates
    found.check()
    assert np.array_equal(found.excess, found.value - found.normal)
    return found


def steps(**fault: Any) -> list[Work]:
    return [Work(**(fault if i in STRUCK else {})) for i in range(60)]


def first_of(found: Candidates, step: int) -> tuple[str, str]:
    i = int(np.flatnonzero(found.step == step)[0])
    return found.name[i], found.method[i]


def test_a_healthy_service_has_no_suspects() -> None:
    assert not len(suspected(service(steps(), noise=0.2)).step)


def test_a_slow_operator_is_the_first_suspect_of_every_struck_step_and_of_no_other() -> None:
    found = suspected(service(steps(slow={"aten::sdpa": 20.0})))
    assert sorted(set(found.step.tolist())) == STRUCK
    assert {first_of(found, step) for step in STRUCK} == {("aten::sdpa", "family")}


def test_one_slow_call_is_suspected_alone_with_its_own_time() -> None:
    made = service([Work() for _ in range(40)])
    tree = made.ranks[0].tree
    assert tree is not None
    trace = tree.trace
    calls = np.flatnonzero(trace.name == trace.names.index("aten::sdpa"))
    row = int(calls[30])
    dur = trace.dur.copy()
    late = trace.start.copy()
    late[row + 1 :] += 5 * MS
    for above in [row, *tree.ancestors(row)]:
        dur[above] += 5 * MS
    work, changed = made.work, replace(tree, trace=replace(trace, start=late, dur=dur))
    struck = int(np.flatnonzero((work.row <= row) & (row < work.row_stop))[0])
    start, stop = work.start + 5 * MS * (work.step > struck), work.stop + 5 * MS * (work.step >= struck)
    finished, launched = made.steps.finished.copy(), made.steps.launched.copy()
    finished[work.step], launched[work.step] = stop, start
    moved = replace(
        made,
        work=replace(work, start=start, stop=stop),
        steps=replace(made.steps, finished=finished, launched=launched, scheduled=launched),
        ranks=[replace(made.ranks[0], tree=changed)],
    )
    moved.check()
    found = suspected(moved)
    assert (found.row.tolist(), found.method) == ([row], ["residual"])
    assert found.value[0] == dur[row]


def test_more_calls_than_usual_are_suspected_although_none_is_slow() -> None:
    found = suspected(service(steps(repeat=5)))
    assert sorted(set(found.step.tolist())) == STRUCK
    assert {first_of(found, step) for step in STRUCK} == {("aten::addmm", "calls")}


def test_a_silence_is_suspected_in_the_span_it_falls_in() -> None:
    found = suspected(service(steps(gap=3 * MS)))
    assert sorted(set(found.step.tolist())) == STRUCK
    assert {first_of(found, step) for step in STRUCK} == {("nn.Module: Block_2", "gap")}
    assert set(found.layer.tolist()) == {Layer.ENGINE}
    assert found.excess == pytest.approx(3 * MS, rel=0.05)


def test_a_starved_host_shows_in_many_families() -> None:
    found = suspected(service(steps(all_slow=6.0)))
    assert sorted(set(found.step.tolist())) == STRUCK
    assert {"aten::addmm", "aten::sdpa"} <= {n for n, m in zip(found.name, found.method, strict=True) if m == "family"}


def test_a_long_prefill_is_expected_and_not_suspected() -> None:
    work = [Work(context=900 if i == 30 else 30 * (i % 11 == 5), generation=6, kv=2000) for i in range(60)]
    assert not len(suspected(service(work)).step)


def test_a_step_has_at_most_eight_suspects_the_largest_excess_first() -> None:
    found = suspected(service(steps(slow={"aten::norm": 60.0}, gap=3 * MS, all_slow=8.0), ranks=4))
    for step in STRUCK:
        mine = found.excess[found.step == step]
        assert 1 < len(mine) <= MOST
        assert np.all(np.diff(mine) <= 0)


def test_the_wait_of_a_collective_is_no_suspect() -> None:
    made = service(steps(slow={"aten::sdpa": 20.0}))
    found = suspected(made)
    waiting = Collectives(
        group=np.zeros(len(found.row), dtype=np.int32),
        sequence=np.arange(len(found.row), dtype=np.int64),
        step=found.step,
        rank=found.rank,
        row=found.row,
        start=np.zeros(len(found.row), dtype=np.int64),
        dur=found.value,
        wait=found.value - 10 * US,
        late=np.full(len(found.row), -1, dtype=np.int32),
    )
    assert not len(suspected(replace(made, collectives=waiting)).step)


def test_what_the_recorder_itself_held_up_is_no_suspect() -> None:
    made = service(steps(gap=3 * MS))
    struck = made.steps.launched[STRUCK]
    stops = Pauses(
        start=struck,
        dur=made.steps.finished[STRUCK] - struck,
        thread=np.zeros(len(STRUCK), dtype=np.int64),
        process=["host/100"] * len(STRUCK),
        role=["worker"] * len(STRUCK),
        kind=["profiler_stop"] * len(STRUCK),
    )
    assert not len(suspected(replace(made, pauses=stops)).step)
    assert len(suspected(replace(made, pauses=replace(stops, process=["host/7"] * len(STRUCK)))).step)


def test_a_synchronization_that_waits_for_a_busy_device_is_no_suspect() -> None:
    def capture_with(busy: bool) -> Capture:
        rows, now = Rows(), 10 * MS
        low, windows = 0, []
        for i in range(40):
            begin, long = now, 20 * MS if i in (7, 21) else 200 * US
            rows.open("execute", Layer.ENGINE, now)
            rows.open("aten::mm", Layer.OPERATOR, now)
            rows.open("cudaLaunchKernel", Layer.RUNTIME, now + 5 * US)
            if busy:
                rows.leaf("gemm", Layer.KERNEL, now + 12 * US, long, lane=2)
            rows.close(now + 10 * US)
            rows.close(now + 15 * US)
            rows.leaf("cudaDeviceSynchronize", Layer.RUNTIME, now + 20 * US, long)
            now += 30 * US + long
            rows.close(now)
            windows.append((begin, now, low, len(rows.start)))
            low, now = len(rows.start), now + 100 * US
        made = service([Work() for _ in range(40)])
        begin, end = (np.array([w[i] for w in windows], dtype=np.int64) for i in (0, 1))
        low_row, high_row = (np.array([w[i] for w in windows], dtype=np.int32) for i in (2, 3))
        work = replace(made.work, start=begin, stop=end, row=low_row, row_stop=high_row)
        times = replace(made.steps, scheduled=begin, launched=begin, finished=end, delivered=end)
        return replace(made, work=work, steps=times, ranks=[replace(made.ranks[0], tree=rows.tree())])

    assert set(suspected(capture_with(busy=True)).name) == {"gemm"}
    assert set(suspected(capture_with(busy=False)).name) == {"cudaDeviceSynchronize"}
