"""The beginnings of log lines: who wrote the line, when, how exactly that is known, and on which clock.

Engines put their stamp first; containers, journals and Ray put another before it. The outer stamp has a zone and fractions
but is later by the way through a pipe; it is taken where the inner one knows only the second.
"""

import re
from calendar import timegm
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_S

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


_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)"
TAG = re.compile(r"\((?P<tag>[\w :-]{1,64}?) pid=(?P<pid>\d{1,9})(?:, ip=[\d.]+)?\) ?")
_VLLM = re.compile(
    _LEVEL + r" (?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?) \[?(?P<file>[\w/.-]+):\d+\]? ?(?P<message>.*)",
    re.DOTALL,
)
_ISO = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d\b)?"
_BRACKET = re.compile(
    rf"\[(?P<stamp>{_ISO}|\d\d:\d\d:\d\d)(?P<tag>(?: [A-Z_]+\d+)*)\]:? *(?:(?:\w+ )?{_LEVEL}:? +)?(?P<message>.*)",
    re.DOTALL,
)
_TRTLLM = re.compile(
    r"\[(?P<stamp>\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\] \[TRT-LLM\] (?:\[RANK (?P<tag>\d+)\] )?\[(?P<letter>\w)\] ?(?P<message>.*)",
    re.DOTALL,
)
_GLOG = re.compile(
    r"(?:\[rank\d+\]:)?\[?(?P<letter>[IWEF])(?P<stamp>\d{3,4} \d\d:\d\d:\d\d\.\d{1,9}) +(?:(?P<pid>\d{1,9}) )?"
    r"(?P<file>[\w/.<>-]+:\d+)\] ?(?P<message>.*)",
    re.DOTALL,
)
_PLAIN = re.compile(
    rf"(?:{_LEVEL}:? +)?(?:USDT:)?(?P<stamp>{_ISO})(?P<rest>.*)",
    re.DOTALL,
)
_AFTER = re.compile(
    rf" *(?:[-|:] *)?(?:(?P<pid>\d{{2,9}})(?::\d+)? )?(?:\[?{_LEVEL}\]?\b:?)? *(?:- +)?(?P<message>.*)", re.DOTALL
)
_CRI = re.compile(r" (?:stdout|stderr) [FP] ")
_COMPOSE = re.compile(r"[\w.-]{1,64} +\| ")
_JOURNAL = re.compile(
    r"(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) [\w.-]{1,255} (?P<tag>[\w@./-]{1,64})\[(?P<pid>\d{1,9})\]: "
)
_UVICORN = re.compile(_LEVEL + r": {2,}(?P<message>.*)", re.DOTALL)
_NCCL = re.compile(r"[\w.-]{1,64}:(?P<pid>\d{1,9}):\d{1,9} \[\d+\] NCCL (?P<level>INFO|WARN|TRACE) ")
_LETTERS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL", "D": "DEBUG", "V": "DEBUG"}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def head(line: str, near: int) -> Head | None:
    """The head of ``line``; None where it begins with none. ``near`` (Unix ns) gives the year, or the day, that stamps lack.

    A line of a known form without a time has UNKNOWN for it.
    """
    tag = TAG.match(line)
    if tag is not None:
        return _tagged(line[tag.end() :], near, tag["tag"], int(tag["pid"]))
    first = line[:1]
    if first == "[" or first in "IWEF":
        return _inner(line, near) or _plain(line, near)
    return _plain(line, near) or _outer(line, near) or _untimed(line)


def _tagged(rest: str, near: int, tag: str, pid: int) -> Head:
    inner = _inner(rest, near) or _plain(rest, near)
    if inner is None:
        return Head(UNKNOWN, UNKNOWN, False, "", tag, pid, rest)
    return inner._replace(tag=tag, pid=pid)


def _inner(line: str, near: int) -> Head | None:
    """The stamps that engines and their libraries write."""
    if match := _VLLM.match(line):
        return Head(*stamp(match["stamp"], near), match["level"], "", 0, match["message"])
    if match := _BRACKET.match(line):
        uvicorn = _UVICORN.match(match["message"])
        message = uvicorn["message"] if uvicorn else match["message"]
        return Head(*stamp(match["stamp"], near), match["level"] or "", match["tag"].strip(), 0, message)
    if match := _GLOG.match(line):
        return Head(
            *stamp(match["stamp"], near), _LETTERS[match["letter"]], "", int(match["pid"] or 0), match["message"]
        )
    if match := _TRTLLM.match(line):
        tag = f"RANK{match['tag']}" if match["tag"] else ""
        return Head(*stamp(match["stamp"], near), _LETTERS.get(match["letter"], ""), tag, 0, match["message"])
    return _untimed(line)


def _plain(line: str, near: int) -> Head | None:
    """A date and a time in front: Python's default, Ray, or a container's stamp around another head."""
    match = _PLAIN.match(line)
    if match is None:
        return None
    outer = stamp(match["stamp"], near)
    rest = match["rest"]
    inside = _inside(rest[cri.end() :] if (cri := _CRI.match(rest)) else rest.removeprefix(" "), near)
    if inside is not None:
        exact = inside.resolution != UNKNOWN and inside.resolution < NS_PER_S and inside.zoned
        return inside if exact else inside._replace(time=outer[0], resolution=outer[1], zoned=outer[2])
    after = _AFTER.fullmatch(rest)
    if cri is not None or after is None:
        return Head(*outer, match["level"] or "", "", 0, rest[cri.end() :] if cri else rest.strip())
    return Head(*outer, after["level"] or match["level"] or "", "", int(after["pid"] or 0), after["message"])


def _inside(rest: str, near: int) -> Head | None:
    """The head inside a container's line. A date again is the message's own."""
    tag = TAG.match(rest)
    if tag is not None:
        return _tagged(rest[tag.end() :], near, tag["tag"], int(tag["pid"]))
    return _inner(rest, near) if rest[:1] and rest[0] in "[IWEFDCT" else None


def _outer(line: str, near: int) -> Head | None:
    """The name of a compose service, or the journal's stamp, before another head."""
    if match := _COMPOSE.match(line):
        rest = line[match.end() :]
        return head(rest, near) or Head(UNKNOWN, UNKNOWN, False, "", "", 0, rest)
    if match := _JOURNAL.match(line):
        rest = line[match.end() :]
        outer = Head(*stamp(match["stamp"], near), "", "", int(match["pid"]), rest)
        inside = _inside(rest, near)
        if inside is None:
            return outer
        timed = inside.time != UNKNOWN
        return inside._replace(pid=inside.pid or outer.pid) if timed else outer._replace(message=inside.message)
    return None


def _untimed(line: str) -> Head | None:
    """Known forms that carry no time."""
    if match := _UVICORN.match(line):
        return Head(UNKNOWN, UNKNOWN, False, match["level"], "", 0, match["message"])
    if match := _NCCL.match(line):
        level = "WARNING" if match["level"] == "WARN" else match["level"]
        return Head(UNKNOWN, UNKNOWN, False, level, "", int(match["pid"]), line)
    return None


@lru_cache(maxsize=MAX_STAMPS)
def stamp(text: str, near: int) -> tuple[int, int, bool]:
    """(int ns, its resolution, whether it is the Unix clock) of a stamp; (UNKNOWN, 0, False) where there is no such date.

    A missing year is the one that brings the time closest to ``near``; a missing date the day that does.
    """
    parts = _STAMP.fullmatch(text)
    if parts is None:
        return UNKNOWN, 0, False
    date = _date(parts)
    clock = int(parts["hour"]) * 3600 + int(parts["minute"]) * 60 + int(parts["second"])
    fraction = parts["fraction"] or ""
    part = int((fraction + "000000000")[:9])
    zone = parts["zone"]
    days = _days(date, near, clock)
    if days is None or clock >= 86401:
        return UNKNOWN, 0, False
    time = (days * 86400 + clock - _offset(zone)) * NS_PER_S + part
    return time, 10 ** (9 - min(9, len(fraction))), zone is not None


_STAMP = re.compile(
    r"(?:(?:(?P<year>\d{4})[-/])?(?P<month>\d{1,2})[-/]?(?P<day>\d\d)(?:/(?P<late_year>\d{4}))?[T -]"
    r"|(?P<word>[A-Z][a-z]{2}) (?P<monthday>[ \d]\d) )?"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?(?: ?(?P<zone>Z|[+-]\d\d:?\d\d))?"
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
    try:
        return timegm(datetime(year, month, day, tzinfo=UTC).timetuple()) // 86400
    except ValueError:
        return None


def _offset(zone: str | None) -> int:
    """Seconds east of Greenwich."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    east = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -east if zone[0] == "-" else east
