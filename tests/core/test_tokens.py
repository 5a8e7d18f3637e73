"""``slice --raw``: a stored step as tokens, with what is suspected kept open."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.context.tpe.default import default
from teller_core.data.report_tokens import TokensReport
from teller_core.errors import InputError, UnknownName
from teller_core.slices import causal_slice, tokens
from teller_core.store.store import Store
from tests.core.store.made import assessment_of, capture_of, report_of


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    with Store.open(tmp_path / "t.db") as opened:
        capture = replace(capture_of("0a"), id="0a" * 32)
        opened.save(capture, assessment_of({}), [], report_of(capture))
        yield opened


def test_every_span_of_the_step_is_in_one_token_below_tokens_that_come_before_it(store: Store) -> None:
    report = TokensReport.model_validate_json(tokens(store, "step 0").model_dump_json())
    assert report.ranks
    for rank in report.ranks:
        assert sum(rank.spans) == rank.events > 0
        ends = [first + spans for first, spans in zip(rank.first, rank.spans, strict=True)]
        assert rank.first[1:] == ends[:-1]
        assert all(-1 <= above < at for at, above in enumerate(rank.parent))
        assert all(low <= row < end for low, row, end in zip(rank.first, rank.largest, ends, strict=True))
        assert {each.symbol for each in report.used} >= set(rank.symbol)
    assert (report.vocabulary, report.symbols) == (default().hash, len(default()))


def test_what_a_slice_calls_unusual_is_a_token_of_its_own(store: Store) -> None:
    odd = [line.handle for line in causal_slice(store, "step 0").lines if line.residual is not None]
    report = tokens(store, "step 0")
    alone = {
        f"{rank.rank}:{first}"
        for rank in report.ranks
        for first, spans in zip(rank.first, rank.spans, strict=True)
        if spans == 1
    }
    assert odd and set(odd) <= alone


def test_a_rank_may_be_asked_for_alone(store: Store) -> None:
    ranks = [rank.rank for rank in tokens(store, "step 0").ranks]
    assert [rank.rank for rank in tokens(store, "step 0", rank=ranks[0]).ranks] == ranks[:1]


def test_what_is_no_step_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="tokens are of whole steps"):
        tokens(store, "0:1")
    with pytest.raises(UnknownName, match="no such step"):
        tokens(store, "step 999")
    with pytest.raises(UnknownName, match="the rank"):
        tokens(store, "step 0", rank=99)
