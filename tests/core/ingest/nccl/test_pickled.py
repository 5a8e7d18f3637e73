"""Pickles of plain values come back as Python's own reader gives them; everything else is refused, soon and in little memory."""

import pickle
import time
import tracemalloc
from collections import OrderedDict
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.errors import FormatError, LimitError, TellerError
from teller_core.ingest.nccl.pickled import load_plain

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=300)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(st.text(st.characters(), max_size=5) | st.integers(), inner, max_size=5)
    ),
    max_leaves=40,
)


@given(VALUES, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_come_back_as_the_standard_library_reads_them(value, protocol):
    data = pickle.dumps(value, protocol)
    assert load_plain(data, "dump") == pickle.loads(data) == value


@given(st.binary(max_size=200), VALUES, st.data())
def test_any_bytes_are_read_or_refused(junk, value, data):
    whole = pickle.dumps(value, 4)
    at = data.draw(st.integers(0, len(whole)))
    for damaged in (b"\x80\x04" + junk, whole[:at], whole[:at] + junk[:9] + whole[at:]):
        try:
            load_plain(damaged, "dump")
        except TellerError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    "value", [OrderedDict(a=1), Decimal(1), print, {(1, 2): 3}, {1.5: 2}, {1, 2}, b"bytes", object]
)
def test_what_is_no_plain_value_is_refused(value):
    with pytest.raises(FormatError):
        load_plain(pickle.dumps(value, 4), "dump")


DEEP = b"".join(b"h\x00h\x00\x86q\x00" for _ in range(64))
BOMBS = {
    "a memo of four billion": (b"Nr\xff\xff\xff\xff.", None),
    "a text of four gigabytes": (b"X\xff\xff\xff\xffa.", FormatError),
    "a text of exabytes": (b"\x8d" + b"\xff" * 7 + b"\x7fa.", FormatError),
    "an integer of two gigabytes": (b"\x8b\xff\xff\xff\x7fa.", LimitError),
    "a frame of exabytes": (b"\x95" + b"\xff" * 7 + b"\x7fN.", None),
    "a key whose hash takes for ever": (b"})q\x00" + DEEP + b"Nsb.", FormatError),
    "a value of two to the sixty-four parts": (b")q\x00" + DEEP + b".", None),
    "a million tuples deep": (b")" + b"\x85" * 1_000_000 + b".", None),
    "more lists than memory": (b"]" * 4_100_000 + b".", LimitError),
    "instructions without end": (b"N" + b"q\x00" * 8_100_000 + b".", LimitError),
    "a list in itself": (b"]q\x00h\x00a.", None),
    "nothing": (b"", FormatError),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_or_harmless(name):
    instructions, error = BOMBS[name]
    tracemalloc.start() if len(instructions) < 1000 else None
    begun = time.process_time()
    try:
        if error is None:
            load_plain(b"\x80\x04" + instructions, "dump")
        else:
            with pytest.raises(error):
                load_plain(b"\x80\x04" + instructions, "dump")
        if tracemalloc.is_tracing():
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert time.process_time() - begun < 200
