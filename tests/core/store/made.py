"""Captures for the tests of the store: arbitrary ones for properties, one plain one for everything else."""

import math
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from teller_core.data.assessment import Assessment, Baselines, Candidates, RequestExpectations, StepExpectations
from teller_core.data.capture import Absences, Capture, Collectives, Disagreements, Meetings, Pauses, Rank, Samples
from teller_core.data.records import FileRead
from teller_core.data.report import CaptureReport, Coverage, EvidenceItem, Finding, Part, WhyReport
from teller_core.data.steps import Lines, Participation, Requests, Steps, StepWork, TokenTimes
from teller_core.data.table import UNKNOWN, Float64, Int32, Int64, LongText, Text, UInt8
from teller_core.data.trace import Lane, Origin, Trace
from teller_core.data.tree import ROOT, Tree

texts = st.text(st.characters(), max_size=6)
"""Any text, NULs and halves of surrogate pairs included."""
_int64s = st.one_of(st.just(UNKNOWN), st.just(2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(-3, 300))
_counts = st.dictionaries(texts, st.integers(0, 2**40), max_size=2)
_cells: dict[Any, tuple[st.SearchStrategy[Any], Any]] = {
    Int64: (_int64s, np.int64),
    Int32: (st.integers(-(2**31), 2**31 - 1), np.int32),
    UInt8: (st.integers(0, 255), np.uint8),
    Float64: (st.floats(), np.float64),
    Text: (texts, None),
    LongText: (texts, None),
}


def column(draw: st.DrawFn, kind: Any, length: int) -> Any:
    """Any column of this type and length."""
    cell, dtype = _cells[kind]
    values = draw(st.lists(cell, min_size=length, max_size=length))
    return values if dtype is None else np.array(values, dtype=dtype)


@st.composite
def tables(draw: st.DrawFn, kind: Any, length: int | None = None) -> Any:
    """Any table of this type; Participation ordered by step and Requests numbered, as they must be."""
    rows = draw(st.integers(0, 5)) if length is None else length
    table = kind(**{field.name: column(draw, field.type, rows) for field in fields(kind)})
    if kind is Participation:
        table = replace(table, step=np.sort(table.step))
    return replace(table, number=np.arange(1, rows + 1, dtype=np.int32)) if kind is Requests else table


def pre_order(depths: list[int]) -> tuple[Int32, Int32]:
    """Parent and stop of rows that lie this deep, each at most one deeper than the row before."""
    count = len(depths)
    parent, stop = np.full(count, ROOT, dtype=np.int32), np.full(count, count, dtype=np.int32)
    above: list[int] = []
    for row, depth in enumerate(depths):
        for closed in above[depth:]:
            stop[closed] = row
        del above[depth:]
        parent[row] = above[-1] if above else ROOT
        above.append(row)
    return parent, stop


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Any tree, times and links without sense included."""
    depths: list[int] = []
    for _ in range(draw(st.integers(0, 12))):
        depths.append(draw(st.integers(0, depths[-1] + 1 if depths else 0)))
    count = len(depths)

    def codes(low: int, high: int, dtype: Any) -> Any:
        return np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)), dtype=dtype)

    names, args = draw(st.lists(texts, min_size=1, max_size=4)), draw(st.lists(texts, max_size=4))
    lanes = [Lane(*lane) for lane in draw(st.lists(st.tuples(texts, texts, st.booleans()), min_size=1, max_size=3))]
    categories = draw(st.lists(texts, min_size=1, max_size=3))
    trace = Trace(
        start=column(draw, Int64, count),
        dur=column(draw, Int64, count),
        name=codes(0, len(names) - 1, np.int32),
        lane=codes(0, len(lanes) - 1, np.int32),
        category=codes(0, len(categories) - 1, np.uint8),
        layer=codes(0, 7, np.uint8),
        link=column(draw, Int64, count),
        arg=codes(-1, len(args) - 1, np.int32),
        names=names,
        lanes=lanes,
        categories=categories,
        args=args,
        origin=draw(
            st.builds(
                Origin,
                producer=texts,
                clock=texts,
                rank=st.none() | st.integers(0, 9),
                host=st.none() | texts,
                devices=st.lists(texts, max_size=2).map(tuple),
                groups=st.lists(st.tuples(texts, st.lists(st.integers(0, 9), max_size=2).map(tuple)), max_size=2).map(
                    tuple
                ),
            )
        ),
        problems=draw(_counts),
        events_in_file=draw(st.integers(0, 2**40)),
        events_other=draw(_counts),
    )
    return Tree(trace, *pre_order(depths), crossings=draw(st.integers(0, 9)), unlaunched=draw(st.integers(0, 9)))


@st.composite
def captures(draw: st.DrawFn, identity: str = "0a1b") -> Capture:
    """Any capture."""
    ints = st.integers(-(2**63), 2**63 - 1)
    ranks = st.builds(
        Rank,
        rank=ints,
        host=texts,
        pid=ints,
        role=texts,
        tree=st.none() | trees(),
        file=ints,
        shift=ints,
        clock_error=ints,
        kernels=ints,
        kernel_time=ints,
        problems=_counts,
    )
    files = st.builds(FileRead, texts, texts, ints, texts, ints, ints, _counts, _counts)
    requests = draw(tables(Requests))
    return Capture(
        id=identity,
        name=draw(texts),
        engine=draw(texts),
        files=draw(st.lists(files, max_size=2)),
        ranks=draw(st.lists(ranks, max_size=2)),
        steps=draw(tables(Steps)),
        work=draw(tables(StepWork)),
        requests=requests,
        participation=draw(tables(Participation)),
        tokens=TokenTimes(column(draw, Int64, len(requests.number) + draw(st.integers(0, 1))), column(draw, Int64, 7)),
        lines=draw(tables(Lines)),
        pauses=draw(tables(Pauses)),
        samples=draw(tables(Samples)),
        collectives=draw(tables(Collectives)),
        meetings=draw(tables(Meetings)),
        absences=draw(tables(Absences)),
        disagreements=draw(tables(Disagreements)),
        problems=draw(_counts),
        metrics=draw(st.dictionaries(texts, st.floats(), max_size=2)),
        redactions=draw(st.integers(0, 9)),
        tier=draw(st.integers(0, 4)),
    )


@st.composite
def assessments(draw: st.DrawFn) -> Assessment:
    """Any assessment."""
    return Assessment(
        draw(tables(Baselines)),
        draw(tables(StepExpectations)),
        draw(tables(Candidates)),
        draw(tables(RequestExpectations)),
        draw(texts),
    )


def empty(kind: Any) -> Any:
    """A table of this type without rows."""
    dtypes = {field.name: _cells[field.type][1] for field in fields(kind)}
    return kind(**{name: [] if dtype is None else np.empty(0, dtype=dtype) for name, dtype in dtypes.items()})


def filled(kind: Any, rows: int, **known: Any) -> Any:
    """A table of this type: the columns ``known``, zeros and empty texts elsewhere."""
    dtypes = {field.name: _cells[field.type][1] for field in fields(kind)}
    return kind(
        **{
            name: ([""] * rows if name not in known else list(known[name]))
            if dtype is None
            else np.array(known.get(name, np.zeros(rows)), dtype=dtype)
            for name, dtype in dtypes.items()
        }
    )


def tree_of(spans: int, seed: int = 0, names: int = 3) -> Tree:
    """A tree with the shape of a trace: steps of some 90 nested spans in time order, kernels under their launches."""
    random = np.random.default_rng(seed)
    depth = random.integers(1, 9, spans)
    depth[::90] = 0
    for row in range(1, spans):
        depth[row] = min(depth[row], depth[row - 1] + 1)
    parent, stop = pre_order(depth.tolist())
    kernel = (random.random(spans) < 0.2) & (parent != ROOT)
    start = np.cumsum(random.integers(200, 5_000, spans)) + 1_700_000_000_000_000_000
    trace = Trace(
        start=start,
        dur=start[stop - 1] - start + 100 - depth,  # ends inside its parent and before the next span begins
        name=random.integers(0, names, spans).astype(np.int32),
        lane=kernel.astype(np.int32),
        category=kernel.astype(np.uint8),
        layer=np.where(kernel, 5, 3).astype(np.uint8),
        link=np.where(kernel, np.arange(spans), -1),
        arg=np.where(random.random(spans) < 0.1, random.integers(0, names, spans), -1).astype(np.int32),
        names=[f"aten::op_{i}" for i in range(names)],
        lanes=[Lane("1", "1", False), Lane("1", "stream 7", True)],
        categories=["cpu_op", "kernel"],
        args=[f'{{"shape": [{i}, 64]}}' for i in range(names)],
        origin=Origin("kineto", "unix", rank=0, devices=("H200",), groups=(("tp", (0, 1)),)),
        events_in_file=spans,
    )
    return Tree(trace, parent, stop)


def capture_of(identity: str, tree: Tree | None = None, requests: int = 3, steps: int = 4) -> Capture:
    """A capture of one rank in which every request takes part in every step."""
    begin = np.arange(steps) * 1_000_000
    taking_part = np.arange(steps * requests)
    numbers = np.arange(requests)
    return Capture(
        id=identity,
        name="made",
        engine="vllm",
        files=[FileRead("trace.json.gz", "kineto", 10, events_in_file=5, events_kept=4, events_other={"flow": 1})],
        ranks=[Rank(0, "host", 7, "worker", tree, 0)],
        steps=filled(
            Steps, steps, scheduled=begin, launched=begin, finished=begin + 900_000, delivered=[UNKNOWN] * steps
        ),
        work=filled(StepWork, steps, step=np.arange(steps), start=begin, stop=begin + 900_000),
        requests=filled(
            Requests,
            requests,
            number=numbers + 1,
            engine_id=[f"cmpl-{i}" for i in range(requests)],
            client_id=[f"client-{i}" for i in range(requests)],
            queued=[500] * requests,
            scheduled=[1_500] * requests,
            queue_ns=[UNKNOWN] * requests,
        ),
        participation=filled(
            Participation, steps * requests, step=taking_part // requests, request=taking_part % requests
        ),
        tokens=TokenTimes(np.arange(requests + 1) * steps, np.repeat(begin[None, :], requests, 0).ravel()),
        lines=filled(Lines, steps, time=begin + 500, untrusted_text=[f"line {i}" for i in range(steps)]),
        pauses=empty(Pauses),
        samples=empty(Samples),
        collectives=empty(Collectives),
    )


def assessment_of(values: dict[str, list[int]], names: list[str] = ["aten::mm"]) -> Assessment:  # noqa: B006
    """An assessment with these values of the requests by metric, and one baseline a name."""
    rows = [(metric, request, value) for metric, column in values.items() for request, value in enumerate(column)]
    return Assessment(
        baselines=filled(Baselines, len(names), name=names, total=np.arange(len(names))),
        steps=empty(StepExpectations),
        candidates=empty(Candidates),
        requests=filled(
            RequestExpectations,
            len(rows),
            request=[row[1] for row in rows],
            metric=[row[0] for row in rows],
            value=[row[2] for row in rows],
            by_work=[1_000] * len(rows),
            by_load=[UNKNOWN] * len(rows),
        ),
    )


def report_of(capture: Capture) -> CaptureReport:
    """What import says of a capture."""
    return CaptureReport(
        id=capture.id, name="made", engine="vllm", files=[], ranks=[], steps=4, requests=3, log_lines=0, kernels=0,
        kernel_time_ns=0, clock_error_ns=None, mapping="recorded", tier=4, problems={}, redactions=0,
        already_known=False, imported_at="2026-11-29T12:00:00Z",
    )  # fmt: skip


def answer_of(capture: str, request: int) -> WhyReport:
    """An answer with a finding."""
    evidence = EvidenceItem(kind="span", scope="this_request", span="0:12", value=3.5, normal=1.0, unit="ms")
    finding = Finding(
        cause="host.gc_pause", title="A pause", step=2, rank=0, view="vertical", operator="aten::mm", layer="operator",
        confidence=0.9, saving_ms=2.5, saving_low_ms=2.0, saving_high_ms=3.0, saving_assumes="", evidence=[evidence],
        fix="", against=[],
    )  # fmt: skip
    return WhyReport(
        capture=capture, request=request, engine_id="cmpl-0", metric="e2e", value_ms=1.5, verdict="cause", reason="",
        tier=4, coverage=Coverage(steps=4, profiled=4, mapping="recorded"), confidence=0.9, over_slo=None,
        over_work=1.5, over_load=None, phases=[Part(part="decode", ns=5, source="steps")], resources=[],
        findings=[finding], explanation="", next_checks=[], not_seen=[],
    )  # fmt: skip


def differences(left: Any, right: Any, where: str = "") -> list[str]:
    """Where two captures, trees, tables or values differ. Types, dtypes and NaN count."""
    if is_dataclass(left) and type(left) is type(right):
        names = [field.name for field in fields(left)]
        return [d for name in names for d in differences(getattr(left, name), getattr(right, name), f"{where}.{name}")]
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        alike = left.dtype == right.dtype and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
        return [] if alike else [f"{where}: {left!r} {right!r}"]
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and len(left) == len(right):
        return [d for i in range(len(left)) for d in differences(left[i], right[i], f"{where}[{i}]")]
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        return [d for key in left for d in differences(left[key], right[key], f"{where}[{key!r}]")]
    both_nan = isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right)
    return [] if left == right or both_nan else [f"{where}: {left!r} {right!r}"]
