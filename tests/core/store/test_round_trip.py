"""Whatever is kept comes back as it was."""

from dataclasses import fields, replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.report import CaptureReport, WhyReport
from teller_core.data.trace import Trace
from teller_core.data.tree import ROOT, Tree
from teller_core.errors import StoreError, UnknownName
from teller_core.store.chunks import CHUNK_ROWS, chunks_of, decode, encode, unpacked
from teller_core.store.spans import TRACE_COLUMNS
from teller_core.store.store import Store
from teller_core.store.strings import PIECE, pieces_of, unpack
from tests.core.store.made import (
    answer_of,
    assessment_of,
    assessments,
    capture_of,
    captures,
    differences,
    report_of,
    texts,
    tree_of,
    trees,
)

_dtypes = {
    "int64": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, 0]),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint8": st.integers(0, 255),
    "float64": st.floats(),
}
_columns = st.sampled_from(sorted(_dtypes)).flatmap(
    lambda dtype: st.lists(_dtypes[dtype], max_size=40).map(lambda values: np.array(values, dtype=dtype))
)


@given(_columns, st.booleans(), st.integers(0, 41), st.integers(0, 41))
def test_a_chunk_gives_back_every_bit_of_any_part_of_a_column(column, delta, low, high):
    chunk = encode(column, delta=delta, press=zstandard.ZstdCompressor(level=1))
    back = decode(chunk, zstandard.ZstdDecompressor(), low, high)
    assert back.dtype == column.dtype
    assert back.tobytes() == column[low:high].tobytes()


@pytest.mark.parametrize("length", [0, 1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 3 * CHUNK_ROWS])
def test_a_column_is_cut_into_chunks_at_any_length(length):
    column = np.random.default_rng(length).integers(-(2**63), 2**63 - 1, length)
    parts = [decode(chunk, zstandard.ZstdDecompressor()) for chunk in chunks_of(column, delta=True)]
    assert np.array_equal(np.concatenate(parts), column)
    assert max(len(part) for part in parts) <= CHUNK_ROWS


@given(st.data())
def test_a_damaged_chunk_is_refused_and_never_crashes(data):
    chunk = bytearray(encode(np.arange(50), delta=True, press=zstandard.ZstdCompressor(level=1)))
    place = data.draw(st.integers(0, len(chunk) - 1))
    chunk[place] = data.draw(st.integers(0, 255))
    cut = bytes(chunk[: data.draw(st.integers(0, len(chunk)))])
    try:
        assert len(decode(cut, zstandard.ZstdDecompressor())) <= CHUNK_ROWS
    except StoreError as error:
        assert "damaged" in str(error)


def test_a_frame_that_claims_more_than_there_may_be_is_refused():
    blob, unpress = zstandard.ZstdCompressor().compress(bytes(100_000)), zstandard.ZstdDecompressor()
    assert unpacked(blob, 100_000, unpress) == bytes(100_000)
    with pytest.raises(StoreError, match="damaged"):
        unpacked(blob, 99_999, unpress)


@given(st.lists(texts, max_size=20), st.data())
def test_strings_come_back_whole_or_one_by_one(strings, data):
    strings = strings * data.draw(st.sampled_from([1, PIECE]))
    pieces = list(pieces_of(strings))
    back = [text for piece in pieces for text in unpack(piece, None, zstandard.ZstdDecompressor())]
    assert back == strings
    if strings:
        place = data.draw(st.integers(0, len(strings) - 1))
        found = unpack(pieces[place // PIECE], [place % PIECE], zstandard.ZstdDecompressor())
        assert found == [strings[place]]


@given(st.binary(max_size=40))
def test_bytes_that_are_no_strings_are_refused(blob):
    try:
        unpack(blob, None, zstandard.ZstdDecompressor())
    except StoreError as error:
        assert "damaged" in str(error)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    with Store.open(tmp_path_factory.mktemp("store") / "teller.db") as store:
        yield store


_numbers = count()


@settings(max_examples=40)
@given(captures(), assessments())
def test_any_capture_comes_back_exactly(shared: Store, made: Capture, assessment: Assessment):
    capture = replace(made, id=f"{next(_numbers):x}")
    assert shared.save(capture, assessment, [], report_of(capture))
    with Store.open(shared.path, read_only=True) as store:
        bare = replace(capture, ranks=[replace(rank, tree=None) for rank in capture.ranks])
        assert differences(bare, store.capture(capture.id)) == []
        assert differences(assessment, store.assessment(capture.id)) == []
        for position, rank in enumerate(capture.ranks):
            if rank.tree is not None:
                assert differences(rank.tree, store.tree_rows(capture.id, position)) == []
            else:
                with pytest.raises(UnknownName):
                    store.tree_rows(capture.id, position)


@given(trees(), st.data())
def test_any_part_of_a_tree_says_the_same_as_those_rows_of_the_whole(shared: Store, tree: Tree, data: st.DataObject):
    low = data.draw(st.integers(0, len(tree)))
    high = data.draw(st.integers(low, len(tree)))
    capture = capture_of(f"{next(_numbers):x}", tree)
    shared.save(capture, assessment_of({}), [], report_of(capture))
    part = shared.tree_rows(capture.id, 0, low, high)
    assert len(part) == high - low
    for row in range(low, high):
        here = row - low
        parent = int(tree.parent[row])
        assert part.parent[here] == (parent - low if parent >= low else ROOT)
        assert part.stop[here] == min(int(tree.stop[row]), high) - low
        assert described(part.trace, here) == described(tree.trace, row)


def described(trace: Trace, row: int) -> tuple[object, ...]:
    """What a row of a trace says, its tables looked up."""
    numbers = (trace.start[row], trace.dur[row], trace.layer[row], trace.link[row])
    arg = trace.args[trace.arg[row]] if trace.arg[row] >= 0 else None
    return (
        *numbers,
        trace.names[trace.name[row]],
        trace.lanes[trace.lane[row]],
        trace.categories[trace.category[row]],
        arg,
    )


def test_parts_across_chunks_and_pieces_agree_with_the_whole(tmp_path: Path):
    tree = tree_of(2 * CHUNK_ROWS + 700, names=3 * PIECE)
    tree.check()
    capture = capture_of("0a", tree)
    with Store.open(tmp_path / "teller.db") as store:
        store.save(capture, assessment_of({}), [], report_of(capture))
        for near in (0, CHUNK_ROWS - 45, CHUNK_ROWS, 2 * CHUNK_ROWS - 1, len(tree) - 90):
            low = near - near % 90
            high = int(tree.stop[low])
            part, whole = store.tree_rows("0a", 0, low, high), tree.subtree(low)
            part.check()
            assert np.array_equal(part.parent, whole.parent)
            assert np.array_equal(part.stop, whole.stop)
            for row in range(high - low):
                assert described(part.trace, row) == described(whole.trace, row)


def test_only_the_columns_asked_for_are_read(tmp_path: Path):
    tree = tree_of(500)
    capture = capture_of("0a", tree)
    with Store.open(tmp_path / "teller.db") as store:
        store.save(capture, assessment_of({}), [], report_of(capture))
        part = store.tree_rows("0a", 0, 90, 180, columns=["dur", "name"])
    assert np.array_equal(part.trace.dur, tree.trace.dur[90:180])
    assert [part.trace.names[code] for code in part.trace.name] == [
        tree.trace.names[c] for c in tree.trace.name[90:180]
    ]
    assert np.array_equal(part.stop, tree.subtree(90).stop)
    assert len(part.trace.start) == len(part.trace.link) == 0
    assert part.trace.args == []


def test_nothing_of_a_trace_or_a_tree_is_forgotten():
    tables = {"names", "lanes", "categories", "args", "origin", "problems", "events_in_file", "events_other"}
    assert {field.name for field in fields(Trace)} == {*TRACE_COLUMNS, *tables}
    assert {field.name for field in fields(Tree)} == {"trace", "parent", "stop", "crossings", "unlaunched"}


def test_answers_and_reports_come_back_with_names_that_are_no_text(tmp_path: Path):
    capture = capture_of("0a")
    report: CaptureReport = report_of(capture).model_copy(update={"name": "half \ud800 a pair \0"})
    said: WhyReport = answer_of("0a", 1)
    odd = said.findings[0].model_copy(update={"operator": "\udfff"})
    other = said.model_copy(update={"request": 2, "findings": [odd]})
    with Store.open(tmp_path / "teller.db") as store:
        store.save(capture, assessment_of({}), [said, other], report)
        assert store.report("0a") == report
        assert store.captures() == [report]
        assert store.answer("0a", 1) == said
        assert store.answer("0a", 2) == other
        assert store.answer("0a", 3) is None
        assert store.answer("0a", 1, "ttft") is None
