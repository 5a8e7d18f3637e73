"""An operator explained from its capture."""

from functools import partial

import numpy as np
import pytest

from teller_core.data.assessment import Baselines
from teller_core.data.causes import causes
from teller_core.data.report_operators import UsualTrouble
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.errors import UnknownName
from teller_core.judge.baseline import learn
from teller_core.judge.classes import classify
from teller_core.tell.families import FAMILIES, family_of
from teller_core.tell.operator import calls_in, codes_of, explain_operator
from teller_core.tell.operator_calls import RankCalls
from tests.core.judge.service import Work, service


def ranks_of(made: object, name: str) -> list[RankCalls]:
    work, ranks = made.work, made.ranks  # type: ignore[attr-defined]
    steps = [(int(a), int(b), int(t)) for a, b, t in zip(work.row, work.row_stop, work.start, strict=True)]
    return [
        RankCalls(r, rank.tree.trace.names, *calls_in(rank.tree, name), (), partial(times, rank.tree), steps)
        for r, rank in enumerate(ranks)
    ]


def times(tree: Tree, row: int) -> tuple[int, int]:
    return int(tree.trace.start[row]), int(tree.trace.dur[row])


def totals_of(table: Baselines) -> dict[int, float]:
    return dict(enumerate(np.bincount(table.layer, weights=table.total).tolist()))


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("aten::mm", "matrix product"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "NCCL"),
        ("gloo:all_reduce", "torch.distributed"),
        ("c10d::allreduce_", "torch.distributed"),
        ("multimem_all_reduce_kernel", "custom all-reduce"),
        ("flash_fwd_splitkv_kernel", "Attention"),
        ("fmhaSm100fKernel_QkvBfloat16", "Attention"),
        ("vllm::unified_attention_with_output", "Attention"),
        ("paged_attention_v2_kernel", "Attention"),
        ("reshape_and_cache_flash_kernel", "KV cache"),
        ("triton_poi_fused_add_0", "Triton"),
        ("nvjet_sm103_tst_64x16", "matrix product on the device"),
        ("ampere_sgemm_128x64_tn", "matrix product on the device"),
        ("Cijk_Alik_Bljk_BBS_BH", "matrix product on the device"),
        ("cudaGraphLaunch", "graph"),
        ("hipExtModuleLaunchKernel", "one kernel"),
        ("cudaDeviceSynchronize", "waits"),
        ("Memcpy DtoH (Device -> Pinned)", "copy"),
        ("execute_context_2(63)_generation_0(0)", "engine marks"),
        ("torch/nn/modules/module.py(1773): _call_impl", "Python function"),
        ("aten::frobnicate", "does not know it more closely"),
    ],
)
def test_a_family_is_known_by_its_name(name: str, word: str) -> None:
    family = family_of(name)
    assert family is not None and word in family.what


def test_what_nobody_knows_has_no_family() -> None:
    assert family_of("frobnicate_v3") is None


def test_every_trouble_of_the_table_is_in_the_taxonomy() -> None:
    assert {trouble for family in FAMILIES for trouble in family.troubles} <= set(causes())


def test_calls_totals_places_and_neighbors_are_those_of_the_spans() -> None:
    made = service([Work(slow={"aten::sdpa": 30.0} if i == 20 else {}) for i in range(40)])
    table, spans = learn(made, classify(made.steps, made.work))
    said = explain_operator("aten::sdpa", table, ranks_of(made, "aten::sdpa"), capture=made.id, totals=totals_of(table))
    trace = spans[0].tree.trace
    mine = np.flatnonzero(trace.name == trace.names.index("aten::sdpa"))
    assert (said.calls, said.layer) == (len(mine), "operator")
    assert said.total_ms == pytest.approx(int(trace.dur[mine].sum()) / 1e6)
    operators = trace.layer == Layer.OPERATOR
    assert said.share == pytest.approx(int(trace.dur[mine].sum()) / int(spans[0].own[operators].sum()), abs=1e-4)
    assert said.launched_by[0] == "nn.Module: Block_0 x40"
    assert said.launches == []
    slowest = said.places[0].slowest
    assert [line.dur_ms for line in slowest] == sorted((int(d) / 1e6 for d in trace.dur[mine]), reverse=True)[:3]
    rows = [int(line.handle.partition(":")[2]) for line in slowest]
    low, high = int(made.work.row[20]), int(made.work.row_stop[20])
    assert all(low <= row < high for row in rows)
    assert slowest[0].start_ms == pytest.approx((int(trace.start[rows[0]]) - int(made.work.start[20])) / 1e6)
    assert "Attention" in said.what_it_is
    assert said.usual_troubles[0] == UsualTrouble(
        cause="gpu.wrong_kernel",
        title=causes()["gpu.wrong_kernel"].title,
        next_check=causes()["gpu.wrong_kernel"].next_check,
        fix=causes()["gpu.wrong_kernel"].fix,
    )


def test_without_spans_there_are_no_slowest_calls_and_the_note_says_so() -> None:
    made = service([Work() for _ in range(10)])
    table, _ = learn(made, classify(made.steps, made.work))
    said = explain_operator("aten::addmm", table, [], capture=made.id, totals={})
    assert all(place.slowest == [] and place.p95_ms is None for place in said.places)
    assert "were not read" in said.note
    assert said.calls == 80


def test_ranges_that_engines_number_are_one_operator() -> None:
    made = service([Work() for _ in range(10)])
    table, _ = learn(made, classify(made.steps, made.work))
    for name in ("execute_context_#(#)_generation_#", "execute_context_0(0)_generation_8"):
        said = explain_operator(name, table, ranks_of(made, name), capture=made.id, totals={})
        assert (said.calls, len(said.places[0].slowest), said.launches[0]) == (10, 3, "nn.Module: Block_0 x10")


def test_an_operator_that_is_not_there_is_refused_without_its_name() -> None:
    made = service([Work() for _ in range(10)])
    table, _ = learn(made, classify(made.steps, made.work))
    with pytest.raises(UnknownName) as refused:
        explain_operator("evil\nname", table, [], capture=made.id, totals={}, near=1)
    assert "evil" not in str(refused.value)
    assert "1 others contain it" in str(refused.value)


def test_names_that_are_shown_find_the_raw_ones_and_no_others() -> None:
    names = [
        "void at::native::vec<4, Mul<float> >(int)",
        "_ZN2at6native3vecILi4EEEviT0_",
        "at::native::vector",
        "step_12",
        "step_7",
    ]
    assert codes_of("at::native::vec", names) == [0, 1]
    assert codes_of("step_#", names) == [3, 4]
    assert codes_of("step_12", names) == [3]
    assert codes_of("vec", names) == []
