"""The ranks in the collectives of one request, and the span that kept the one that was waited for."""

from dataclasses import replace

import numpy as np

from teller_core.data.capture import Capture, Meetings, Rank
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.data.tree import Tree
from teller_core.judge.diagnose import judge
from teller_core.judge.prepare import prepare
from tests.core.judge.serving import Trouble, serve
from tests.core.judge.test_diagnose import CROWD, STRUCK, collectives

MS = 10**6


def a_tree() -> Tree:
    """One span."""
    one = np.zeros(1, np.int32)
    trace = Trace(
        np.zeros(1, np.int64), np.full(1, MS), one, one, np.zeros(1, np.uint8), np.full(1, int(Layer.OPERATOR), np.uint8),
        np.full(1, -1, np.int64), np.full(1, -1, np.int32), ["aten::tokenize_slowly"], [Lane("9", "9", False)], ["x"], [],
        Origin("kineto", "unix"),
    )  # fmt: skip
    return Tree(trace, np.full(1, -1, np.int32), np.ones(1, np.int32))


def two_ranks(capture: Capture) -> Capture:
    """``capture`` with two ranks, of which the first is late to every meeting and was kept by its only span."""
    met = len(capture.steps.launched) * 4
    meetings = Meetings(
        ["g"] * met, ["all_reduce"] * met, ["step"] * met, np.full(met, 2, np.int32), np.full(met, 2, np.int32),
        np.arange(met), np.zeros(met, np.int32), np.full(met, 2 * MS), np.full(met, 2 * MS), np.full(met, MS),
        np.zeros(met, np.int32), np.full(met, -1, np.int32),
    )  # fmt: skip
    ranks = [Rank(number, "a", 7 + number, "worker", a_tree(), 0) for number in (0, 1)]
    work = replace(capture.work, row=np.full_like(capture.work.row, -1), row_stop=np.full_like(capture.work.row, -1))
    return replace(capture, ranks=ranks, meetings=meetings, work=work)


def test_an_answer_has_the_ranks_of_its_steps_and_the_span_that_kept_the_late_one() -> None:
    capture, numbers = serve(CROWD, [Trouble("link", 800, 1300, 8)])
    told = two_ranks(collectives(capture, (800, 1300), (0.2, 2.2), wait=True))
    report = judge(prepare(told, numbers), STRUCK)
    assert report.findings[0].cause == "comm.straggler_rank"
    span = next(item for item in report.findings[0].evidence if item.span)
    assert (span.span, span.name, span.value) == ("0:0", "aten::tokenize_slowly", 2.0)
    assert report.ranks is not None
    assert [share.rank for share in report.ranks] == [0, 1]
    late, waiting = report.ranks
    own = np.isin(told.collectives.step, told.participation.step[told.participation.request == STRUCK])
    assert late.collectives == waiting.collectives == int((own & (told.collectives.rank == 0)).sum())
    assert late.waited_for_ms == waiting.waited_ms
    assert (late.waited_ms, waiting.waited_for_ms) == (0.0, 0.0)


def test_where_one_rank_or_no_collective_was_recorded_the_answer_says_so() -> None:
    capture, numbers = serve(CROWD, [])
    report = judge(prepare(capture, numbers), STRUCK)
    assert report.ranks is None
    assert report.ranks_note
    bare = replace(capture, ranks=[Rank(number, "a", 7 + number, "worker", None, -1) for number in (0, 1)])
    report = judge(prepare(bare, numbers), STRUCK)
    assert (report.ranks, report.ranks_note) == (None, "no collective was recorded with its times")
