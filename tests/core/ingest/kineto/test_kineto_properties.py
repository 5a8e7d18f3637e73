"""The reader finds in any file what the standard library finds, and survives whatever it is given."""

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from teller_core.data.trace import Trace
from teller_core.errors import TellerError
from teller_core.ingest.kineto import collected, window
from teller_core.ingest.kineto.reader import read
from tests.core.ingest.kineto.kineto_oracle import Number, check


class Many(list[tuple[str, Any]]):
    """Members of an object in their order: a key may come twice."""


def written(value: Any, chance: random.Random) -> str:
    """JSON with white space wherever it may be, and with some characters escaped."""
    space = "".join(chance.choices([" ", "\n", "\t", "\r"], k=chance.choice([0, 0, 0, 1, 3])))
    if isinstance(value, Number):
        text = str(value)
    elif isinstance(value, (dict, Many)):
        pairs = list(value.items()) if isinstance(value, dict) else list(value)
        if isinstance(value, dict):
            chance.shuffle(pairs)
        text = "{" + ",".join(f"{written(k, chance)}:{written(v, chance)}" for k, v in pairs) + space + "}"
    elif isinstance(value, list):
        text = "[" + ",".join(written(item, chance) for item in value) + space + "]"
    elif isinstance(value, str):
        text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
    else:
        text = json.dumps(value)
    return space + text + space


def numbers(text: str) -> st.SearchStrategy[Number]:
    return st.from_regex(text, fullmatch=True).map(Number)


texts = st.one_of(
    st.sampled_from(
        ["aten::mm", "ncclDevKernel_AllReduce", "gloo:all_reduce", "vllm::cross_device_reduce", "", "\\", '"', 'a"b\\']
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.text('\\"/{}[]:,X\u00e9\n', max_size=12),
)
times = st.one_of(
    st.integers(0, 40),
    numbers(r"(0|[1-9][0-9]{0,2})\.[0-9]{1,3}"),
    numbers(r"(0|[1-9][0-9]{0,19})\.[0-9]{1,8}"),
    numbers(r"-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,5})?[eE][+-]?[0-9]{1,2}"),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**63 // 1000, Number("9223372036854775.807"), Number("9223372036854775.8075"), Number("9e15")]),
    st.sampled_from([Number("NaN"), Number("Infinity"), Number("-Infinity"), None, True, "12", [1], {"a": 1}]),
)
identities = st.one_of(
    st.integers(-2, 3), st.sampled_from(["1", "-1", "007", "PyTorch Profiler (0)", "stream 7", None, 2**64]), texts
)
plain = st.one_of(
    st.integers(-(2**80), 2**80), texts, st.none(), st.booleans(), numbers(r"-?(0|[1-9][0-9]?)\.[0-9]{1,3}")
)
args = st.dictionaries(
    st.one_of(
        st.sampled_from(
            ["correlation", "stream", "External id", "Ev Idx", "Python parent id", "Sequence number", "grid", "cid"]
        ),
        texts,
    ),
    st.one_of(st.integers(-1, 5), plain, st.lists(st.one_of(plain, st.lists(plain, max_size=2)), max_size=3)),
    max_size=6,
)
categories = st.sampled_from(
    [
        "cpu_op",
        "kernel",
        "Kernel",
        "cuda_runtime",
        "python_function",
        "user_annotation",
        "gpu_user_annotation",
        "cuda_sync",
        "new",
    ]
)
members = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "X", "X", "X", "X", "X", "M", "f", "i", "B", "Q", "XX", 1]),
        "ts": times,
        "dur": times,
        "name": texts,
        "cat": categories,
        "pid": identities,
        "tid": identities,
        "args": args,
        "id": plain,
    },
)
complete = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "ts": numbers(r"(0|[1-9][0-9]?)(\.[0-9]{1,4})?"),
        "dur": numbers(r"(0|[1-9][0-9]?)(\.[0-9]{1,3})?"),
    },
    optional={"name": texts, "cat": categories, "pid": st.integers(0, 2), "tid": st.integers(0, 2), "args": args},
)
twice = st.tuples(complete, times.map(lambda time: ("ts", time))).map(lambda pair: Many([*pair[0].items(), pair[1]]))
events = st.lists(st.one_of(complete, complete, complete, members, twice, plain), max_size=12)
decoys = st.sampled_from(
    ['"traceEvents": [{"ph": "X"}]', {"traceEvents": [{"ph": "X"}]}, [[]], 3, "baseTimeNanoseconds"]
)
headers = st.dictionaries(st.sampled_from(["schemaVersion", "traceName", "metadata", "x"]), decoys, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """A trace in any of its shapes."""
    listed, chance = draw(events), random.Random(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        return written(listed, chance).encode()
    document: dict[str, Any] = {**draw(headers), "traceEvents": listed}
    base = draw(st.sampled_from([None, 0, 7, 10**18]))
    if base is not None:
        document["baseTimeNanoseconds"] = base
    pairs = list(document.items())
    chance.shuffle(pairs)
    return written(Many(pairs), chance).encode()


def reading(content: bytes, *, window_bytes: int = 4 << 20, block_rows: int = 1 << 18) -> Trace:
    """``content`` read from a file, through a window and blocks of the given sizes."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(window, "WINDOW_BYTES", window_bytes)
        patch.setattr(collected, "BLOCK_ROWS", block_rows)
        path = Path(folder, "trace.json")
        path.write_bytes(content)
        return read(path)


@given(documents())
@example(b'{"traceEvents":[{"ph":"X","ts":0,"dur":1},{"ph":"X","ts":9223372036854775,"dur":0}]}')
@settings(max_examples=400)
def test_any_trace_reads_as_the_standard_library_reads_it(content: bytes) -> None:
    check(reading(content), content)


@given(documents(), st.integers(8, 300))
@settings(max_examples=200)
def test_where_the_bytes_are_cut_into_chunks_does_not_matter(content: bytes, size: int) -> None:
    check(reading(content, window_bytes=size, block_rows=2), content)


@given(documents(), st.randoms(use_true_random=False))
@settings(max_examples=400)
def test_broken_bytes_are_refused_or_read_but_never_crash(content: bytes, chance: random.Random) -> None:
    broken = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 8])):
        at = chance.randrange(len(broken) + 1)
        broken[at : at + chance.choice([0, 1, 1, 7])] = chance.choice(
            [
                b"",
                b'"',
                b"\\",
                b"\0",
                b"{",
                b"}",
                b"[",
                b"]",
                b",",
                b":",
                b"1",
                b"-",
                b"e",
                b"t",
                b"\xff",
                b'"' * 200,
                b'\\"',
            ]
        )
    size = chance.choice([16, 64, 4096])
    try:
        trace = reading(bytes(broken), window_bytes=size)
    except TellerError:
        return
    trace.check()
    assert trace.events_in_file == len(trace) + sum(trace.problems.values()) + sum(trace.events_other.values())


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_are_refused_or_read(content: bytes) -> None:
    for head in (b"", b"[", b'{"traceEvents":[', b'{"traceEvents":[{"ph":"X","args":{"', b"\x1f\x8b\x08"):
        try:
            reading(head + content, window_bytes=32).check()
        except TellerError:
            continue


SMALL = b"""{"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.001, "dur": 5.5, "args": {"l": [[1], []]}},
  {"ph": "X", "cat": "kernel", "name": "k\\u00e9\\"", "pid": 0, "tid": 7, "ts": 12, "dur": 1e1, "args": {"correlation": 3}}
], "traceName": "t"}"""


def test_every_proper_beginning_of_a_trace_is_refused() -> None:
    check(reading(SMALL), SMALL)
    for size in range(1, len(SMALL)):
        with pytest.raises(TellerError):
            reading(SMALL[:size])


def test_tables_grow_as_far_as_a_file_needs() -> None:
    many = [
        {
            "ph": "X",
            "name": f"op {i} " + "x" * (i % 300),
            "cat": "cpu_op",
            "pid": i % 1500,
            "tid": i,
            "ts": i,
            "dur": 1,
            "args": {"i": i},
        }
        for i in range(6000)
    ]
    content = json.dumps({"traceEvents": many}).encode()
    check(reading(content, window_bytes=1000, block_rows=999), content)


def test_an_event_larger_than_the_window_is_read() -> None:
    huge = {
        "ph": "X",
        "name": "n" * 70_000,
        "ts": 1,
        "dur": 1,
        "args": {"Call stack": "\\" * 90_000, "l": [[1]] * 9000},
    }
    content = json.dumps({"traceEvents": [huge, {"ph": "M"}, huge]}).encode()
    check(reading(content, window_bytes=512), content)
