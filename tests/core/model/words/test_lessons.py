"""Lessons: what is to be said of a sheet, from its facts and the truth."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.report import EvidenceItem
from teller_core.data.sheet_parts import Facts
from teller_core.data.sheets import Kind, Sheets, no_sheets, with_rows
from teller_core.model.words.checking import checked
from teller_core.model.words.filling import filled
from teller_core.model.words.grammar import END, grammar
from teller_core.model.words.lessons import facts_of, lesson
from teller_core.model.words.matter import Fact, of_report
from tests.core.model.words.making import finding, item, report

EVIDENCE = [item(), item("the longest collection", 210.4), item("collections", 3.0, unit="times")]
AGAINST = [
    "host.cpu_starvation: its threads waited for a processor no longer than usual",
    "cuda.jit_compile: the log names no compilation",
]
OTHER = [item("steps and gaps stretched while storage was waited for", 51.0)]


def sheet(
    own: list[EvidenceItem], other: list[EvidenceItem] = OTHER, *, kind: Kind = Kind.REQUEST, step: int = 4
) -> Sheets:
    """One sheet with the facts of two causes, the other one first."""
    pairs = [("host.io_stall", each) for each in other] + [("host.gc_pause", each) for each in own]
    facts = [each for _, each in pairs]
    many = len(pairs)
    table = Facts(
        cause=[key for key, _ in pairs],
        name=[each.name or "" for each in facts],
        value=np.array([np.nan if each.value is None else each.value for each in facts]),
        normal=np.array([np.nan if each.normal is None else each.normal for each in facts]),
        unit=[each.unit or "" for each in facts],
        kind=[each.kind for each in facts],
        scope=[each.scope for each in facts],
        share=np.full(many, 0.5, np.float32),
        sure=np.full(many, 0.95, np.float32),
        step=np.full(many, step, np.int32),
        rank=np.full(many, -1, np.int32),
        operator=[""] * many,
        span=[each.span or "" for each in facts],
        line=np.full(many, -1, np.int32),
        horizontal=np.zeros(many, np.uint8),
    )
    made = replace(
        no_sheets(1),
        kind=np.array([kind], np.uint8),
        span=np.array([824_000_000], np.int64),
        facts=table,
        facts_at=with_rows([many]),
    )
    made.check()
    return made


def test_the_facts_of_a_sheet_are_the_evidence_that_it_was_written_from() -> None:
    assert facts_of(sheet(EVIDENCE), 0) == [
        *(Fact("host.io_stall", each) for each in OTHER),
        *(Fact("host.gc_pause", each) for each in EVIDENCE),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_a_lesson_cites_the_facts_of_its_cause_and_is_what_an_answer_may_say(seed: int) -> None:
    sheets = sheet(EVIDENCE)
    actions = lesson(sheets, 0, "cause", "host.gc_pause", np.random.default_rng(seed))
    assert actions[-1] == END
    cited = [action - len(grammar().words) for action in actions.tolist() if action >= len(grammar().words)]
    assert set(cited) & {1, 2, 3} and len(set(cited)) == len(cited)
    answer = report(
        finding(evidence=EVIDENCE, step=4, against=AGAINST, saving_ms=390.0, saving_low_ms=350.0, saving_high_ms=400.0),
        finding("host.io_stall", OTHER),
        over_slo=1.0,
        over_load=2.0,
    )
    spoken = filled(actions, of_report(answer, facts_of(sheets, 0)), answer)
    assert set(cited) <= set(spoken.facts) <= set(cited) | {1}
    assert set(checked([claim.text for claim in spoken.claims], answer).dropped) <= {"confidence"}


def _said(actions: list[int]) -> str:
    words = grammar().words
    return " ".join(words[action] for action in actions if action < len(words))


def test_lessons_differ_by_the_draw_and_are_the_same_for_the_same_draw() -> None:
    sheets = sheet(EVIDENCE)
    every = [
        tuple(lesson(sheets, 0, "cause", "host.gc_pause", np.random.default_rng(seed)).tolist()) for seed in range(20)
    ]
    again = [
        tuple(lesson(sheets, 0, "cause", "host.gc_pause", np.random.default_rng(seed)).tolist()) for seed in range(20)
    ]
    assert every == again
    assert len(set(every)) > 10


@pytest.mark.parametrize("verdict", ["normal", "typical_here", "could_not_tell"])
def test_where_there_is_no_cause_no_fact_is_cited(verdict: str) -> None:
    actions = lesson(sheet(EVIDENCE), 0, verdict)  # pyright: ignore[reportArgumentType]
    assert actions.max() < len(grammar().words)
    assert actions[-1] == END


def test_a_cause_for_which_no_fact_speaks_is_told_without() -> None:
    actions = lesson(sheet([]), 0, "cause", "host.gc_pause")
    assert "{plain}" in _said(actions.tolist()) or "{called}" in _said(actions.tolist())


def test_nothing_is_said_of_a_step() -> None:
    assert len(lesson(sheet(EVIDENCE, kind=Kind.STEP), 0, "cause", "host.gc_pause")) == 0
