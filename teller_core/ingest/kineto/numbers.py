"""JSON numbers read exactly, compiled. No float takes part: a microsecond since 1970 has more digits than a float64."""
# ruff: noqa: C901, PLR0912 - compiled: numba takes arguments by position,
# makes no sets, and inlines what is in one function. A loop over bytes is one decision a byte.

from teller_core.data.compiled import compiled, inlined
from teller_core.ingest.scanning.tokens import FINE, MAX_INT64, NO_NUMBER, TOO_BIG, Bytes

_WHOLE_US = MAX_INT64 // 1000 - 1
_MANY = 100_000


@inlined
def integer(data: Bytes, at: int) -> tuple[int, int, int]:
    """(value int64, index behind the digits, code) of the integer at ``at``. NO_NUMBER for a fraction or anything else."""
    negative = data[at] == 45
    if negative:
        at += 1
    start, value = at, 0
    while 48 <= data[at] <= 57:
        if at - start < 18:
            value = value * 10 + (data[at] - 48)
        elif value > (MAX_INT64 - (data[at] - 48)) // 10:
            return 0, at, TOO_BIG
        else:
            value = value * 10 + (data[at] - 48)
        at += 1
    if at == start or data[at] == 46 or data[at] == 101 or data[at] == 69:
        return 0, at, NO_NUMBER
    return (-value if negative else value), at, FINE


@inlined
def decimal_ns(data: Bytes, at: int) -> tuple[int, int, int]:
    """(int64 ns, index behind the number, code) of the decimal microseconds at ``at``.

    Exact to the digit. Digits below a nanosecond are rounded half to even, as ``decimal`` does by default.
    """
    negative = data[at] == 45
    if negative:
        at += 1
    start, value = at, 0
    while 48 <= data[at] <= 57:
        value = value * 10 + (data[at] - 48)
        at += 1
    whole = at - start
    if whole == 0:
        return 0, at, NO_NUMBER
    fraction, places = 0, 0
    if data[at] == 46:
        at += 1
        while 48 <= data[at] <= 57:
            if places < 3:
                fraction = fraction * 10 + (data[at] - 48)
            places += 1
            at += 1
        if places == 0:
            return 0, at, NO_NUMBER
    if whole > 18 or value > _WHOLE_US or places > 3 or data[at] == 101 or data[at] == 69:
        value, at, code = _long_decimal(data, start)
        return (-value if negative else value), at, code
    if places == 1:
        fraction *= 100
    elif places == 2:
        fraction *= 10
    value = value * 1000 + fraction
    return (-value if negative else value), at, FINE


@compiled
def _exponent(data: Bytes, at: int) -> tuple[int, int, int]:
    """(exponent, index behind, code) at ``at``, the byte behind the digits of a number; 0 where there is none."""
    if data[at] != 101 and data[at] != 69:
        return 0, at, FINE
    at += 1
    negative = data[at] == 45
    if negative or data[at] == 43:
        at += 1
    start, value = at, 0
    while 48 <= data[at] <= 57:
        value = min(value * 10 + (data[at] - 48), _MANY)
        at += 1
    return (-value if negative else value), at, (FINE if at > start else NO_NUMBER)


@compiled
def _long_decimal(data: Bytes, start: int) -> tuple[int, int, int]:
    """As :func:`decimal_ns`, without a sign, for any number of digits and any exponent."""
    at = start
    while 48 <= data[at] <= 57:
        at += 1
    kept = at - start + 3
    if data[at] == 46:
        at += 1
        while 48 <= data[at] <= 57:
            at += 1
    power, after, code = _exponent(data, at)
    if code != FINE:
        return 0, after, code
    kept += power
    value, seen, half, beyond = 0, 0, 0, False
    for i in range(start, at):
        if data[i] == 46:
            continue
        digit = data[i] - 48
        if seen < kept:
            if value > (MAX_INT64 - digit) // 10:
                return 0, after, TOO_BIG
            value = value * 10 + digit
        elif seen == kept:
            half = digit
        elif digit:
            beyond = True
        seen += 1
    while seen < kept and value:
        if value > MAX_INT64 // 10:
            return 0, after, TOO_BIG
        value *= 10
        seen += 1
    if half > 5 or (half == 5 and (beyond or value & 1)):
        if value == MAX_INT64:
            return 0, after, TOO_BIG
        value += 1
    return value, after, FINE
