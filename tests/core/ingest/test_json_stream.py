"""A JSON text is walked as the standard library reads it, in pieces of any size; broken text is refused."""

import json
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.errors import FormatError, LimitError
from teller_core.ingest import json_stream as streams
from teller_core.ingest.json_stream import Stream, json_stream

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=25,
)


def in_file(text: bytes, block: int, walk: Any) -> Any:
    """What ``walk`` makes of a stream of ``text`` that is read ``block`` bytes at a time."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK", block)
        path = Path(folder) / "t.json"
        path.write_bytes(text)
        with json_stream(path) as stream:
            return walk(stream)


def walked(stream: Stream) -> object:
    """The value at the place, walked into as deep as it goes."""
    kind = stream._peek()  # pyright: ignore[reportPrivateUsage] -- tests may look
    if kind == "{":
        return {key: walked(stream) for key in stream.members()}
    return [walked(stream) for _ in stream.elements()] if kind == "[" else stream.value()


@given(value=VALUES, block=st.integers(1, 40), spaces=st.booleans())
def test_walking_finds_what_the_standard_library_reads(value: object, block: int, spaces: bool) -> None:
    text = json.dumps(value, indent=2 if spaces else None, ensure_ascii=spaces)
    expected = json.loads(text, parse_float=Decimal)
    assert in_file(text.encode(), block, walked) == expected
    assert in_file(text.encode(), block, Stream.value) == expected


@given(value=VALUES, other=VALUES, block=st.integers(1, 40))
def test_what_is_passed_over_leaves_the_rest_in_place(value: object, other: object, block: int) -> None:
    text = json.dumps({"a": value, "b": other, "c": [value, 1]})

    def only_b(stream: Stream) -> list[object]:
        return [stream.value() for key in stream.members() if key == "b"]

    assert in_file(text.encode(), block, only_b) == [json.loads(json.dumps(other), parse_float=Decimal)]


@given(seconds=st.decimals(min_value=0, max_value=10**8, allow_nan=False, places=15) | st.floats(0, 1e8))
def test_seconds_become_nanoseconds_as_decimal_does_it(seconds: Decimal | float) -> None:
    text = f"{seconds:f}" if isinstance(seconds, Decimal) else repr(seconds)
    expected = int((Decimal(text) * 10**9).to_integral_value())
    (found,) = in_file(f"[{text}]".encode(), 7, lambda stream: stream.value(seconds=True))
    assert found == expected


def test_numbers_that_no_column_holds_and_no_numbers_are_nothing() -> None:
    text = b"[NaN, Infinity, -Infinity, 1e99999999999999999999, 1" + b"0" * 99 + b", 0.1" + b"1" * 99 + b"]"
    assert in_file(text, 64, Stream.value) == [None] * 6
    assert in_file(text, 64, lambda stream: stream.value(seconds=True)) == [None] * 6


@pytest.mark.parametrize(
    "text", [b'{"a": 1', b'{"a" 1}', b'{"a": 1,}', b"[1,]", b"[1 2]", b'["a', b'{"a": ]}', b"{1: 2}", b"[1"]
)
def test_broken_text_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError):
        in_file(text, 3, walked)


def test_nesting_of_any_depth_is_passed_over_or_refused() -> None:
    text = b'{"deep": ' + b"[" * 200_000 + b"]" * 200_000 + b', "b": 1}'
    assert in_file(text, 4096, lambda stream: [stream.value() for key in stream.members() if key == "b"]) == [1]
    with pytest.raises(FormatError):
        in_file(text, 4096, Stream.value)


def test_a_value_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_VALUE", 1000)
    with pytest.raises(LimitError):
        in_file(b'"' + b"x" * 3000 + b'"', 64, Stream.value)
