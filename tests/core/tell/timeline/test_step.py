"""What is drawn of a step: its stages, and on every rank its spans by layer and depth."""

from dataclasses import replace

import numpy as np

from teller_core.data.capture import Pauses, Rank
from teller_core.data.linked import StepSpans
from teller_core.data.report_findings import EvidenceItem
from teller_core.data.steps import Steps
from teller_core.data.table import UNKNOWN, take
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.data.tree import Tree
from teller_core.tell.timeline.step import RANKS, StepRows, step_lanes
from teller_core.tell.timeline.still import ROWS
from tests.core.store.made import empty, filled, pre_order
from tests.core.tell.timeline.test_request import found

STEPS = filled(Steps, 1, scheduled=[1_000], launched=[1_100], finished=[2_000], delivered=[UNKNOWN])
SPANS = [
    (0, Layer.ENGINE, 0, 1_100, 900, "execute"),
    (1, Layer.OPERATOR, 0, 1_200, 500, "aten::linear"),
    (2, Layer.OPERATOR, 0, 1_250, 300, "aten::mm"),
    (3, Layer.RUNTIME, 0, 1_300, 100, "cudaLaunchKernel"),
    (4, Layer.KERNEL, 1, 1_600, 200, "gemm"),
    (1, Layer.OPERATOR, 0, 1_750, 50, "aten::add"),
]
"""Depth, layer, lane, start, duration and name of the rows of one step."""


def tree() -> Tree:
    depth, layer, lane, start, dur, name = zip(*SPANS, strict=True)
    count = len(SPANS)
    trace = Trace(
        start=np.array(start),
        dur=np.array(dur),
        name=np.arange(count, dtype=np.int32),
        lane=np.array(lane, dtype=np.int32),
        category=np.zeros(count, dtype=np.uint8),
        layer=np.array(layer, dtype=np.uint8),
        link=np.full(count, -1),
        arg=np.full(count, -1, dtype=np.int32),
        names=list(name),
        lanes=[Lane("7", "main", False), Lane("7", "stream 3", True)],
        categories=[""],
        args=[],
        origin=Origin("nvtx", "unix"),
    )
    return Tree(trace, *pre_order(list(depth)))


def drawn(ranks: int = 1, **named: object) -> StepRows:
    spans = [StepSpans(at, 40, tree(), 10 * at) for at in range(ranks)]
    given = {"pauses": empty(Pauses), "findings": (), **named}
    return step_lanes(
        5, STEPS, spans, ranks=[Rank(at, "host", 7 + at, "worker", None, 0) for at in range(ranks)], **given
    )


def test_layers_stand_in_rows_of_their_own_and_what_is_inside_a_span_below_it() -> None:
    made = drawn()
    assert (made.begin, made.length) == (1_000, 1_000)
    rows = [(one.group, one.layer, one.label, list(one.text)) for one in made.lanes]
    of = "process 7, worker"
    assert rows == [
        ("engine", "engine", "step 5", ["scheduled, 0.000 ms", "running, 0.001 ms"]),
        (of, "engine", "the engine's ranges", ["execute, 0.001 ms"]),
        (of, "operator", "operators", ["aten::linear, 0.001 ms", "aten::add, 0.000 ms"]),
        (of, "operator", "", ["aten::mm, 0.000 ms"]),
        (of, "runtime", "calls of the driver", ["cudaLaunchKernel, 0.000 ms"]),
        (of, "kernel", "kernels", ["gemm, 0.000 ms"]),
    ]
    assert made.left_out == 0


def test_every_rank_has_its_rows_on_one_clock() -> None:
    made = drawn(2)
    kernels = [one for one in made.lanes if one.layer == "kernel"]
    assert [one.group for one in kernels] == ["rank 0, worker", "rank 1, worker"]
    assert [int(one.start[0]) for one in kernels] == [1_600, 1_610]


def test_a_span_that_a_finding_names_is_marked_where_it_is_and_above_all() -> None:
    item = EvidenceItem(kind="span", scope="this_request", span="0:42", step=5)
    made = drawn(findings=(found(step=None), found(step=5, evidence=[item])))
    above = made.lanes[0]
    assert (above.layer, above.text, above.finding.tolist()) == ("found", ["2. It stopped"], [2])
    assert (int(above.start[0]), int(above.dur[0])) == (1_250, 300)
    marked = {
        text: number for one in made.lanes[1:] for text, number in zip(one.text, one.finding.tolist(), strict=True)
    }
    assert [text for text, number in marked.items() if number] == ["aten::mm, 0.000 ms"]


def test_ranks_and_pauses_that_have_no_row_are_counted() -> None:
    assert drawn(RANKS).note == ""
    assert drawn(RANKS + 2).note == "not drawn for want of room: 2 ranks"
    many = ROWS + 1
    pauses = filled(Pauses, many, start=[1_500] * many, dur=[10] * many, role=[f"part {at}" for at in range(many)])
    assert drawn(pauses=replace(pauses, kind=["gc"] * many)).note == "not drawn for want of room: 1 pause"


def test_a_finding_of_the_step_without_a_span_marks_the_whole_step() -> None:
    above = drawn(findings=(found(step=5),)).lanes[0]
    assert (int(above.start[0]), int(above.dur[0])) == (1_000, 1_000)
    assert drawn(findings=(found(step=6),)).lanes[0].layer != "found"


def test_pauses_are_cut_to_the_step() -> None:
    pauses = replace(filled(Pauses, 2, start=[500, 5_000], dur=[800, 10], role=["engine"] * 2), kind=["gc"] * 2)
    (still,) = (one for one in drawn(pauses=pauses).lanes if one.group == "stood still")
    assert (still.label, still.start.tolist(), still.dur.tolist()) == ("engine: gc", [1_000], [300])


def test_spans_without_a_row_are_counted() -> None:
    deep = StepSpans(0, 0, nested(9), 0)
    made = step_lanes(
        5, STEPS, [deep], pauses=empty(Pauses), ranks=[Rank(0, "host", 7, "worker", None, 0)], findings=()
    )
    shown = sum(len(one.start) for one in made.lanes if one.group.startswith("process"))
    assert shown + made.left_out == 9 and made.left_out == 6


def nested(count: int) -> Tree:
    one = tree()
    row = np.zeros(count, dtype=np.int64)
    trace = one.trace
    start = 1_200 + np.arange(count)
    spans = Trace(
        start=start,
        dur=900 - 2 * (start - 1_200),
        name=np.ones(count, dtype=np.int32),
        lane=row.astype(np.int32),
        category=row.astype(np.uint8),
        layer=np.full(count, Layer.OPERATOR, dtype=np.uint8),
        link=row - 1,
        arg=(row - 1).astype(np.int32),
        names=trace.names,
        lanes=trace.lanes,
        categories=trace.categories,
        args=trace.args,
        origin=trace.origin,
    )
    return Tree(spans, *pre_order(list(range(count))))


def test_a_step_that_nothing_times_is_not_drawn() -> None:
    blank = filled(Steps, 1, **{name: [UNKNOWN] for name in ("scheduled", "launched", "finished", "delivered")})
    made = step_lanes(5, take(blank, np.array([0])), [], pauses=empty(Pauses), ranks=[], findings=())
    assert made.lanes == [] and made.length == UNKNOWN
