"""Execution traces: every node kept or counted, against the standard library and the protobuf read by hand.

``python -m tests.core.ingest.executions.test_execution_traces`` writes the committed numbers anew, without the readers.
"""

import gzip
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from teller_core.data.table import UNKNOWN
from teller_core.errors import FormatError, LimitError, TellerError
from teller_core.ingest.executions import chakra, execution_trace
from teller_core.ingest.executions.execution_trace import rank_of
from teller_core.ingest.found import Found, Place
from teller_core.ingest.reading import format_of
from teller_core.ingest.wire import MAX_MESSAGE, Damaged, fields, varint

CORPUS = Path(__file__).parents[5] / "shared/traces/et"
EXPECTED = Path(__file__).parents[3] / "data" / "execution_corpus_expect.toml"
FILES = sorted(path for path in CORPUS.glob("*/*.gz") if "kineto" not in path.name)
real = pytest.mark.skipif(not FILES, reason="no real traces beside the checkout (../shared)")


def name_of(path: Path) -> str:
    return str(path.relative_to(CORPUS)).removesuffix(".gz")


def read(path: Path) -> Found:
    known = format_of(path)
    assert known is not None
    return known[1](path, Place(), None)


def counted(path: Path) -> dict[str, Any]:
    """What an execution trace holds, told without the readers."""
    data = gzip.decompress(path.read_bytes())
    return of_messages(data) if path.name.endswith(".et.gz") else of_json(json.loads(data))


def of_json(document: dict[str, Any]) -> dict[str, Any]:
    nodes = document["nodes"]
    roots = sum(node["name"].startswith("[pytorch|profiler|") for node in nodes)
    collectives = Counter(
        word
        for node in nodes
        if node["name"] == "record_param_comms"
        for word in values_of(node)
        if isinstance(word, str)
    )
    return {
        "format": "execution_trace",
        "nodes": len(nodes),
        "operators": len(nodes) - roots,
        "names": len({node["name"] for node in nodes})
        - len({n["name"] for n in nodes if n["name"].startswith("[pytorch|profiler|")}),
        "collectives": {word: count for word, count in collectives.items() if word not in ("wait", "init")},
        "timed": 0,
        "duration_ns": 0,
    }


def values_of(node: dict[str, Any]) -> list[Any]:
    return node["inputs"]["values"] if isinstance(node["inputs"], dict) else node["inputs"]


def of_messages(data: bytes) -> dict[str, Any]:
    """Field numbers as in et_def.proto: name 2, duration_micros 7, attr 10, of which comm_type names the collective."""
    messages = list(split(data))
    nodes = [parsed(message) for message in messages[1:]]
    durations = [node.get(7, [0])[0] for node in nodes]
    words = ("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all", "reduce_scatter")
    kinds = Counter(
        words[parsed(a).get(9, [0])[0]] for node in nodes for a in node.get(10, []) if parsed(a)[1][0] == b"comm_type"
    )
    return {
        "format": "chakra",
        "nodes": len(messages),
        "operators": len(nodes),
        "names": len({node[2][0] for node in nodes}),
        "collectives": dict(kinds),
        "timed": sum(dur > 0 for dur in durations),
        "duration_ns": 1000 * sum(durations),
    }


def split(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = number(data, at)
        yield data[at : at + size]
        at += size


def number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def parsed(message: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(message):
        tag, at = number(message, at)
        value, at = number(message, at)
        if tag & 7 == 2:
            value, at = message[at : at + value], at + value
        found.setdefault(tag >> 3, []).append(value)
    return found


def ours(found: Found, format_: str) -> dict[str, Any]:
    durations = [node.dur for node in found.operators if node.dur != UNKNOWN]
    return {
        "format": format_,
        "nodes": found.events,
        "operators": len(found.operators),
        "names": len({node.name for node in found.operators}),
        "collectives": dict(Counter(node.collective for node in found.operators if node.collective)),
        "timed": len(durations),
        "duration_ns": sum(durations),
    }


@real
@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_real_trace_holds_what_was_counted_without_the_reader(path: Path) -> None:
    known = format_of(path)
    assert known is not None
    found = read(path)
    assert found.events == found.kept + found.other.total() + found.problems.total()
    assert not found.problems
    assert ours(found, known[0]) == counted(path) == tomllib.loads(EXPECTED.read_text())[name_of(path)]


@real
def test_every_real_trace_has_numbers_committed_for_it() -> None:
    assert set(tomllib.loads(EXPECTED.read_text())) == {name_of(path) for path in FILES}


@real
def test_durations_without_starts_are_put_where_dependencies_and_threads_allow() -> None:
    found = read(CORPUS / "chakra/chakra.0.et.gz")
    (trace,) = found.traces
    assert (trace.origin.producer, trace.origin.clock, trace.origin.rank) == ("chakra_durations", "local", 0)
    assert int(trace.dur.sum()) == counted(CORPUS / "chakra/chakra.0.et.gz")["duration_ns"]
    for lane in range(len(trace.lanes)):
        start, end = trace.start[trace.lane == lane], trace.end[trace.lane == lane]
        assert (start[1:] >= end[:-1]).all()
    ends = dict(zip(((node.id) for node in found.operators if node.dur != UNKNOWN), trace.end.tolist(), strict=True))
    starts = dict(zip(ends, trace.start.tolist(), strict=True))
    nodes = [
        parsed(message) for message in list(split(gzip.decompress((CORPUS / "chakra/chakra.0.et.gz").read_bytes())))[1:]
    ]
    waits = [(node[1][0], packed) for node in nodes for packed in unpacked(node.get(5, []))]
    pairs = [(starts[one], ends[other]) for one, other in waits if one in starts and other in ends]
    assert len(pairs) > 3000
    assert all(start >= end for start, end in pairs)


def unpacked(values: list[Any]) -> Iterator[int]:
    for value in values:
        at = 0
        while isinstance(value, bytes) and at < len(value):
            one, at = number(value, at)
            yield one


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("dlrm_eg_3.json.gz", 3),
        ("chakra.0.et.gz", 0),
        ("rank12_et.json", 12),
        ("rank-2.json", 2),
        ("pytorch_et_1.0.2.json.gz", None),
        ("et.json", None),
    ],
)
def test_a_file_name_tells_the_rank_where_it_says_so(name: str, rank: int | None) -> None:
    assert rank_of(Path(name)) == rank


@given(st.binary(max_size=200))
@example(b"\x00\x00")
def test_any_bytes_are_fields_or_damaged(data: bytes) -> None:
    try:
        found = list(fields(data))
    except Damaged:
        return
    assert all(0 < number < 2**61 for number, _, _ in found)


@given(st.integers(0, 2**64 - 1))
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    data, rest = bytearray(), value
    while rest > 127:
        data.append(rest & 127 | 128)
        rest >>= 7
    data.append(rest)
    assert varint(bytes(data), 0) == (value, len(data))


def message(size: int) -> bytes:
    data = bytearray()
    while size > 127:
        data.append(size & 127 | 128)
        size >>= 7
    return bytes([*data, size])


def test_a_message_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.et"
    path.write_bytes(b"\x07\x0a\x050.0.4" + message(MAX_MESSAGE + 1) + b"x" * 100)
    with pytest.raises(LimitError):
        chakra.read(path, Place())


@given(data=st.data())
@settings(max_examples=60)
def test_a_cut_stream_is_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    whole = (Path(__file__).parents[3] / "data/chakra/starts_since_1970/input.et").read_bytes()
    ends = [0]
    for part in split(whole):
        ends.append(ends[-1] + len(message(len(part))) + len(part))
    cut = data.draw(st.integers(1, len(whole) - 1).filter(lambda at: at not in ends))
    path = tmp_path_factory.mktemp("cut") / "a.et"
    path.write_bytes(whole[:cut])
    with pytest.raises(TellerError):
        chakra.read(path, Place())


def test_json_without_nodes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "et.json"
    path.write_text('{"schema": "1.0.1", "rf_id": 1}')
    with pytest.raises(FormatError):
        execution_trace.read(path, Place())


def main() -> None:
    """Write what the standard library counts in every real trace."""
    lines = ["# Counted without the readers: python -m tests.core.ingest.executions.test_execution_traces"]
    for path in FILES:
        lines.append(f'\n["{name_of(path)}"]')
        for key, value in counted(path).items():
            table = (
                "{ " + ", ".join(f"{k} = {value[k]}" for k in sorted(value)) + " }" if isinstance(value, dict) else ""
            )
            shown = ("{}" if not value else table) if isinstance(value, dict) else json.dumps(value)
            lines.append(f"{key} = {shown}")
    EXPECTED.write_text("\n".join(lines) + "\n")
    sys.stderr.write(f"{len(FILES)} traces\n")


if __name__ == "__main__":
    main()
