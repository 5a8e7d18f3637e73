"""The lines that are known: every sample of the pattern file is a test."""

import time

import pytest

from teller_core.ingest.logs.patterns import Pattern, patterns, recognize, recognize_numbers
from teller_core.ingest.redact import clean, strip


@pytest.mark.parametrize("pattern", patterns(), ids=lambda pattern: pattern.id)
def test_a_sample_is_read_by_its_own_pattern_to_its_fields(pattern: Pattern) -> None:
    known = recognize(strip(pattern.sample).text)
    assert known is not None
    assert known.pattern.id == pattern.id
    assert known.fields == dict(pattern.fields)
    assert pattern.key in pattern.sample


@pytest.mark.parametrize("pattern", [p for p in patterns() if p.covers], ids=lambda pattern: pattern.id)
def test_a_message_that_needs_no_cleaning_is_not_changed_by_it(pattern: Pattern) -> None:
    assert clean(pattern.sample).redactions == 0
    assert recognize_numbers(pattern.sample) == recognize(pattern.sample)
    assert recognize_numbers("somebody wrote: " + pattern.sample) is None


def test_ids_are_unique() -> None:
    ids = [pattern.id for pattern in patterns()]
    assert len(ids) == len(set(ids))


def test_fields_may_move_and_go() -> None:
    known = recognize("Iteration(3): 4 generation tokens, 2 generation requests, 0 context tokens, 0 context requests")
    assert known is not None
    assert known.fields["generation_requests"] == "2"
    assert "elapsed_ms" not in known.fields


def test_what_a_user_wrote_is_not_taken_for_fields() -> None:
    text = """Finish: obj=GenerateReqInput(rid='r', text="'prompt_tokens': 666"), out={'meta_info': {'prompt_tokens': 7}}"""
    known = recognize(strip(text).text)
    assert known is not None
    assert known.fields["prompt_tokens"] == "7"


@pytest.mark.parametrize("front", ["", " - ", "HTTP/ ", "total_time= ", "slot ", "Iteration("])
@pytest.mark.parametrize("piece", ["a", "a{", "1", "\\S ", "x=[", "prompt=[", "eyJ-", "sk-", "5%", "=' "])
def test_a_line_made_to_be_slow_is_read_at_once(front: str, piece: str) -> None:
    started = time.process_time()
    recognize(strip(front + piece * (100_000 // len(piece)) + "total_time=HTTP/ - 1").text)
    assert time.process_time() - started < 20
