"""Numbers of JSON and of log lines made int64 nanoseconds without passing through a float."""

from decimal import Decimal, InvalidOperation

from teller_core.data.table import UNKNOWN

LARGEST = 2**62
"""No time or count beyond this is believed: sums of two still fit an int64."""

MOST_TOKENS = 10**8
"""No count of tokens or requests beyond this is believed: ten times the longest context there is. They are kept as int32."""

NS_PER_S, NS_PER_MS, NS_PER_US = 1_000_000_000, 1_000_000, 1_000


def whole(value: object) -> int | None:
    """``value`` where it is an integer that int64 holds with room to spare, else None. A bool is no integer."""
    if type(value) is int and -LARGEST < value < LARGEST:
        return value
    return None


def count(value: object) -> int | None:
    """``value`` where it is an integer from 0, else None."""
    number = whole(value)
    return number if number is not None and number >= 0 else None


def few(value: object) -> int | None:
    """As :func:`count`, for tokens and requests: at most MOST_TOKENS."""
    number = count(value)
    return number if number is not None and number <= MOST_TOKENS else None


def scaled(value: object, factor: int) -> int | None:
    """int: ``value`` (int, Decimal or decimal text) times ``factor``, rounded half to even; None where it is no number."""
    if type(value) is int:
        return whole(value * factor)
    if not isinstance(value, str | Decimal):
        return None
    if isinstance(value, str) and len(value) < 19 and value.isascii() and value.isdigit():
        return whole(int(value) * factor)
    try:
        exact = Decimal(value)
    except InvalidOperation:
        return None
    if not exact.is_finite() or exact.adjusted() > 19:
        return None
    return whole(int((exact * factor).to_integral_value()))


def unix_ns(value: object) -> int:
    """int ns of a Unix time in seconds, milliseconds, microseconds or nanoseconds, told apart by size; else UNKNOWN.

    A second count reaches 10**11 in the year 5138, a millisecond count passed it in 1973.
    """
    for limit, factor in ((10**11, NS_PER_S), (10**14, NS_PER_MS), (10**17, NS_PER_US), (LARGEST, 1)):
        time = scaled(value, factor)
        if time is not None and 0 < time < limit * factor:
            return time
    return UNKNOWN
