"""Words that cannot lie: whatever way through the grammar is taken, every name and number stands in the answer."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from teller_core.data.report import WhyReport
from teller_core.data.said import unsupported
from teller_core.model.words import saying
from teller_core.model.words.automaton import after, allowed, begin
from teller_core.model.words.checking import checked
from teller_core.model.words.completeness import completeness, told
from teller_core.model.words.filling import filled
from teller_core.model.words.grammar import END, grammar
from teller_core.model.words.lexicon import clause
from teller_core.model.words.matter import Fact, Matter, of_report, of_truth
from teller_core.model.words.saying import said
from teller_core.model.words.teaching import MOST_DETAILS, decoded, taught
from tests.core.model.words.making import HOSTILE, finding, item, report, reports

LONGEST = 60
"""Actions: an answer is no essay."""


def wandered(matter: Matter, choices: some.DataObject) -> list[int]:
    """Any way through the grammar."""
    prefix, said = begin(matter), list[int]()
    while not said or said[-1] != END:
        free = np.flatnonzero(allowed(prefix)).tolist()
        said.append(choices.draw(some.sampled_from(free)))
        prefix = after(prefix, said[-1])
    return said


@given(reports(), some.data())
def test_on_any_way_through_the_grammar_every_name_and_number_stands_in_the_answer(
    answer: WhyReport, choices: some.DataObject
) -> None:
    matter = of_report(answer)
    actions = wandered(matter, choices)
    spoken = filled(actions, matter, answer)
    assert len(actions) <= LONGEST
    assert checked([claim.text for claim in spoken.claims], answer).dropped == {}
    own = [answer.reason, *answer.next_checks]
    own += [text for each in answer.findings for text in (each.fix, *each.against)]
    for claim in spoken.claims:
        assert claim.text[0].isupper() and claim.text.endswith(".")
        if not any(text.rstrip(".") in claim.text for text in (*own, *map(_next, answer.findings)) if text):
            assert set(unsupported(claim.text, answer)) <= _in_names(spoken.facts, matter)
        for text in HOSTILE:
            assert len(text) < 12 or text.strip() not in claim.text or text.strip() == "collections while it waited"


def _next(one: object) -> str:
    from teller_core.data.causes import cause

    return cause(one.cause).next_check  # pyright: ignore[reportAttributeAccessIssue]


def _in_names(facts: tuple[int, ...], matter: Matter) -> set[str]:
    """Numbers that are part of a fact's name, as those of ranks."""
    return {found for at in facts for found in re.findall(r"\d+", matter.facts[at].item.name or "")}


@given(reports(), some.integers(0, 9))
def test_what_is_taught_is_allowed_complete_and_short(answer: WhyReport, seed: int) -> None:
    matter = of_report(answer)
    for actions in (taught(matter), taught(matter, np.random.default_rng(seed))):
        spoken = filled(actions, matter, answer)
        assert checked([claim.text for claim in spoken.claims], answer).dropped == {}
        assert len(spoken.facts) <= 1 + MOST_DETAILS + 2
        assert len(set(spoken.facts)) == len(spoken.facts)
    wanted = told(filled(taught(matter), matter, answer).text, answer)
    known = ("cost" if answer.findings else "took") in matter.flags
    assert [name for name, said in wanted.items() if not said and (known or name != "how_much")] == []


def test_the_plain_answer_reads_like_one() -> None:
    evidence = [
        item(),
        item("the longest collection", 210.4),
        item("collections", 3.0, unit="times"),
        item("the most stretched step", 240.0, normal=31.5, kind="step"),
    ]
    answer = report(
        finding(
            evidence=evidence,
            step=17,
            against=["host.cpu_starvation: its threads waited for a processor no longer than usual"],
        )
    )
    matter = of_report(answer)
    assert filled(taught(matter), matter, answer).text == (
        "Request 3 took 812.5 ms from end to end, 2.41 times what its work predicts. Python's garbage collector stopped the"
        " process (GC pause), which cost it 412 ms, about half of its time. It shows most at step 17. Seen: the most stretched"
        " step took 240 ms (more than twice the usual 31.5 ms); the longest collection took 210.4 ms. It does not look like"
        " CPU starvation (its threads waited for a processor no longer than usual). Confidence 0.9, resting on scheduler"
        " records and host counters. To mend it: gc.freeze after warm-up, raise thresholds, collect when idle, fix leaks."
    )


@pytest.mark.parametrize(("confidence", "begins"), [(0.9, "Python"), (0.7, "Most likely, "), (0.3, "Perhaps ")])
def test_a_cause_is_told_as_sure_as_it_is(confidence: float, begins: str) -> None:
    answer = report(finding(confidence=confidence))
    matter = of_report(answer)
    assert filled(taught(matter), matter, answer).claims[1].text.startswith(begins)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("normal", "is what the reference says"),
        ("typical_here", "may all be slow"),
        ("could_not_tell", "Why cannot be told, because nothing recorded"),
    ],
)
def test_an_answer_without_a_cause_has_words_too(verdict: str, words: str) -> None:
    answer = report(verdict=verdict)
    matter = of_report(answer)
    assert words in filled(taught(matter), matter, answer).text
    assert completeness(filled(taught(matter), matter, answer).text, answer) == 1.0


def test_a_comparison_is_allowed_only_where_it_is_true() -> None:
    words = grammar().words
    more = {at for at, word in enumerate(words) if "more than" in word}
    answer = report(finding(evidence=[item(), item("the longest of them", 10.0, normal=20.0, kind="step")]))
    matter = of_report(answer)
    assert matter.kinds[1] == {"less"}
    assert not more & set(taught(matter).tolist())
    assert "less than the usual 20 ms" in filled(taught(matter), matter, answer).text


@pytest.mark.parametrize(
    ("value", "metric", "words"),
    [
        (412.0, "e2e", "about half of its time"),
        (700.0, "e2e", "most of its time"),
        (80.0, "e2e", "a smaller part of its time"),
        (900.0, "e2e", ""),
        (412.0, "tpot", ""),
    ],
)
def test_how_much_of_its_time_a_cost_is_is_told_where_it_is_a_part_of_it(value: float, metric: str, words: str) -> None:
    answer = report(finding(evidence=[item(value=value)]), metric=metric)
    matter = of_report(answer)
    text = filled(taught(matter), matter, answer).text
    assert words in text and ("of its time" in text) == bool(words)
    assert checked(text, answer).dropped == {}


def test_a_cause_that_cost_twice_is_told_with_both_and_what_they_are_together() -> None:
    evidence = [
        item("steps stretched while threads waited for a processor", 16.9),
        item("the front end waited for a processor, or was held back by a quota", 284.7),
    ]
    answer = report(finding("host.cpu_starvation", evidence, cost_ms=301.6))
    text = said(answer).text
    assert "which cost it 301.6 ms, a smaller part of its time" in text
    assert "stretched by 16.9 ms" in text and "waited 284.7 ms" in text


def test_a_cause_beside_the_first_is_told_with_what_it_cost_in_all() -> None:
    beside = finding(
        "host.io_stall", [item("steps and gaps stretched while storage was waited for", 51.0)], cost_ms=60.5
    )
    assert "Beside it: I/O stall (60.5 ms)." in said(report(finding(), beside)).text


def test_what_its_end_would_save_is_told_of_the_whole_request_alone() -> None:
    saving: dict[str, Any] = {"saving_ms": 390.5, "saving_low_ms": 350.0, "saving_high_ms": 401.0}
    for metric, told_of in (("e2e", True), ("ttft", False)):
        answer = report(finding(**saving), metric=metric)
        matter = of_report(answer)
        text = filled(taught(matter), matter, answer).text
        assert ("would have ended 390.5 ms sooner (between 350 ms and 401 ms)" in text) == told_of


def test_a_fact_that_was_read_and_is_not_in_the_answer_may_not_be_cited() -> None:
    answer = report(finding())
    foreign = Fact("host.gc_pause", item("the longest collection", 999.0))
    matter = of_report(answer, [foreign, Fact("host.gc_pause", item()), Fact("host.io_stall", item())])
    assert [bool(kinds) for kinds in matter.kinds] == [False, True, False]


def test_facts_that_were_read_are_told_with_the_lines_that_the_answer_knows() -> None:
    line = item("a compilation in the log", None, kind="log_line", unit=None, log_line="server.log:17")
    answer = report(finding("cuda.jit_compile", [item(), line]))
    read = Fact("cuda.jit_compile", line.model_copy(update={"log_line": None}))
    matter = of_report(answer, [Fact("cuda.jit_compile", item()), read])
    assert "a compilation in the log (`server.log:17`)" in filled(taught(matter), matter, answer).text


def test_decoding_asks_only_where_there_is_a_choice_and_takes_the_best_that_is_allowed() -> None:
    answer = report(
        finding(evidence=[item(), item("the longest collection", 210.4), item("collections", 3.0, unit="times")])
    )
    matter = of_report(answer)
    wanted = len(grammar().words) + 2
    asked: list[int] = []

    def score(said: object) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
        asked.append(1)
        scores = np.zeros(len(grammar().words) + 3, np.float32)
        scores[wanted] = 1.0
        return scores

    actions = decoded(matter, score)
    assert actions[-1] == END
    assert 0 < len(asked) < len(actions)
    spoken = filled(actions, matter, answer)
    assert checked(spoken.text, answer).dropped == {}
    assert 2 in spoken.facts or not spoken.facts or len(spoken.facts) == 1


def test_an_answer_in_words_says_which_facts_it_cites_and_what_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = report(finding(evidence=[item(), item("the longest collection", 210.4)]))
    whole = said(answer)
    assert (whole.facts, whole.dropped) == ((0, 1), {})
    assert "collections took" not in whole.text
    monkeypatch.setattr(
        saying, "checked", lambda texts, report: checked([f"{text} 31337" for text in texts[1:2]], report)
    )
    assert said(answer) == saying.Said("", (), {"number": 1})


def test_what_is_taught_from_truth_is_what_is_said_of_the_answer_that_tells_it() -> None:
    answer = report(finding(step=4), over_work=None)
    facts = [Fact("host.gc_pause", item())]
    lesson = of_truth(
        "cause", "host.gc_pause", facts, confidence=0.9, also=("took", "step", "cost", "half_of_it"), cost=412.0
    )
    assert lesson.flags == of_report(answer).flags
    assert taught(lesson).tolist() == taught(of_report(answer)).tolist()


def test_a_fact_may_not_be_filled_in_where_nothing_allows_it() -> None:
    answer = report(finding(evidence=[item(), item("by nobody's name", 3.0)]))
    matter = of_report(answer)
    assert clause(matter.facts[1].item) is None
    with pytest.raises(ValueError, match="may not be said"):
        filled([len(grammar().words) + 1], matter, answer)
