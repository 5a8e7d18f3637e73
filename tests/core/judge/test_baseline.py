"""What is normal for an operator: learned from the capture, not hidden by the abnormal."""

from dataclasses import replace
from itertools import pairwise
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.trace import Layer
from teller_core.judge.baseline import Spans, learn
from teller_core.judge.classes import classify, padded
from teller_core.judge.robust import NORMAL_MAD, factorize, grouped, medians
from tests.core.judge.service import MS, Rows, Work, service, steps_table

VALUES = st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e6, width=32)), min_size=1, max_size=60)


@given(VALUES)
def test_medians_of_groups_are_those_of_the_standard_library(pairs: list[tuple[int, float]]) -> None:
    group = np.array([g for g, _ in pairs], dtype=np.int32)
    value = np.array([v for _, v in pairs], dtype=np.float32)
    middle, spread, count = medians(group, value, 5)
    for g in range(5):
        mine = [float(v) for v, k in zip(value, group, strict=True) if k == g]
        assert count[g] == len(mine)
        if mine:
            assert middle[g] == pytest.approx(median(mine), rel=1e-6, abs=1e-6)
            apart = median([abs(v - median(mine)) for v in mine])
            assert spread[g] == pytest.approx(NORMAL_MAD * apart, rel=1e-4, abs=0.5 + 1e-6 * max(mine))
        else:
            assert np.isnan(middle[g])


@given(VALUES, st.floats(0, 1))
def test_quantiles_of_groups_are_those_of_numpy(pairs: list[tuple[int, float]], q: float) -> None:
    group = np.array([g for g, _ in pairs], dtype=np.int32)
    value = np.array([v for _, v in pairs], dtype=np.float32)
    found = grouped(group, value, 5).quantile(q)
    for g in set(group.tolist()):
        mine = value[group == g].astype(np.float64)
        assert found[g] == pytest.approx(np.quantile(mine, q), rel=1e-6, abs=1e-6)


@given(st.lists(st.sampled_from([7, 2**63 + 5, 2**61, 3 * 2**60]), min_size=1, max_size=40))
def test_equal_keys_are_one_group_and_rows_stay_in_order(keys: list[int]) -> None:
    key = np.array(keys, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    group, order, first = factorize(key)
    same = key[:, None] == key[None, :]
    assert np.array_equal(group[:, None] == group[None, :], same)
    assert np.array_equal(np.sort(order), np.arange(len(keys)))
    assert len(first) == len(set(keys))
    assert all(a < b for a, b in pairwise(order.tolist()) if group[a] == group[b])


def spans_of(steps: list[Work], **options: int) -> tuple[Spans, dict[str, np.ndarray]]:
    capture = service(steps, **options)
    _, found = learn(capture, classify(capture.steps, capture.work))
    trace = found[0].tree.trace
    return found[0], {name: np.flatnonzero(trace.name == i) for i, name in enumerate(trace.names)}


def test_a_fault_that_strikes_three_steps_in_ten_stands_out() -> None:
    struck = [i % 10 < 3 for i in range(60)]
    spans, rows = spans_of([Work(slow={"aten::sdpa": 4.0} if s else {}) for s in struck])
    slow = np.array(struck)[spans.step[rows["aten::sdpa"]]]
    residual = spans.residual[rows["aten::sdpa"]]
    assert residual[slow].min() > 10
    assert np.abs(residual[~slow]).max() < 4


def test_calls_of_one_place_that_differ_are_told_apart_by_their_order() -> None:
    capture = service([Work() for _ in range(20)])
    table, found = learn(capture, classify(capture.steps, capture.work))
    small = [
        m for n, p, m in zip(table.name, table.place, table.median, strict=True) if (n, p[-2:]) == ("aten::addmm", "#1")
    ]
    large = [
        m for n, p, m in zip(table.name, table.place, table.median, strict=True) if (n, p[-2:]) == ("aten::addmm", "#2")
    ]
    assert small[0] == pytest.approx(60_000, rel=0.1)
    assert large[0] == pytest.approx(180_000, rel=0.1)
    assert np.abs(found[0].residual[found[0].tree.trace.dur > 50_000]).max() < 4


def test_layers_of_a_model_share_one_place_and_say_how_often_they_are_called() -> None:
    capture = service([Work() for _ in range(20)])
    table, _ = learn(capture, classify(capture.steps, capture.work))
    places = [(n, p, c) for n, p, c in zip(table.name, table.place, table.calls, strict=True) if n == "aten::norm"]
    assert places == [("aten::norm", "execute_context_#(#)_generation_# > nn.Module: Block_#", 4.0)]


def test_a_baseline_of_few_spans_calls_nothing_surprising() -> None:
    spans, rows = spans_of([Work(), Work(slow={"aten::sdpa": 50.0})], seed=3)
    root = next(name for name in rows if name.startswith("execute"))
    assert np.isnan(spans.residual[rows[root]]).all()


def test_what_more_tokens_explain_is_not_surprising() -> None:
    steps = [Work(context=8 * (1 + i % 24), generation=8, kv=800 * (1 + i % 9)) for i in range(80)]
    spans, rows = spans_of(steps)
    for name in ("aten::addmm", "aten::sdpa"):
        assert np.nanmax(np.abs(spans.residual[rows[name]])) < 6


def test_a_class_of_steps_that_is_struck_throughout_is_judged_by_the_others() -> None:
    steps = [Work(generation=8, slow={"aten::addmm": 5.0}) if i % 2 else Work(generation=4) for i in range(60)]
    spans, rows = spans_of(steps)
    struck = spans.step[rows["aten::addmm"]] % 2 == 1
    assert spans.residual[rows["aten::addmm"]][struck].min() > 3.5
    assert spans.residual[rows["aten::addmm"]][~struck].max() < 3.5


def test_ranks_are_held_against_one_norm() -> None:
    capture = service([Work() for _ in range(20)], ranks=3)
    table, found = learn(capture, classify(capture.steps, capture.work))
    assert [spans.rank for spans in found] == [0, 1, 2]
    norm = [c for n, c in zip(table.name, table.count, strict=True) if n == "aten::norm"]
    assert norm == [3 * 20 * 4]


def test_totals_and_counts_cover_every_span() -> None:
    capture = service([Work(context=20 * (i % 3)) for i in range(30)])
    table, found = learn(capture, classify(capture.steps, capture.work))
    assert int(table.count.sum()) == len(found[0].tree)
    assert int(table.total.sum()) == int(found[0].own.sum())


def test_a_capture_without_a_profile_has_no_baselines() -> None:
    capture = service([Work(profiled=False) for _ in range(3)])
    bare = replace(capture, ranks=[replace(rank, tree=None) for rank in capture.ranks])
    table, found = learn(bare, classify(capture.steps, capture.work))
    assert (table.name, found) == ([], [])


def test_steps_of_more_tokens_than_any_engine_computes_are_padded_to_the_most() -> None:
    steps = [Work(context=2**31 - 1, generation=2**31 - 1) for _ in range(3)]
    table = steps_table(steps, np.arange(3) * MS, np.arange(3) * MS + 1)
    assert padded(table).tolist() == [2**30] * 3


def test_times_that_no_number_holds_together_are_told_as_the_longest_there_is() -> None:
    rows = Rows()
    for i in range(9):
        rows.leaf("aten::mm", Layer.OPERATOR, i, 2**62)
    made = service([Work(profiled=False)])
    told, _ = learn(replace(made, ranks=[replace(made.ranks[0], tree=rows.tree())]), classify(made.steps, made.work))
    assert told.total.tolist() == [2**63 - 1024]
    assert told.median[0] == pytest.approx(2**62, rel=1e-5)
