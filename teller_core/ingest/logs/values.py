"""Numbers in the fields of log lines, made integers without passing through a float."""

from collections.abc import Mapping

from teller_core.ingest.decimals import MOST_TOKENS, NS_PER_MS, NS_PER_S, NS_PER_US, scaled

Fields = Mapping[str, str]

LONGEST_REQUEST = 7 * 86400 * NS_PER_S
"""A duration beyond a week is an unset start, not a request."""
_UNITS = {"ns": 1, "µs": NS_PER_US, "μs": NS_PER_US, "us": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S}
"""As Rust writes durations, the micro sign in either of its characters."""


def number(fields: Fields, name: str) -> int | None:
    """int: the count in a field; None where there is none."""
    text = fields.get(name)
    if text is None or len(text) > 9 or not text.isdecimal():
        return None
    value = int(text)
    return value if value <= MOST_TOKENS else None


def duration(text: str | None, unit: int) -> int | None:
    """int ns of decimal ``text`` in units of ``unit`` ns (a power of ten); None where it is none, or implausible."""
    if text is None:
        return None
    whole, point, part = text.partition(".")
    if (
        point
        and len(whole) < 8
        and len(part) < 7
        and whole.isascii()
        and whole.isdigit()
        and part.isascii()
        and part.isdigit()
    ):
        scale = 10 ** len(part)
        value = int(whole + part) * unit // scale if unit % scale == 0 else scaled(text, unit)
    else:
        value = scaled(text, unit)
    return value if value is not None and 0 <= value <= LONGEST_REQUEST else None


def rust_duration(text: str | None) -> int | None:
    """int ns of a duration as Rust shows it: ``1.5s``, ``955.594µs``; None where it is none."""
    if text is None:
        return None
    digits = text.rstrip("nmµμus")
    unit = _UNITS.get(text[len(digits) :])
    return None if unit is None else duration(digits, unit)


def fraction(text: str | None, whole: int) -> float | None:
    """float 0 to 1 of decimal ``text`` that is at most ``whole``; None where it is none."""
    if text is None:
        return None
    if len(text) < 8 and text.isascii() and text.replace(".", "", 1).isdigit():
        value: int | None = round(float(text) * 10**6)
    else:
        value = scaled(text, 10**6)
    return value / (whole * 10**6) if value is not None and 0 <= value <= whole * 10**6 else None
