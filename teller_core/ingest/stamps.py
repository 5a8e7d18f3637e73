"""The times that log lines write, in whatever form, and what is known of the line besides."""

import re
from calendar import timegm
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import LARGEST, NS_PER_S, scaled

MAX_STAMPS = 4096
"""Stamps whose meaning is remembered: neighbors share theirs."""


class Head(NamedTuple):
    """What stands before a message. ``time`` int ns; on the Unix clock where ``zoned``, else a wall clock read as UTC."""

    time: int
    resolution: int
    zoned: bool
    level: str
    tag: str
    """The process's name for itself: ``EngineCore_DP0``, ``TP1``; empty for none."""
    pid: int
    message: str
    host: str = ""
    """The machine, pod or service that an envelope names."""
    zone: int = 0
    """ns by which the stamp inside an envelope is ahead of the envelope's: the zone of who wrote the line."""
    part: bool = False
    """The envelope says that the line goes on in the next one."""
    local: bool = False
    """``time`` counts from an unknown zero: the start of the process or of the machine."""


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def stamp(text: str, near: int) -> tuple[int, int, bool]:
    """(int ns, its resolution, whether it is the Unix clock) of a stamp; (UNKNOWN, 0, False) where there is no such date.

    A missing year is the one that brings the time closest to ``near``; a missing date the day that does.
    """
    fraction = _FRACTION.search(text) if "." in text or "," in text else None
    if fraction is None:
        return _stamp(text, near)
    time, _, zoned = _stamp(text[: fraction.start()] + text[fraction.end() :], near)
    if time == UNKNOWN:
        return UNKNOWN, 0, False
    digits = fraction[1]
    return time + int(digits.ljust(9, "0")), 10 ** (9 - len(digits)), zoned


def unix_stamp(text: str) -> tuple[int, int, bool]:
    """As :func:`stamp`, of seconds since 1970, with or without six digits behind the point."""
    time = scaled(text, NS_PER_S)
    return (UNKNOWN, 0, False) if time is None else (time, 1000 if "." in text else NS_PER_S, True)


_FRACTION = re.compile(r"[.,]([0-9]{1,9})(?![0-9])")


@lru_cache(maxsize=MAX_STAMPS)
def _stamp(text: str, near: int) -> tuple[int, int, bool]:
    """:func:`stamp` of whole seconds."""
    parts = _STAMP.fullmatch(text)
    if parts is None:
        return UNKNOWN, 0, False
    date = _date(parts)
    clock = int(parts["hour"]) * 3600 + int(parts["minute"]) * 60 + int(parts["second"])
    zone = parts["zone"]
    days = _days(date, near, clock)
    if days is None or clock >= 86401:
        return UNKNOWN, 0, False
    return (days * 86400 + clock - _offset(zone)) * NS_PER_S, NS_PER_S, zone is not None


_STAMP = re.compile(
    r"(?:(?:(?P<year>\d{4})[-/])?(?P<month>\d{1,2})[-/]?(?P<day>\d\d)(?:/(?P<late_year>\d{4}))?[T -]"
    r"|(?P<word>[A-Z][a-z]{2}) (?P<monthday>[ \d]\d) )?"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?: ?(?P<zone>Z|[+-]\d\d:?\d\d))?"
)


def _date(parts: re.Match[str]) -> tuple[int | None, int, int] | None:
    """(year, month, day), the year None where it is not written; None without a date."""
    if parts["word"]:
        month = _MONTHS.index(parts["word"]) + 1 if parts["word"] in _MONTHS else 0
        return None, month, int(parts["monthday"])
    if parts["month"] is None:
        return None
    year = parts["year"] or parts["late_year"]
    return int(year) if year else None, int(parts["month"]), int(parts["day"])


def _days(date: tuple[int | None, int, int] | None, near: int, clock: int) -> int | None:
    """Days since 1970 of a date that may lack its year, or of no date at all; None where there is no such day."""
    if date is None:
        return round((near // NS_PER_S - clock) / 86400)
    year, month, day = date
    around = datetime.fromtimestamp(near // NS_PER_S, UTC).year
    possible = [_day(y, month, day) for y in ([year] if year is not None else [around - 1, around, around + 1])]
    real = [days for days in possible if days is not None]
    return min(real, key=lambda days: abs(days * 86400 + clock - near // NS_PER_S), default=None)


def _day(year: int, month: int, day: int) -> int | None:
    """Days since 1970; None where there is no such day, and where it is so far away that no column holds its ns."""
    try:
        days = timegm(datetime(year, month, day, tzinfo=UTC).timetuple()) // 86400
    except ValueError:
        return None
    return days if abs(days) < LARGEST // (86400 * NS_PER_S) - 5 else None


def _offset(zone: str | None) -> int:
    """Seconds east of Greenwich."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    east = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -east if zone[0] == "-" else east
