"""``slice --raw``: a stored step as tokens, with what is suspected kept open."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.context.tpe.default import default
from teller_core.data.assessment import Candidates
from teller_core.data.report_tokens import RankTokens, TokensReport
from teller_core.errors import InputError, UnknownName
from teller_core.pipeline import import_paths
from teller_core.slices import tokens
from teller_core.store.store import Store
from tests.core.store.made import assessment_of, capture_of, filled, report_of, tree_of

REAL = Path(__file__).parents[1] / "data" / "captures" / "vllm_2node"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Generator[Store]:
    with Store.open(tmp_path_factory.mktemp("tokens") / "t.db") as opened:
        import_paths([REAL], opened)
        yield opened


def profiled(store: Store) -> str:
    """The first step that several ranks have a profile of."""
    work = store.work(store.resolve(None))
    step, ranks = np.unique(work.step[work.row >= 0], return_counts=True)
    return f"step {int(step[ranks > 1][0])}"


def test_every_span_of_the_step_is_in_one_token_below_tokens_that_come_before_it(store: Store) -> None:
    report = TokensReport.model_validate_json(tokens(store, profiled(store)).model_dump_json())
    assert len(report.ranks) == 2
    for rank in report.ranks:
        assert sum(rank.spans) == rank.events > len(rank.symbol) > 0
        ends = [first + spans for first, spans in zip(rank.first, rank.spans, strict=True)]
        assert rank.first[1:] == ends[:-1]
        assert all(-1 <= above < at for at, above in enumerate(rank.parent))
        assert all(low <= row < end for low, row, end in zip(rank.first, rank.largest, ends, strict=True))
        assert {each.symbol for each in report.used} >= set(rank.symbol)
        assert [bool(name) for name in rank.name] == [spans == 1 for spans in rank.spans]
    assert (report.vocabulary, report.symbols) == (default().hash, len(default()))


def test_what_is_suspected_is_a_token_of_its_own(tmp_path: Path) -> None:
    tree = tree_of(90)
    capture = replace(capture_of("0a", tree, steps=1), id="0a" * 32)
    work = replace(capture.work, row=np.zeros(1, np.int32), row_stop=np.full(1, 90, np.int32))

    def encoded(name: str, rows: list[int]) -> RankTokens:
        suspects = filled(Candidates, len(rows), name=["a"] * len(rows), method=["residual"] * len(rows), row=rows)
        with Store.open(tmp_path / f"{name}.db") as store:
            assessment = replace(assessment_of({}), candidates=suspects)
            store.save(replace(capture, work=work), assessment, [], report_of(capture))
            return tokens(store, "step 0").ranks[0]

    before = encoded("before", [])
    inside = next(first + 1 for first, spans in zip(before.first, before.spans, strict=True) if spans > 1)
    after = encoded("after", [inside])
    assert (inside, 1) in zip(after.first, after.spans, strict=True)
    assert after.opened == before.opened + 1


def test_a_rank_may_be_asked_for_alone(store: Store) -> None:
    step = profiled(store)
    ranks = [rank.rank for rank in tokens(store, step).ranks]
    assert [rank.rank for rank in tokens(store, step, rank=ranks[1]).ranks] == ranks[1:]


def test_a_step_without_a_profile_says_so(store: Store) -> None:
    report = tokens(store, "step 0")
    assert (report.ranks, report.note) == ([], "no profile overlaps this step: it has no spans to make tokens of")


def test_what_is_no_step_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="tokens are of whole steps"):
        tokens(store, "0:1")
    with pytest.raises(UnknownName, match="no such step"):
        tokens(store, "step 999")
    with pytest.raises(UnknownName, match="the rank"):
        tokens(store, "step 0", rank=99)
