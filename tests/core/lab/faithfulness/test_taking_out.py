"""What answers cite is found where it was recorded, and a capture without it answers otherwise; one without others does not."""

from collections import Counter
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.capture import Capture
from teller_core.data.report import EvidenceItem, WhyReport
from teller_core.data.table import UNKNOWN
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import judge
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.scene import scene
from teller_core.lab.faithfulness.cited import Marks, cited, known, times
from teller_core.lab.faithfulness.sources import SOURCES
from teller_core.lab.faithfulness.taking_out import others, without
from tests.core.lab.evaluation.made import CAUSES, episode, profiled

FACTS = Path(__file__).parents[4] / "teller_core" / "model" / "words" / "facts.txt"


@cache
def struck(kind: str) -> tuple[Case, int, WhyReport, Marks]:
    """A case with a request that its trouble is told of, the answer, and what that cites."""
    case = episode(0, kind).seen.case
    for request in range(len(case.starts)):
        report = judge(case, request)
        if report.findings and report.findings[0].cause == CAUSES[kind]:
            marks = cited(case, request, report)
            assert marks
            return case, request, report, marks
    raise AssertionError(f"no request was struck by {kind}")


def again(capture: Capture, request: int) -> WhyReport:
    """The answer to the same request of another capture."""
    return judge(prepare(capture, assess(capture)), request)


@pytest.mark.parametrize("kind", CAUSES)
def test_without_what_an_answer_cites_its_cause_is_told_no_more(kind: str) -> None:
    case, request, report, marks = struck(kind)
    bare = without(case.capture, marks)
    bare.check()
    assert CAUSES[kind] not in [finding.cause for finding in again(bare, request).findings]
    assert report.findings[0].confidence > 0.5


@pytest.mark.parametrize("kind", CAUSES)
def test_without_as_many_others_it_is_told_as_before(kind: str) -> None:
    case, request, report, marks = struck(kind)
    view = scene(case, request, report.metric)
    matched = others(case, marks, (view.low, view.high), seed=1)
    bare = without(case.capture, matched)
    bare.check()
    after = again(bare, request)
    assert after.findings[0].cause == CAUSES[kind]
    assert after.findings[0].confidence == pytest.approx(report.findings[0].confidence, abs=0.1)


@pytest.mark.parametrize("kind", CAUSES)
def test_others_are_as_many_and_none_of_what_is_cited(kind: str) -> None:
    case, request, report, marks = struck(kind)
    view = scene(case, request, report.metric)
    matched = others(case, marks, (view.low, view.high), seed=1)
    assert matched.keys() == marks.keys()
    for name, mask in marks.items():
        assert not (matched[name] & mask).any()
        assert matched[name].sum() == min(mask.sum(), (known(case, name) & ~mask).sum())
        assert known(case, name)[matched[name]].all()


def test_others_lasted_about_as_long() -> None:
    case = struck("gc")[0]
    start, stop = times(case, "steps")
    took = stop - start
    slow = took > 1.5 * np.median(took)
    half = slow & (np.cumsum(slow) % 2 == 0)
    matched = others(case, {"steps": half}, (0, 0), seed=3)["steps"]
    assert half.sum() and np.median(took[matched]) > 1.4 * np.median(took[~slow])


def test_a_counter_that_is_gone_shows_what_it_usually_does() -> None:
    case, _, _, marks = struck("starved")
    samples, gone = case.capture.samples, marks["samples"]
    after = without(case.capture, {"samples": gone}).samples
    shown = dict(zip(zip(after.name, after.process, after.start.tolist(), strict=True), after.delta, strict=True))
    keys = list(zip(samples.name, samples.process, samples.start.tolist(), strict=True))
    left = [shown.get(keys[row], 0) for row in np.flatnonzero(gone)]
    assert 4 * sum(left) < samples.delta[gone].sum()
    assert all(shown[keys[row]] == samples.delta[row] for row in np.flatnonzero(~gone))
    assert Counter(after.process).keys() == Counter(samples.process).keys()


def test_cells_become_unknown_and_nothing_else_changes() -> None:
    capture = struck("gc")[0].capture
    row = np.arange(len(capture.requests.number)) == 3
    after = without(capture, {"requests.queued": row, "requests.prompt_tokens": row}).requests
    assert after.queued[3] == UNKNOWN and after.prompt_tokens[3] == -1
    restored = replace(
        after,
        queued=np.where(row, capture.requests.queued, after.queued),
        prompt_tokens=np.where(row, capture.requests.prompt_tokens, after.prompt_tokens),
    )
    for column in fields(restored):
        assert list(getattr(restored, column.name)) == list(getattr(capture.requests, column.name))


def test_a_span_that_is_gone_leaves_those_below_it_and_every_step_its_rows() -> None:
    capture = profiled(0).seen.capture
    [rank] = capture.ranks
    assert rank.tree is not None
    row = int(np.flatnonzero(rank.tree.stop - np.arange(len(rank.tree)) > 2)[1])
    gone = np.arange(len(rank.tree)) == row
    after = without(capture, {"spans.0": gone})
    after.check()
    [left] = after.ranks
    assert left.tree is not None and len(left.tree) == len(rank.tree) - 1
    names = [trace.names[int(name)] for trace in (rank.tree.trace, left.tree.trace) for name in trace.name]
    assert Counter(names[len(rank.tree) :]) == Counter(names[: len(rank.tree)]) - Counter([names[row]])
    assert (after.work.row_stop - after.work.row).sum() == (capture.work.row_stop - capture.work.row).sum() - 1


def test_steps_without_a_profile_keep_their_times() -> None:
    capture = profiled(0).seen.capture
    some = np.arange(len(capture.steps.engine)) % 2 == 0
    after = without(capture, {"profiles": some})
    assert (after.work.row[some[after.work.step]] == -1).all()
    assert (after.work.row[~some[after.work.step]] >= 0).all()
    assert np.array_equal(after.steps.finished, capture.steps.finished)


def test_evidence_of_which_nobody_knows_where_it_is_from_is_not_passed_over() -> None:
    case, request, report, _ = struck("gc")
    other = EvidenceItem(kind="count", scope="capture", name="what no rule says", value=1.0, unit="times")
    finding = report.findings[0].model_copy(update={"evidence": [*report.findings[0].evidence, other]})
    assert cited(case, request, report.model_copy(update={"findings": [finding]})) is None


def test_sources_are_of_evidence_that_rules_name() -> None:
    said = {line.partition(" = ")[0].strip() for line in FACTS.read_text("utf-8").splitlines()}
    named = said | {name.partition(": ")[0] for name in said}
    assert not SOURCES.keys() - named
