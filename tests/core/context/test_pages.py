"""A step's slice over its ranks; what is said of a step without a profile; which step is shown for a request."""

from dataclasses import replace

import numpy as np

from teller_core.context.dependencies import Met, StepSpans
from teller_core.context.moments import Moment, blamed_step, moment_lines
from teller_core.context.pages import slice_report, span_report
from teller_core.data.assessment import Candidates, StepExpectations
from teller_core.data.capture import Capture, Collectives, Pauses, no_meetings
from teller_core.data.report import SliceReport
from teller_core.data.steps import Participation
from teller_core.data.table import UNKNOWN, take
from teller_core.data.trace import Layer
from teller_core.judge.assess import assess
from tests.core.judge.service import MS, US, Rows, Work, requests_table, service


def participation(*pairs: tuple[int, int, int, int]) -> Participation:
    """Rows of (step, request, tokens, role)."""
    table = np.array(pairs, dtype=np.int32).reshape(-1, 4)
    n = len(table)
    return Participation(
        step=table[:, 0],
        request=table[:, 1],
        tokens=table[:, 2],
        recomputed=np.zeros(n, dtype=np.int32),
        role=table[:, 3].astype(np.uint8),
        mapping=np.full(n, 2, dtype=np.uint8),
        confidence=np.ones(n),
    )


def moment(made: Capture, step: int, served: Participation | None = None, pauses: Pauses | None = None) -> Moment:
    served = served if served is not None else made.participation
    return Moment(
        step=step,
        steps=take(made.steps, np.array([step])),
        work=take(made.work, made.work.step == step),
        participation=take(served, served.step == step),
        pauses=pauses if pauses is not None else made.pauses,
    )


def spans(made: Capture, step: int) -> list[StepSpans]:
    out: list[StepSpans] = []
    for i in np.flatnonzero((made.work.step == step) & (made.work.row >= 0)).tolist():
        low, high, rank = int(made.work.row[i]), int(made.work.row_stop[i]), int(made.work.rank[i])
        tree = made.ranks[rank].tree
        assert tree is not None
        out.append(StepSpans(rank, low, tree.part(low, high)))
    return out


def report(made: Capture, step: int, budget: int) -> SliceReport:
    found = assess(made).candidates
    return slice_report(
        moment(made, step),
        spans(made, step),
        take(found, found.step == step),
        capture=made.id,
        budget=budget,
        text=lambda name: name[:80],
    )


STEPS = [Work(slow={"aten::sdpa": 30.0} if i in (7, 20, 33) else {}) for i in range(40)]


def test_the_suspect_of_a_step_is_in_its_slice_with_its_residual() -> None:
    said = report(service(STEPS), 20, 4000)
    suspects = [line for line in said.lines if line.residual is not None]
    assert [line.text for line in suspects] == ["aten::sdpa"]
    assert said.events == said.cut + sum(line.count for line in said.lines if line.handle[0].isdigit())
    assert (said.step, said.rank) == (20, 0)


def test_all_ranks_together_keep_the_budget_and_the_note_names_those_left_out() -> None:
    made = service(STEPS, ranks=6)
    for budget in (200, 900, 4000):
        said = report(made, 20, budget)
        assert said.tokens <= budget
        shown = {line.handle.partition(":")[0] for line in said.lines if line.handle[0].isdigit()}
        for rank in {str(r) for r in range(6)} - shown:
            assert rank in said.note
    assert said.rank is None
    assert len(shown) == 6


def test_a_step_without_a_profile_is_told_from_its_times_its_requests_and_pauses() -> None:
    made = service([Work(profiled=False, context=30, generation=2) for _ in range(3)])
    at = int(made.steps.launched[1])
    pauses = Pauses(
        start=np.array([at + 50 * US, at + 900 * MS], dtype=np.int64),
        dur=np.array([20 * US, MS], dtype=np.int64),
        thread=np.zeros(2, dtype=np.int64),
        process=["host/1"] * 2,
        role=["worker"] * 2,
        kind=["gc", "gc"],
    )
    served = participation((1, 0, 30, 0), (1, 4, 1, 1))
    said = slice_report(
        moment(made, 1, served, pauses), [], assess(made).candidates, capture="c", budget=4000, text=str
    )
    assert [line.text for line in said.lines] == [
        "1 context requests, 30 context tokens, 2 generation requests, 800 KV tokens",
        "scheduled, not yet launched",
        "request 1: prefill 30 tokens",
        "request 5: decode 1 token",
        "running",
        "gc of the worker process",
        "finished, not yet delivered",
    ]
    assert {line.layer for line in said.lines} == {"engine", "request"}
    assert "no profile overlaps" in said.note
    assert (said.events, said.cut) == (0, 0)
    gc = next(line for line in said.lines if line.text.startswith("gc"))
    assert (gc.start_ms, gc.dur_ms) == (0.06, 0.02)


def test_tokens_handed_out_while_the_step_still_runs_make_no_stage_that_ends_before_it_begins() -> None:
    made = service([Work(profiled=False)])
    here = moment(made, 0)
    early = replace(here, steps=replace(here.steps, delivered=here.steps.finished - MS))
    assert "running" in [line.text for line in moment_lines(early)]
    assert all(line.dur_ms >= 0 for line in moment_lines(early))


def test_a_step_of_which_no_time_is_known_has_no_lines() -> None:
    made = service([Work(profiled=False)])
    nothing = np.full(1, UNKNOWN, dtype=np.int64)
    bare = replace(made.steps, scheduled=nothing, launched=nothing, finished=nothing, delivered=nothing)
    empty = take(made.work, np.zeros(1, dtype=np.bool_))
    assert not list(moment_lines(replace(moment(made, 0), steps=bare, work=empty)))


def test_the_slice_of_a_span_counts_its_times_from_its_own_start() -> None:
    made = service(STEPS)
    tree = made.ranks[0].tree
    assert tree is not None
    row = int(np.flatnonzero(tree.trace.name == tree.trace.names.index("aten::linear"))[3])
    low = int(made.work.row[0])
    mine = StepSpans(0, row, tree.subtree(row))
    said = span_report(mine, assess(made).candidates, capture="c", step=0, budget=4000, text=str)
    assert [(line.handle, line.text, line.depth) for line in said.lines] == [
        (f"0:{row}", "aten::linear", 0),
        (f"0:{row + 1}", "aten::addmm", 1),
    ]
    assert said.lines[0].start_ms == 0.0
    assert low == 0


def test_the_slice_of_a_span_counts_the_waits_that_found_no_room() -> None:
    rows = Rows()
    rows.open("aten::mm", Layer.OPERATOR, 0)
    rows.open("cudaLaunchKernel", Layer.RUNTIME, 0)
    kernel = rows.leaf("gemm", Layer.KERNEL, 9 * US, 9 * MS, lane=2)
    rows.close(5 * US)
    rows.leaf("cudaStreamSynchronize", Layer.RUNTIME, MS, 9 * MS)
    rows.close(11 * MS)
    mine = StepSpans(0, 0, rows.tree())

    def said(nodes: int) -> SliceReport:
        return span_report(mine, suspect(0, kernel), capture="c", step=0, budget=4000, nodes=nodes, text=str)

    assert (len(said(4).lines), said(4).note) == (4, "")
    assert [line.text for line in said(3).lines] == ["aten::mm", "cudaLaunchKernel", "gemm"]
    assert said(3).note == "no room in the budget for 1 span that was waited for, or that waited"
    assert "1 suspected span found no room" in said(2).note


def expectations(taken: list[int], expected: list[int]) -> StepExpectations:
    took, should = np.array(taken, dtype=np.int64), np.array(expected, dtype=np.int64)
    excess = np.where(should != UNKNOWN, took - should, UNKNOWN)
    return StepExpectations(took, should, np.zeros(len(took)), excess)


def test_the_step_shown_for_a_request_is_the_one_with_the_largest_excess_among_its_own() -> None:
    made = service([Work() for _ in range(4)])
    served = participation((0, 0, 1, 1), (1, 0, 1, 1), (2, 0, 1, 1), (3, 1, 1, 1))
    numbers = expectations([50, 40, 30, 900], [49, 10, 10, 10])
    found = blamed_step(0, requests_table(2), served, made.steps, numbers)
    assert found is not None and found[0] == 1 and "of its steps" in found[1]


def test_without_an_excess_it_is_the_longest_and_without_a_mapping_one_that_overlaps() -> None:
    made = service([Work() for _ in range(4)])
    requests = requests_table(1, client_start=made.steps.launched[1:2], client_end=made.steps.finished[2:3])
    numbers = expectations([50, 40, 60, 900], [UNKNOWN] * 4)
    found = blamed_step(0, requests, participation(), made.steps, numbers)
    assert found is not None and found[0] == 2 and "overlap it" in found[1] and "longest" in found[1]
    assert blamed_step(0, requests_table(1), participation(), made.steps, numbers) is None


def test_of_steps_that_took_no_known_time_none_is_called_the_longest() -> None:
    made = service([Work() for _ in range(2)])
    served = participation((0, 0, 1, 1), (1, 0, 1, 1))
    found = blamed_step(0, requests_table(1), served, made.steps, expectations([0, 0], [UNKNOWN, UNKNOWN]))
    assert found is not None and found[0] == 0 and "longest" not in found[1] and "is not known" in found[1]


def test_a_step_of_one_known_time_is_not_said_to_have_taken_none() -> None:
    made = service([Work() for _ in range(2)])
    one = replace(made.steps, scheduled=np.full(2, UNKNOWN), launched=np.full(2, UNKNOWN), finished=np.full(2, UNKNOWN))
    one = replace(one, delivered=np.full(2, 5 * MS))
    bare = replace(made, steps=one, work=take(made.work, np.empty(0, np.int64)))
    said = slice_report(moment(bare, 1), [], assess(made).candidates, capture="c", budget=400, text=str)
    assert "drawn without a length" in said.note
    whole = slice_report(moment(made, 1), [], assess(made).candidates, capture="c", budget=400, text=str)
    assert "drawn without" not in whole.note


def test_a_budget_of_nodes_is_kept_over_all_ranks_with_the_chains_first() -> None:
    made = service(STEPS, ranks=3)
    found = assess(made).candidates
    mine = take(found, found.step == 20)
    for nodes in (1, 9, 20, 40):
        said = slice_report(moment(made, 20), spans(made, 20), mine, capture="c", budget=40_000, nodes=nodes, text=str)
        assert len(said.lines) <= nodes
        suspects = [line for line in said.lines if line.residual is not None]
        assert len(suspects) == len(mine.step) or "found no room" in said.note
    one = span_report(spans(made, 20)[0], mine, capture="c", step=20, budget=40_000, nodes=3, text=str)
    assert len(one.lines) == 3


def late_rank(wait: int) -> tuple[Capture, list[StepSpans], Met]:
    """Two ranks with an all-reduce each in a step of 10 ms, the second came last and `aten::sort` kept it there."""
    made, at = service([Work()], ranks=2), [service([Work()]).steps.launched[0]]
    out: list[StepSpans] = []
    for rank in range(2):
        rows, now = Rows(), int(at[0])
        rows.open("step", Layer.ENGINE, now)
        rows.open("forward", Layer.ENGINE, now)
        if rank:
            rows.leaf("aten::sort", Layer.OPERATOR, now, 2 * MS)
        for k in range(30):
            rows.leaf(f"aten::op{k}", Layer.OPERATOR, now + 2 * MS + k * 100 * US, 100 * US)
        rows.close(now + 6 * MS)
        rows.open("cudaLaunchKernel", Layer.RUNTIME, now + 6 * MS)
        rows.leaf("all_reduce", Layer.COMMUNICATION, now + 6 * MS + 10 * US, MS if rank else MS + wait, lane=2)
        rows.close(now + 6 * MS + 20 * US)
        rows.close(now + 10 * MS)
        out.append(StepSpans(rank, 500, rows.tree()))
    few = [len(part.tree) - 1 + 500 for part in out]
    calls = Collectives(
        group=np.zeros(2, dtype=np.int32),
        sequence=np.full(2, 7, dtype=np.int64),
        step=np.zeros(2, dtype=np.int32),
        rank=np.arange(2, dtype=np.int32),
        row=np.array(few, dtype=np.int32),
        start=np.array([0, wait], dtype=np.int64) + int(at[0]),
        dur=np.full(2, MS, dtype=np.int64),
        wait=np.array([wait, 0], dtype=np.int64),
        late=np.ones(2, dtype=np.int32),
    )
    meetings = replace(no_meetings(), late=np.ones(1, np.int32), kept=np.array([502], np.int32))
    return made, out, Met(calls, meetings, first=7)


def of_rank(said: SliceReport, rank: int) -> list[str]:
    return [line.text for line in said.lines if line.handle.startswith(f"{rank}:")]


def waiting(wait: int, suspects: Candidates, budget: int = 4000) -> SliceReport:
    made, parts, met = late_rank(wait)
    return slice_report(moment(made, 0), parts, suspects, capture="c", budget=budget, text=str, met=met)


def nobody() -> Candidates:
    return take(suspect(0, 0), np.zeros(0, dtype=np.int64))


def suspect(rank: int, row: int) -> Candidates:
    short, long = np.array([rank], np.int32), np.array([MS], np.int64)
    return Candidates(
        step=np.zeros(1, np.int32),
        rank=short,
        row=np.array([row], np.int32),
        name=["x"],
        layer=np.zeros(1, np.uint8),
        value=long,
        normal=long,
        residual=np.full(1, 5.0),
        excess=long,
        baseline=np.full(1, -1, np.int32),
        method=["residual"],
    )


def test_a_suspected_collective_brings_in_the_late_rank_s_call_and_what_kept_it_with_their_chains() -> None:
    _, parts, _ = late_rank(100 * US)
    call = 500 + len(parts[0].tree) - 1
    said = waiting(100 * US, suspect(0, call), budget=900)
    assert {"step", "cudaLaunchKernel", "all_reduce"} <= set(of_rank(said, 0))
    assert {"step", "forward", "aten::sort", "cudaLaunchKernel", "all_reduce"} <= set(of_rank(said, 1))
    told = f"the collective 0:{call} waited 0.1 ms for the rank at position 1, which was in 1:502 until then"
    assert f"{told}; its call is 1:{call + 1}" in said.note


def test_a_long_wait_is_shown_on_both_its_sides_where_nothing_is_suspected() -> None:
    said = waiting(3 * MS, nobody(), budget=900)
    assert "all_reduce" in of_rank(said, 0)
    assert {"aten::sort", "all_reduce"} <= set(of_rank(said, 1))
    assert "waited 3 ms for the rank at position 1" in said.note
    assert "waited" not in waiting(100 * US, nobody()).note


def test_a_rank_of_which_the_step_has_no_row_leaves_the_others_as_they_are() -> None:
    made, parts, met = late_rank(3 * MS)
    gone = StepSpans(2, 0, parts[0].tree.part(0, 0))
    less = take(made.work, np.zeros(0, dtype=np.int64))
    for when in (moment(made, 0), replace(moment(made, 0), work=less)):
        said = [
            slice_report(when, some, nobody(), capture="c", budget=900, text=str, met=met)
            for some in (parts, [*parts, gone])
        ]
        assert said[0] == said[1]


def test_the_sides_of_a_wait_that_found_no_room_are_counted() -> None:
    said = waiting(3 * MS, nobody(), budget=200)
    assert said.tokens <= 200
    assert "no room in the budget for" in said.note


def test_each_rank_s_times_are_put_on_one_clock() -> None:
    made, parts, met = late_rank(3 * MS)
    shifted = [parts[0], parts[1]._replace(shift=250 * US)]
    said = slice_report(moment(made, 0), shifted, nobody(), capture="c", budget=4000, text=str, met=met)
    begin = {line.handle: line.start_ms for line in said.lines if line.text == "step" and line.layer == "engine"}
    assert round(begin["1:500"] - begin["0:500"], 3) == 0.25


def test_of_more_ranks_than_fit_the_one_with_the_suspect_has_most_of_the_room_and_is_first() -> None:
    made = service([Work(), Work(slow={"aten::sdpa": 30.0}), *(Work() for _ in range(8))], ranks=40)
    parts = spans(made, 1)
    row = int(np.argmax(parts[33].tree.self_time())) + parts[33].first
    said = slice_report(moment(made, 1), parts, suspect(33, row), capture="c", budget=2000, text=str)
    ranks = [line.handle.partition(":")[0] for line in said.lines if line.handle[0].isdigit()]
    assert ranks[0] == "33"
    assert said.tokens <= 2000
    assert ranks.count("33") >= 10 > 2 * max(ranks.count(r) for r in set(ranks) - {"33"})
    assert 4 <= len(set(ranks)) < 40
    assert f"and {40 - len(set(ranks)) - 16} more" in said.note
    assert f"33:{row}" in {line.handle for line in said.lines}


def test_where_not_all_finds_room_the_asked_request_and_the_longest_pause_come_first() -> None:
    made = service([Work(profiled=False, context=30, generation=2) for _ in range(3)])
    at = int(made.steps.launched[1])
    pauses = Pauses(
        start=np.array([at, at + 50 * US], dtype=np.int64),
        dur=np.array([US, 900 * MS], dtype=np.int64),
        thread=np.zeros(2, dtype=np.int64),
        process=["host/1"] * 2,
        role=["worker"] * 2,
        kind=["thread_lag", "gc"],
    )
    served = participation(*((1, k, 1, 1) for k in range(9)))
    said = slice_report(
        moment(made, 1, served, pauses),
        [],
        assess(made).candidates,
        capture="c",
        budget=4000,
        nodes=3,
        text=str,
        request=8,
    )
    assert [line.handle for line in said.lines] == ["step:1", "request:8", "pause:1"]
    assert "no room in the budget for 8 requests and 1 pause of the step" in said.note
    assert [line.self_ms for line in said.lines] == [None, None, 900.0]
