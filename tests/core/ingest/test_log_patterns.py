"""The lines that are known: every sample of the pattern file is a test."""

import pytest

from teller_core.ingest.log_patterns import Pattern, patterns, recognize
from teller_core.ingest.redact import clean


@pytest.mark.parametrize("pattern", patterns(), ids=lambda pattern: pattern.id)
def test_a_sample_is_read_by_its_own_pattern_to_its_fields(pattern: Pattern) -> None:
    known = recognize(pattern.sample)
    assert known is not None
    assert known.pattern.id == pattern.id
    assert known.fields == dict(pattern.fields)
    assert pattern.key in pattern.sample


@pytest.mark.parametrize("pattern", [p for p in patterns() if p.covers], ids=lambda pattern: pattern.id)
def test_a_message_that_needs_no_cleaning_is_not_changed_by_it(pattern: Pattern) -> None:
    assert clean(pattern.sample).redactions == 0
    assert recognize("somebody wrote: " + pattern.sample) is None


def test_ids_are_unique() -> None:
    ids = [pattern.id for pattern in patterns()]
    assert len(ids) == len(set(ids))


def test_fields_may_move_and_go() -> None:
    known = recognize("Iteration(3): 4 generation tokens, 2 generation requests, 0 context tokens, 0 context requests")
    assert known is not None
    assert known.fields["generation_requests"] == "2"
    assert "elapsed_ms" not in known.fields
