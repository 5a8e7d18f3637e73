"""Operators get the shapes that the execution trace of their process tells, each its own."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.records import FileRead, OperatorNode, Process, Recording
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.ingest.executions.execution_trace import read as read_nodes
from teller_core.ingest.found import Place as FilePlace
from teller_core.ingest.kineto.reader import read as read_trace
from teller_core.ingest.row_arrays import RowArrays
from teller_core.rebuild.engines import Place
from teller_core.rebuild.nest import nest
from teller_core.rebuild.operator_shapes import with_shapes
from teller_core.rebuild.operators import with_operators

TRACES = Path(__file__).parents[4] / "shared/traces"
real = pytest.mark.skipif(not TRACES.exists(), reason="no real traces beside the checkout (../shared)")
MAIN, BACKWARD = Lane("7", "7", False), Lane("7", "8", False)


def said(size: int) -> str:
    return f'{{"Input Dims":[[{size}]],"Input type":["float"]}}'


def nodes(names: list[str], thread: int = 1, first: int = 1, pid: int = 7, size: int = 0) -> list[OperatorNode]:
    return [
        OperatorNode(Process("", pid), 10 + first + i, -1, name, first + i, thread, said(size + i))
        for i, name in enumerate(names)
    ]


def trace_of(*lanes: tuple[Lane, list[str], str], pid: int = 7, rank: int | None = 0) -> Trace:
    """Operators one after the other on each lane, all with the arguments given."""
    rows = RowArrays()
    for lane, names, argument in lanes:
        for i, name in enumerate(names):
            rows.add(100 * i, 50, name, lane, category="cpu_op", layer=Layer.OPERATOR, argument=argument)
        rows.add(7, 3, "cudaLaunchKernel", lane, category="cuda_runtime", layer=Layer.RUNTIME)
    (trace,) = rows.traces(Origin("kineto", "unix", rank=rank, pid=pid))
    return trace


def shapes(trace: Trace, lane: Lane) -> list[str]:
    """The arguments of the operators of a lane, by time."""
    at = trace.lanes.index(lane)
    rows = [i for i in range(len(trace)) if trace.lane[i] == at and trace.layer[i] == Layer.OPERATOR]
    rows.sort(key=lambda i: int(trace.start[i]))
    return [trace.args[int(trace.arg[i])] if trace.arg[i] >= 0 else "" for i in rows]


names = st.lists(st.sampled_from(["aten::mm", "aten::add", "aten::t"]), min_size=1, max_size=20)


@given(names)
def test_the_same_operators_get_their_arguments_in_order(made: list[str]) -> None:
    shaped = with_shapes(nest(trace_of((MAIN, made, ""))), nodes(made))
    assert shapes(shaped.tree.trace, MAIN) == [said(i) for i in range(len(made))]
    assert (shaped.matched, shaped.used, shaped.ambiguous) == (len(made), len(made), 0)


@given(names, names, names)
def test_a_window_of_the_operators_is_found_or_said_to_be_ambiguous(
    before: list[str], made: list[str], after: list[str]
) -> None:
    shaped = with_shapes(nest(trace_of((MAIN, made, ""))), nodes([*before, *made, *after]))
    all_names = [*before, *made, *after]
    places = [i for i in range(len(all_names) - len(made) + 1) if all_names[i : i + len(made)] == made]
    found = shapes(shaped.tree.trace, MAIN)
    if len(places) == 1:
        assert found == [said(places[0] + i) for i in range(len(made))]
    else:
        assert found == [""] * len(made)
        assert shaped.ambiguous == len(made)


def test_windows_that_are_alike_in_shapes_too_are_not_ambiguous() -> None:
    loop = ["aten::mm", "aten::add"]
    shaped = with_shapes(nest(trace_of((MAIN, loop, ""))), nodes(loop) + nodes(loop, first=3))
    assert shapes(shaped.tree.trace, MAIN) == [said(0), said(1)]
    assert shaped.ambiguous == 0


def test_threads_are_told_apart_by_what_they_did() -> None:
    forward, backward = ["aten::mm"] * 3 + ["aten::add"], ["MmBackward0", "aten::mm", "AddBackward0"]
    tree = nest(trace_of((BACKWARD, backward, ""), (MAIN, forward, "")))
    shaped = with_shapes(tree, nodes(forward, thread=1) + nodes(backward, thread=2, first=5, size=50))
    assert shapes(shaped.tree.trace, MAIN) == [said(i) for i in range(4)]
    assert shapes(shaped.tree.trace, BACKWARD) == [said(50 + i) for i in range(3)]


def test_what_the_profiler_told_itself_stays_and_what_it_left_out_is_added() -> None:
    own = '{"Input Dims":[[9]],"Input type":["int"]}'
    assert shapes(with_shapes(nest(trace_of((MAIN, ["a", "b"], own))), nodes(["a", "b"])).tree.trace, MAIN) == [
        own,
        own,
    ]
    bare = '{"Fwd thread id":3}'
    (text,) = shapes(with_shapes(nest(trace_of((MAIN, ["a"], bare))), nodes(["a"])).tree.trace, MAIN)
    assert json.loads(text) == {"Fwd thread id": 3, "Input Dims": [[0]], "Input type": ["float"]}
    named = [
        nodes(["a"])[0]._replace(
            collective="all_reduce", arguments='{"Input Dims":[[1]],"Collective name":"all_reduce"}'
        )
    ]
    (text,) = shapes(with_shapes(nest(trace_of((MAIN, ["a"], own))), named).tree.trace, MAIN)
    assert json.loads(text) == {**json.loads(own), "Collective name": "all_reduce"}


def test_each_process_gets_its_own_by_pid_or_rank() -> None:
    traces = [trace_of((MAIN, ["a"], ""), pid=7, rank=0), trace_of((MAIN, ["a"], ""), pid=8, rank=1)]
    by_rank = [node._replace(process=Process("", 0, rank=1)) for node in nodes(["a"], size=30)]
    recording = Recording(
        files=[FileRead("f", "kineto", 1)], traces=[(0, trace) for trace in traces], operators=nodes(["a"]) + by_rank
    )
    problems: Counter[str] = Counter()
    found = with_operators(recording, [nest(trace) for trace in traces], [Place("", 7), Place("", 8)], problems)
    assert [shapes(tree.trace, MAIN) for tree in found.trees] == [[said(0)], [said(30)]]
    assert [(tree, joined.matched, joined.total) for tree, joined in found.joined] == [(0, 1, 1), (1, 1, 1)]
    assert not +problems


def test_operators_that_no_span_is_are_counted() -> None:
    trace = trace_of((MAIN, ["a", "b", "c", "d"], ""))
    recording = Recording(
        files=[FileRead("f", "kineto", 1)], traces=[(0, trace)], operators=nodes(["a", "b", "x", "c", "d"])
    )
    problems: Counter[str] = Counter()
    with_operators(recording, [nest(trace)], [Place("", 7)], problems)
    assert +problems == {"operators_without_span": 1}


def raw(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


@real
def test_in_a_real_pair_the_order_joins_what_equal_ids_do() -> None:
    """torch 2.1: here ``External id`` is the record-function id. The join must not use it, and must agree."""
    folder = TRACES / "et/hta_simple_add"
    told = {node["rf_id"]: node for node in raw(folder / "et.json.gz")["nodes"]}
    events = [
        e for e in raw(folder / "kineto_trace.json.gz")["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation")
    ]
    expected = sorted((e["ts"] * 1000, -e["dur"], e["name"], str(dims(told[e["args"]["External id"]]))) for e in events)
    shaped = with_shapes(
        nest(read_trace(folder / "kineto_trace.json.gz")), read_nodes(folder / "et.json.gz", FilePlace()).operators
    )
    trace = shaped.tree.trace
    rows = [i for i in range(len(trace)) if trace.categories[trace.category[i]] in ("cpu_op", "user_annotation")]
    ours = sorted(
        (
            int(trace.start[i]),
            -int(trace.dur[i]) // 1000,
            trace.names[int(trace.name[i])],
            str(json.loads(trace.args[int(trace.arg[i])]).get("Input Dims", [])) if trace.arg[i] >= 0 else "[]",
        )
        for i in rows
    )
    assert shaped.matched == 36
    assert ours == expected


def dims(node: dict[str, Any]) -> list[Any]:
    """Sizes of tensors, nothing of the other inputs."""
    kinds = node["input_types"]
    return [shape if "Tensor" in kind else [] for shape, kind in zip(node["input_shapes"], kinds, strict=True)]


@real
@pytest.mark.parametrize("rank", range(8))
def test_in_real_pairs_whose_ids_differ_the_shapes_are_those_that_the_profiler_recorded(rank: int) -> None:
    (profile,) = (TRACES / "kineto/param_dlrm_8rank_v100").glob(f"worker{rank}_*")
    operators = read_nodes(TRACES / f"et/param_dlrm_8rank_v100/dlrm_eg_{rank}.json.gz", FilePlace()).operators
    bare = read_trace(profile)
    recorded = [json.loads(text).get("Input Dims") if '"Input Dims"' in text else None for text in bare.args]
    tree = nest(bare)
    hidden = tree.__class__(
        Trace(**{**vars(tree.trace), "arg": tree.trace.arg * 0 - 1, "args": []}), tree.parent, tree.stop
    )
    shaped = with_shapes(hidden, operators)
    assert shaped.matched >= len(operators) - 4
    ours = shaped.tree.trace
    both = agree = 0
    for i in range(len(ours)):
        own = recorded[tree.trace.arg[i]] if tree.trace.arg[i] >= 0 else None
        if own is None or ours.arg[i] < 0:
            continue
        said_here = json.loads(ours.args[int(ours.arg[i])]).get("Input Dims", [])
        flat = [shape for shape in said_here if not any(isinstance(size, list) for size in shape)]
        if len(flat) != len(said_here) or len(own) != len(said_here):
            continue  # this profiler wrote no lists of tensors
        both += 1
        agree += own == said_here
    assert both > 1000
    assert agree == both
