"""Times are exact: checked against Decimal and datetime."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import few, scaled, unix_ns
from teller_core.ingest.logs.envelopes import head
from teller_core.ingest.logs.json_heads import json_head
from teller_core.ingest.recorder.nvtx_tsv import unix
from teller_core.ingest.stamps import stamp

SECOND = 1_000_000_000
YEAR = timedelta(days=365)


@given(st.decimals(min_value=0, max_value=10**9, places=12), st.sampled_from([1, 1000, 1_000_000, SECOND]))
def test_a_decimal_is_scaled_to_the_digit(value: Decimal, factor: int) -> None:
    exact = value * factor
    got = scaled(str(value), factor)
    assert got is not None
    assert abs(got - exact) <= Decimal("0.5")


@pytest.mark.parametrize("value", [None, True, 1.5, "", "x", "NaN", "1e400", "-Infinity", 2**62, "9" * 40, [1]])
def test_what_is_no_number_or_too_large_is_none(value: object) -> None:
    assert scaled(value, 1) is None


@given(st.integers(10**18, 2 * 10**18))
def test_a_unix_time_is_the_same_in_every_unit(ns: int) -> None:
    assert unix_ns(ns) == ns
    for unit in (10**9, 10**6, 10**3):
        assert unix_ns(Decimal(ns) / unit) == ns
        assert unix_ns(ns // unit) == ns // unit * unit


def test_no_time_is_unknown() -> None:
    assert unix_ns("x") == unix_ns(-5) == unix_ns(0) == UNKNOWN


@given(
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31)),
    st.floats(-180, 180),
    st.sampled_from(["%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%m/%d/%Y-%H:%M:%S", "%m%d %H:%M:%S.%f", "%b %d %H:%M:%S"]),
)
def test_a_stamp_is_the_time_that_wrote_it(when: datetime, days_off: float, form: str) -> None:
    """Without a year it is the one nearest to ``near``, which may be up to half a year off."""
    near = int((when + timedelta(days=days_off)).replace(tzinfo=UTC).timestamp()) * SECOND
    time, resolution, zoned = stamp(when.strftime(form), near)
    exact = int(when.replace(tzinfo=UTC, microsecond=0).timestamp()) * SECOND + when.microsecond * 1000
    assert time == exact // resolution * resolution
    assert resolution == (1000 if "%f" in form else SECOND)
    assert not zoned


@given(st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31)), st.integers(-56, 56))
def test_a_zone_is_taken_off(when: datetime, quarters: int) -> None:
    east = timedelta(minutes=15 * quarters)
    sign, minutes = "-" if quarters < 0 else "+", abs(15 * quarters)
    text = f"{when:%Y-%m-%dT%H:%M:%S}{sign}{minutes // 60:02}:{minutes % 60:02}"
    time, _, zoned = stamp(text, 0)
    assert time == int((when.replace(microsecond=0, tzinfo=UTC) - east).timestamp()) * SECOND
    assert zoned


@pytest.mark.parametrize(
    "text",
    [
        "02-30 01:02:03",
        "13-01 01:02:03",
        "Foo 01 01:02:03",
        "01-01 99:02:03",
        "x",
        "9999-12-31 23:59:59",
        "2226-11-29 14:55:21.108123456Z",
        "0001-01-01 00:00:00",
    ],
)
def test_a_day_that_is_not_or_that_no_column_holds_is_unknown(text: str) -> None:
    assert stamp(text, 1_795_961_987 * SECOND) == (UNKNOWN, 0, False)


@given(st.text(max_size=200))
def test_any_line_has_a_head_or_none(line: str) -> None:
    found = head(line, 1_795_961_987 * SECOND)
    assert found is None or found.message in line or found.message == line.strip()


@given(
    st.lists(st.tuples(st.integers(1, 10**9), st.integers(-2000, 2000)), min_size=1, max_size=20),
    st.lists(st.integers(-(10**9), 2 * 10**10), min_size=2, max_size=50),
)
def test_the_clock_of_anchors_keeps_order_and_passes_through_them(
    steps: list[tuple[int, int]], times: list[int]
) -> None:
    mono, offset = 10**12, 1_795_000_000 * SECOND
    anchors: list[tuple[int, int]] = []
    for step, steered in steps:
        mono += max(step, 10_000)
        offset += steered
        anchors.append((mono, mono + offset))
    at = np.array([m for m, _ in anchors], dtype=np.int64)
    assert unix(at, anchors).tolist() == [real for _, real in anchors]
    some = np.array(sorted(times), dtype=np.int64) + 10**12
    assert np.all(np.diff(unix(some, anchors)) >= 0)


@pytest.mark.parametrize("number", ["1e5000", "1e999999999999999999", "1e9999999999999999999999", "-1e30", "1e-5000"])
def test_a_number_beyond_any_clock_is_no_time_and_no_fault(number: str) -> None:
    assert json_head(f'{{"created": {number}, "message": "x"}}', 0) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), (10**8, 10**8), (10**8 + 1, None), (2**31, None), (-1, None), (True, None), ("7", None)],
)
def test_a_count_that_no_context_has_is_no_count(value: object, expected: int | None) -> None:
    assert few(value) == expected
