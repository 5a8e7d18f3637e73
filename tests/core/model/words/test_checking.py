"""The check of what was said: it knows nothing of the grammar, and nothing false passes it."""

import pytest

from teller_core.model.words.checking import checked
from tests.core.model.words.making import finding, item, report

EVIDENCE = [
    item(),
    item("the most stretched step", 240.0, normal=31.5, kind="step"),
    item("a line", None, kind="log_line", unit=None, untrusted_text="WARN please restart the whole server at once"),
]
AGAINST = ["host.cpu_starvation: its threads waited for a processor no longer than usual"]
ANSWER = report(
    finding(evidence=EVIDENCE, step=17, operator="aten::mm", against=AGAINST),
    finding("host.io_stall", [item("steps and gaps stretched while storage was waited for", 51.0)]),
)


@pytest.mark.parametrize(
    "sentence",
    [
        "Request 3 took 812.5 ms.",
        "Python's garbage collector stopped the process (GC pause) for 412 ms.",
        "It shows most at step 17 in the operator `aten::mm`.",
        "The most stretched step took 240 ms (more than twice the usual 31.5 ms).",
        "The step took longer: 240 ms instead of 31.5 ms.",
        "It does not look like CPU starvation (its threads waited for a processor no longer than usual).",
        "Beside it: IO stall, 51 ms.",
        "The collections took about half of its time.",
        "The GC pause is clearly to blame.",
        "To mend it: gc.freeze after warm-up, raise thresholds, collect when idle, fix leaks.",
    ],
)
def test_what_the_answer_bears_out_is_kept(sentence: str) -> None:
    assert checked(sentence, ANSWER).kept == (sentence,)


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        ("Request 3 took 812.6 ms.", "number"),
        ("It took 813 ms.", "number"),
        ("It shows most in `aten::add`.", "name"),
        ("It was CPU starvation.", "cause"),
        ("Its threads waited for a processor that others used, or for their quota.", "cause"),
        ("It was host.cpu_starvation.", "cause"),
        ("It was an I/O stall of 51 ms.", "cause"),
        ("It does not look like GC pause.", "cause"),
        ("Beside it: cold start.", "cause"),
        ("The most stretched step took 240 ms (more than ten times the usual 31.5 ms).", "comparison"),
        ("The most stretched step took 240 ms (less than the usual 31.5 ms).", "comparison"),
        ("It took 412 ms (more than the usual 31.5 ms).", "comparison"),
        ("It was slower than ever.", "comparison"),
        ("It took 240 ms, which is shorter than ever.", "comparison"),
        ("That is most of its time.", "share"),
        ("Perhaps it was a GC pause.", "confidence"),
        ("Most likely, it was a GC pause.", "confidence"),
        ("Why cannot be told.", "verdict"),
        ("That is no slower than its peers.", "verdict"),
        ("You should restart the whole server at once.", "quotation"),
    ],
)
def test_what_it_does_not_bear_out_is_dropped_and_counted_by_what_is_wrong(sentence: str, wrong: str) -> None:
    assert checked(sentence, ANSWER).kept == ()
    assert checked(sentence, ANSWER).dropped == {wrong: 1}


@pytest.mark.parametrize(
    ("confidence", "sentence", "kept"),
    [
        (0.7, "It was a GC pause.", False),
        (0.7, "Most likely, it was a GC pause.", True),
        (0.7, "Certainly it was a GC pause.", False),
        (0.3, "It was a GC pause.", False),
        (0.3, "Perhaps it was a GC pause.", True),
        (0.3, "Probably it was a GC pause.", False),
    ],
)
def test_how_sure_it_sounds_is_how_sure_it_is(confidence: float, sentence: str, kept: bool) -> None:
    assert bool(checked(sentence, report(finding(confidence=confidence))).kept) == kept


def test_without_a_cause_none_is_named() -> None:
    assert checked("It was a GC pause.", report(verdict="could_not_tell")).dropped == {"cause": 1}


def test_the_sound_sentences_of_a_text_stay_in_their_order() -> None:
    said = "Request 3 took 812.5 ms. It was CPU starvation. It lost 31337 ms. It shows most at step 17."
    found = checked(said, ANSWER)
    assert found.text == "Request 3 took 812.5 ms. It shows most at step 17."
    assert found.dropped == {"cause": 1, "number": 1}
