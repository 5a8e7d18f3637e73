"""Kernels of a replayed graph get the operators that the graph was captured with, and nothing else changes."""

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core import answers, slices
from teller_core.data.capture import GRAPH_CAPTURE, Joined
from teller_core.data.records import FileRead, Recording
from teller_core.data.replays import captured_rows, replayed_kernels, replays_note
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.data.tree import Tree
from teller_core.ingest.row_arrays import RowArrays
from teller_core.judge.assess import assess
from teller_core.pipeline import import_paths
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.engines import Place
from teller_core.rebuild.nest import nest
from teller_core.rebuild.operators import Operators, with_operators
from teller_core.store.store import Store

HOST, STREAM, OTHER = Lane("7", "7", False), Lane("0", "3", True), Lane("0", "4", True)
REAL = Path(__file__).parents[4] / "shared/traces/kineto/vllm_rocm_decode_full_graph"

Captured = Sequence[tuple[str, str]]
"""Operator and kernel, launch by launch."""


def traced(rows: RowArrays, rank: int = 0, pid: int = 7) -> Trace:
    (trace,) = rows.traces(Origin("kineto", "unix", rank=rank, pid=pid))
    return trace


def capture_trace(graphs: Sequence[tuple[str, Captured]], *, hip: bool = True, **origin: int) -> Trace:
    """A profile of captures: an annotation, a module, an operator a launch, and the launches, which run nothing."""
    rows, now = RowArrays(), 0
    for label, launches in graphs:
        begin = now
        end = begin + 100 + 20 * len(launches)
        rows.add(begin, end - begin, label, HOST, category="user_annotation", layer=Layer.ENGINE)
        rows.add(
            begin + 1,
            end - begin - 2,
            "vllm/runner.py(1): capture",
            HOST,
            category="python_function",
            layer=Layer.PYTHON,
        )
        rows.add(begin + 3, 1, call("StreamBeginCapture", hip), HOST, category="cuda_runtime", layer=Layer.RUNTIME)
        rows.add(
            begin + 10, end - begin - 40, "nn.Module: Layer_0", HOST, category="python_function", layer=Layer.PYTHON
        )
        for k, (operator, kernel) in enumerate(launches):
            at = begin + 20 + 20 * k
            rows.add(at, 10, operator, HOST, category="cpu_op", layer=Layer.OPERATOR)
            said = json.dumps({"kernel": kernel, "grid": [1, 1, 1]}) if hip and kernel else ""
            name = call("MemcpyAsync" if kernel == "copy" else "LaunchKernel", hip)
            rows.add(at + 2, 2, name, HOST, category="cuda_runtime", layer=Layer.RUNTIME, link=k + 1, argument=said)
        rows.add(end - 5, 1, call("StreamEndCapture", hip), HOST, category="cuda_runtime", layer=Layer.RUNTIME)
        now = end + 10
    return traced(rows, **origin)


def execution(replays: Sequence[Sequence[str]], *, hip: bool = True, streams: int = 1, **origin: int) -> Trace:
    """A profile of steps, one a replay, each with one kernel of its own behind it."""
    rows, now = RowArrays(), 10_000_000
    for n, kernels in enumerate(replays):
        rows.add(now, 5_000, f"step[DECODE bs={n + 1}]", HOST, category="user_annotation", layer=Layer.ENGINE)
        rows.add(
            now + 10, 50, call("GraphLaunch", hip), HOST, category="cuda_runtime", layer=Layer.RUNTIME, link=2 * n + 1
        )
        rows.add(
            now + 80, 5, call("LaunchKernel", hip), HOST, category="cuda_runtime", layer=Layer.RUNTIME, link=2 * n + 2
        )
        for k, kernel in enumerate(kernels):
            copy = kernel == "copy"
            name, category = ("Memcpy DtoD", "gpu_memcpy") if copy else (kernel, "kernel")
            lane = (STREAM, OTHER)[k % streams]
            rows.add(now + 100 + 10 * k, 8, name, lane, category=category, layer=Layer.KERNEL, link=2 * n + 1)
        rows.add(now + 4_000, 9, "sample", STREAM, category="kernel", layer=Layer.KERNEL, link=2 * n + 2)
        now += 10_000
    return traced(rows, **origin)


def call(name: str, hip: bool) -> str:
    return f"{'hip' if hip else 'cuda'}{name}"


def recording_of(*traces: Trace) -> Recording:
    files = [FileRead(f"{i}.json", "kineto", 1) for i in range(len(traces))]
    return Recording(files=files, traces=list(enumerate(traces)))


def mapped(*traces: Trace) -> tuple[Operators, Counter[str]]:
    problems: Counter[str] = Counter()
    recording = recording_of(*traces)
    places = [Place("", trace.origin.pid or -1) for trace in traces]
    return with_operators(recording, [nest(trace) for trace in traces], places, problems), problems


def paths(tree: Tree) -> list[tuple[str, ...]]:
    """Names from each kernel of a replay up to its graph launch, by the kernel's start."""
    trace = tree.trace
    own, bare = replayed_kernels(tree)
    rows = np.flatnonzero(own | bare)
    found: list[tuple[str, ...]] = []
    for row in rows[np.argsort(trace.start[rows], kind="stable")].tolist():
        names = [trace.names[int(trace.name[row])]]
        for above in tree.ancestors(row):
            name = trace.names[int(trace.name[above])]
            if name.endswith("GraphLaunch"):
                break
            names.append(name)
        found.append(tuple(names))
    return found


LAUNCHES: Captured = [("aten::mm", "gemm"), ("aten::add", "add"), ("aten::mm", "gemm"), ("aten::copy_", "copy")]


def test_kernels_stand_below_the_operators_in_the_order_of_the_capture() -> None:
    found, problems = mapped(
        capture_trace([("capture_4_FULL", LAUNCHES)]), execution([["gemm", "add", "gemm", "copy"]] * 2)
    )
    tree = found.trees[1]
    tree.check()
    module = "nn.Module: Layer_0"
    one = [("gemm", "aten::mm", module), ("add", "aten::add", module), ("gemm", "aten::mm", module)]
    assert paths(tree) == [*one, ("Memcpy DtoD", "aten::copy_", module)] * 2
    assert found.captured == {0}
    assert [joined for _, joined in found.joined] == [Joined("graph", "capture_4_FULL", -1, 8, 8, launches=2)]
    assert not problems.total()


def test_captured_operators_take_no_time_and_everything_else_stays() -> None:
    before = nest(execution([["gemm", "add", "gemm", "copy"]]))
    found, _ = mapped(capture_trace([("capture_4_FULL", LAUNCHES)]), before.trace)
    after = found.trees[1]
    new = captured_rows(after)
    assert not after.trace.dur[new].any()
    assert rows(after, ~new) == rows(before, np.ones(len(before), dtype=np.bool_))
    assert after.self_time()[~new].tolist() == before.self_time().tolist()
    assert replays_note([after]).startswith("4 of 4 kernels")
    assert not replays_note([before])


def rows(tree: Tree, mask: Any) -> list[tuple[Any, ...]]:
    trace = tree.trace
    return [
        (
            int(trace.start[i]),
            int(trace.dur[i]),
            trace.names[int(trace.name[i])],
            trace.lanes[trace.lane[i]],
            int(trace.link[i]),
        )
        for i in np.flatnonzero(mask).tolist()
    ]


def test_of_several_graphs_the_one_with_the_same_kernels_is_taken() -> None:
    graphs = [
        ("capture_8_FULL", [("aten::mm", "gemm_8"), ("aten::add", "add")]),
        ("capture_4_FULL", [("aten::bmm", "gemm_4"), ("aten::add", "add")]),
    ]
    found, problems = mapped(capture_trace(graphs), execution([["gemm_4", "add"], ["gemm_8", "add"], ["other", "one"]]))
    assert [path[1] for path in paths(found.trees[1])[:4] if len(path) > 1] == [
        "aten::bmm",
        "aten::add",
        "aten::mm",
        "aten::add",
    ]
    assert {(joined.name, joined.matched, joined.total) for _, joined in found.joined} == {
        ("capture_4_FULL", 2, 2),
        ("capture_8_FULL", 2, 2),
    }
    assert +problems == {"replayed_kernels_without_operator": 2}


def test_a_replay_with_few_other_kernels_is_aligned_and_the_others_are_counted() -> None:
    launches = [(f"op{k}", f"kernel{k}") for k in range(30)]
    played = [kernel for _, kernel in launches]
    played[7] = "autotuned_anew"
    played.insert(20, "inserted")
    found, problems = mapped(capture_trace([("capture_1", launches)]), execution([played]))
    missing = [path[0] for path in paths(found.trees[1]) if len(path) == 1]
    assert missing == ["autotuned_anew", "inserted"]
    assert +problems == {"replayed_kernels_without_operator": 2}
    assert found.joined[0][1][3:5] == (29, 31)


def test_calls_that_tell_no_kernel_are_matched_by_order_where_one_stream_ran_as_many() -> None:
    capture = capture_trace([("capture_4", LAUNCHES)], hip=False)
    played = ["ampere_gemm", "vectorized_add", "ampere_gemm", "copy"]
    found, _ = mapped(capture, execution([played], hip=False))
    assert [path[1] for path in paths(found.trees[1])] == ["aten::mm", "aten::add", "aten::mm", "aten::copy_"]
    assert not found.joined[0][1].by_name
    for other in (
        execution([played], hip=False, streams=2),
        execution([played[:3]], hip=False),
        execution([["copy", *played[:3]]], hip=False),
    ):
        found, problems = mapped(capture, other)
        assert not captured_rows(found.trees[1]).any()
        assert problems["replayed_kernels_without_operator"] == len(replayed_names(other))


def replayed_names(trace: Trace) -> list[str]:
    own, bare = replayed_kernels(nest(trace))
    return ["" for _ in np.flatnonzero(own | bare)]


def test_graphs_of_another_rank_say_nothing() -> None:
    capture = capture_trace([("capture_4", LAUNCHES)], rank=1)
    found, problems = mapped(capture, execution([["gemm", "add", "gemm", "copy"]], rank=0))
    assert found.captured == frozenset()
    assert not found.joined
    assert not problems.total()


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["k1", "k2", "k3", "copy"])),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 4),
    st.data(),
)
@settings(max_examples=150)
def test_any_replay_keeps_its_rows_and_is_a_sound_tree(
    launches: list[tuple[str, str]], times: int, data: st.DataObject
) -> None:
    played = [kernel for _, kernel in launches]
    for _ in range(data.draw(st.integers(0, 2))):
        played.insert(data.draw(st.integers(0, len(played))), data.draw(st.sampled_from(["k1", "new"])))
    before = nest(execution([played] * times))
    found, problems = mapped(capture_trace([("capture_1", launches)]), before.trace)
    after = found.trees[1]
    after.check()
    new = captured_rows(after)
    assert sorted(rows(after, ~new)) == sorted(rows(before, np.ones(len(before), dtype=np.bool_)))
    own, bare = replayed_kernels(after)
    assert int(own.sum()) + int(bare.sum()) == len(played) * times
    assert problems["replayed_kernels_without_operator"] == int(bare.sum())


def test_the_capture_is_neither_a_step_nor_a_baseline_of_the_execution() -> None:
    traces = capture_trace([("capture_4", LAUNCHES)]), execution([["gemm", "add", "gemm", "copy"]] * 9)
    capture = rebuild(recording_of(*traces), [nest(trace) for trace in traces], capture_id="c", name="c")
    assert [rank.role for rank in capture.ranks] == [GRAPH_CAPTURE, "worker"]
    assert len(capture.steps.engine) == 9
    assert set(capture.work.rank.tolist()) == {1}
    assert capture.joined[0].rank == 1
    baselines = assess(capture).baselines
    assert "hipStreamBeginCapture" not in baselines.name
    place = baselines.place[baselines.name.index("add")]
    assert place.endswith("hipGraphLaunch > nn.Module: Layer_# > aten::add")
    assert baselines.calls[baselines.name.index("add")] == 1


def test_a_capture_alone_is_shown_as_it_is() -> None:
    trace = capture_trace([("capture_4", LAUNCHES)])
    capture = rebuild(recording_of(trace), [nest(trace)], capture_id="c", name="c")
    assert [rank.role for rank in capture.ranks] == ["worker"]


@pytest.mark.skipif(not REAL.exists(), reason="no real traces beside the checkout (../shared)")
def test_a_real_graph_has_the_operators_that_its_capture_tells() -> None:
    """Against the raw JSON: kernels by the calls' own ``kernel``, operators by the ids that the calls carry."""
    from teller_core.ingest.kineto.reader import read

    capture, played = sorted(REAL.glob("*"), key=lambda path: "execution" in path.name)
    calls, operator = launches_of(raw(capture))
    found, problems = mapped(read(capture), read(played))
    ours = paths(found.trees[1])
    assert [path[0] for path in ours] == [kernel for kernel, _ in calls]
    expected = [operator.get(number, "") for _, number in calls]
    told = [(path[1], name) for path, name in zip(ours, expected, strict=True) if name]
    assert len(told) > 300
    assert all(mine == name for mine, name in told)
    assert not problems.total()
    assert found.joined[0][1][:5] == ("graph", "capture_32_FULL", -1, 421, 421)


def raw(path: Path) -> list[dict[str, Any]]:
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def launches_of(events: list[dict[str, Any]]) -> tuple[list[tuple[str, int]], dict[int, str]]:
    """(kernel, External id) of each launch between begin and end of the capture, by time; names of operators by id."""
    calls = sorted((e for e in events if e.get("cat") == "cuda_runtime"), key=lambda e: e["ts"])
    begin = next(e["ts"] for e in calls if e["name"] == "hipStreamBeginCapture")
    end = next(e["ts"] for e in calls if e["name"] == "hipStreamEndCapture")
    inside = [e["args"] for e in calls if begin < e["ts"] < end and "kernel" in e["args"]]
    operators = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
    return [(said["kernel"], said.get("External id", 0)) for said in inside], operators


@pytest.mark.skipif(not REAL.exists(), reason="no real traces beside the checkout (../shared)")
def test_a_real_capture_is_told_with_its_coverage_in_every_answer(tmp_path: Path) -> None:
    with Store.open(tmp_path / "db") as store:
        (report,) = import_paths([REAL], store).captures
        (joined,) = report.joined
        shown = slices.causal_slice(store, "step 0")
        kernel = answers.explain_operator(store, "kernel_unified_attention_2d")
        operator = answers.explain_operator(store, "vllm::unified_attention_with_output")
    assert (joined.name, joined.matched, joined.of, joined.launches, joined.by_name) == (
        "capture_32_FULL",
        421,
        421,
        1,
        True,
    )
    assert [(rank.role, rank.kernels) for rank in report.ranks] == [("worker", 425), (GRAPH_CAPTURE, 7)]
    assert "421 of 421 kernels that graphs replayed" in shown.note
    assert "vllm::unified_attention_with_output" in [line.text for line in shown.lines]
    assert kernel.launched_by == ["vllm::unified_attention_with_output x12"]
    assert "12 of 12 replayed calls stand where their graph was captured" in kernel.note
    assert "24 calls were repeated by graphs without running" in operator.note
    assert operator.total_ms == 0
