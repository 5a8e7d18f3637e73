"""What containers, journals and collectors put before a line of a log: a second stamp, a name, a host.

The outer stamp has a zone and fractions but is later by the way through a pipe; the inner one is nearer to what happened,
but may know neither its zone nor more than the second. Both are kept: the better one as the time of the line, the
difference of their zones beside it.
"""

import re
from collections.abc import Mapping
from typing import Any

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_S
from teller_core.ingest.logs.heads import ISO, engine_head, plain_head, tagged, untimed_head
from teller_core.ingest.logs.json_heads import json_head, row_head
from teller_core.ingest.stamps import Head, stamp, unix_stamp

FINE = 50_000_000
"""ns: an inner stamp finer than this is put on the outer clock instead of giving way to it."""
QUARTER = 900 * NS_PER_S
"""Zones are whole quarters of an hour apart."""
LONGEST_WAY = 60 * NS_PER_S
"""Between two stamps of one line, zones apart. What lies farther apart is no other zone but another time."""
MAX_LAYERS = 4
"""Envelopes around one line: a journal in a collector's export around a container's line."""

_CRI = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d)) std(?:out|err) (?P<part>[FP]) "
)
_KUBECTL = re.compile(r"\[pod/(?P<pod>[\w.-]{1,253})/(?P<name>[\w.-]{1,253})\] ")
_COMPOSE = re.compile(r"(?P<name>[\w.@-]{1,128}|\[[\w.-]{1,64}\]) +\| ")
_CHILD = re.compile(r"\[(?P<name>\d{2,6}|OLLAMA)\] ")
"""llama-swap and the router of llama.cpp name a child by its port."""
_MONTH = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
_JOURNAL = re.compile(
    rf"(?P<stamp>{_MONTH}|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?[+-]\d\d:?\d\d|\d{{9,11}}\.\d{{6}}"
    r"|[A-Z][a-z]{2} (?P<full>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) (?P<zone>[A-Z+][\w:]{1,6}))"
    r" (?P<host>[\w.-]{1,255}) (?P<ident>[\w@./:-]{1,128}?)(?:\[(?P<pid>\d{1,9})\])?: "
)
_RFC3164 = re.compile(r"<(?P<pri>\d{1,3})>(?=[A-Z])")
_RFC5424 = re.compile(
    r"<(?P<pri>\d{1,3})>1 (?P<stamp>\S{1,64}) (?P<host>\S{1,255}) \S{1,48} (?P<pid>\S{1,128}) \S{1,32} "
    r'(?:-|(?:\[[^\]"]{0,256}(?:"(?:[^"\\]|\\.){0,4096}"[^\]"]{0,256}){0,64}\])++) ?\ufeff?'
)
_KERNEL = re.compile(
    r"\[(?: *(?P<up>\d{1,9}\.\d{6})|[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<year>\d{4}))\] "
)
"""dmesg: seconds since the machine's start, or -T."""
_OUTER = re.compile(rf"(?P<stamp>{ISO}) ")
_STREAM = re.compile(r"[\w.:@$-]{1,256}/[\w.:@$/\[\]-]{1,256} ")
"""The name of a stream that ``aws logs tail`` writes behind its stamp."""
_PRIORITIES = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARNING", "INFO", "INFO", "DEBUG")


def head(line: str, near: int, layers: int = MAX_LAYERS) -> Head | None:
    """The head of ``line``; None where it begins with none. ``near`` (Unix ns) gives the year, or the day, that stamps lack.

    A line of a known form without a time has UNKNOWN for it.
    """
    first = line[:1]
    if first == "(":
        return tagged(line, near)
    if first == "{":
        return _json(line, near, layers)
    if first in "[IWEFDCTV0123456789" and (found := engine_head(line, near)) is not None:
        return found
    if first.isdigit():
        return _dated(line, near, layers)
    return (plain_head(line, near) if first in "IWEFDCTV" else None) or _enveloped(line, near, layers)


def level_of(priority: str) -> str:
    """The level of a syslog priority, facility and all; empty for none."""
    return _PRIORITIES[int(priority) & 7] if priority.isascii() and priority.isdigit() and len(priority) < 4 else ""


def around(outer: Head, inside: Head | None) -> Head:
    """``inside`` with what its envelope ``outer`` tells better: time, host, level, pid. Without an inside the envelope itself."""
    if inside is None:
        return outer
    kept = inside._replace(
        host=inside.host or outer.host,
        level=inside.level or outer.level,
        pid=inside.pid or outer.pid,
        part=outer.part or inside.part,
    )
    if outer.time == UNKNOWN or (
        inside.zoned and inside.time != UNKNOWN and inside.resolution <= min(FINE, outer.resolution)
    ):
        return kept
    if inside.time == UNKNOWN or inside.local or inside.zoned:
        return kept._replace(time=outer.time, resolution=outer.resolution, zoned=outer.zoned, local=outer.local)
    if not outer.zoned:
        finer = inside.resolution < outer.resolution or outer.local or outer.resolution >= NS_PER_S
        return kept if finer else kept._replace(time=outer.time, resolution=outer.resolution)
    zone = round((inside.time - outer.time) / QUARTER) * QUARTER
    near = abs(inside.time - outer.time - zone) <= LONGEST_WAY
    zone = zone if near else 0
    if near and inside.resolution <= FINE:
        return kept._replace(time=inside.time - zone, zoned=True, zone=zone)
    return kept._replace(time=outer.time, resolution=outer.resolution, zoned=True, zone=zone)


def row_in_envelope(row: Mapping[str, Any], near: int) -> Head | None:
    """The head of a line that a collector hands out as the object ``row``; None where it is none."""
    outer = row_head(row, near)
    return None if outer is None else around(outer, _inside(outer.message, near, MAX_LAYERS))


def _json(line: str, near: int, layers: int) -> Head | None:
    outer = json_head(line, near)
    if outer is None or layers <= 0:
        return outer
    return around(outer, _inside(outer.message, near, layers))


def _inside(rest: str, near: int, layers: int) -> Head | None:
    """The head inside an envelope that says nothing of what it holds."""
    if rest[:1] in "([{IWEFDCTV" or rest[:1].isdigit():
        return head(rest, near, layers - 1)
    return None


def _enveloped(line: str, near: int, layers: int) -> Head | None:
    if layers <= 0:
        return untimed_head(line)
    return _bracketed(line, near, layers) if line[:1] == "[" else _named(line, near, layers)


def _bracketed(line: str, near: int, layers: int) -> Head | None:
    if found := _KUBECTL.match(line):
        return _of_host(line[found.end() :], found["pod"], near, layers)
    if found := _KERNEL.match(line):
        return _kernel(found, line[found.end() :], near)
    if found := _COMPOSE.match(line):
        return _of_host(line[found.end() :], found["name"].strip("[]"), near, layers)
    if found := _CHILD.match(line):
        inside = head(line[found.end() :], near, layers - 1)
        return None if inside is None else inside._replace(tag=inside.tag or found["name"])
    return None


def _kernel(found: re.Match[str], text: str, near: int) -> Head:
    if found["up"]:
        time, resolution, _ = unix_stamp(found["up"])
        return Head(time, resolution, False, "", "", 0, text, local=True)
    return Head(*stamp(f"{found['year']}-{_month(found['month'])}", near), "", "", 0, text)


def _dated(line: str, near: int, layers: int) -> Head | None:
    """A date in front: a log's own, or a container's before another head."""
    if layers > 0 and (found := _CRI.match(line)):
        rest = line[found.end() :]
        time, resolution, zoned = stamp(found["stamp"], near)
        outer = Head(time, resolution, zoned, "", "", 0, rest, part=found["part"] == "P")
        return around(outer, _inside(rest, near, layers))
    if layers > 0 and (found := _JOURNAL.match(line)):
        return _journal(found, line[found.end() :], near, layers)
    plain = plain_head(line, near)
    if plain is None or layers <= 0:
        return plain
    outer = _OUTER.match(line)
    if outer is None:
        return plain
    rest = line[outer.end() :]
    stream = _STREAM.match(rest)
    inside = _engine_only(rest, near, layers) or (_engine_only(rest[stream.end() :], near, layers) if stream else None)
    return plain if inside is None else around(plain, inside)


def _engine_only(rest: str, near: int, layers: int) -> Head | None:
    """The head inside a container's line whose stamp might be the message's own."""
    if rest[:1] == "(":
        return tagged(rest, near)
    if rest[:1] == "{":
        return _json(rest, near, layers - 1)
    if rest[:1] and rest[0] in "[IWEFDCT":
        return engine_head(rest, near)
    return plain_head(rest, near) if rest[:2] == "20" else None


def _named(line: str, near: int, layers: int) -> Head | None:
    """The name of a compose service, a syslog priority, or the journal's stamp, before another head."""
    if found := _RFC5424.match(line):
        time, resolution, zoned = stamp(found["stamp"], near)
        rest = line[found.end() :]
        pid = int(found["pid"]) if found["pid"].isdigit() and len(found["pid"]) < 10 else 0
        host = "" if found["host"] == "-" else found["host"]
        outer = Head(time, resolution, zoned, level_of(found["pri"]), "", pid, rest, host=host)
        return around(outer, _inside(rest, near, layers))
    priority = _RFC3164.match(line)
    body = line[priority.end() :] if priority else line
    if found := _JOURNAL.match(body):
        inside = _journal(found, body[found.end() :], near, layers)
        return inside._replace(level=inside.level or level_of(priority["pri"])) if priority else inside
    if found := _COMPOSE.match(line):
        return _of_host(line[found.end() :], found["name"], near, layers)
    return untimed_head(line)


def _of_host(rest: str, name: str, near: int, layers: int) -> Head:
    inside = head(rest, near, layers - 1)
    if inside is None:
        return Head(UNKNOWN, UNKNOWN, False, "", "", 0, rest, host=name)
    return inside._replace(host=inside.host or name)


def _journal(found: re.Match[str], rest: str, near: int, layers: int) -> Head:
    text = found["stamp"]
    if found["full"]:
        zone = found["zone"]
        text = found["full"] + ("Z" if zone in ("UTC", "GMT") else zone if zone[0] == "+" else "")
    time, resolution, zoned = unix_stamp(text) if "." in text and text[:9].isdigit() else stamp(text, near)
    outer = Head(time, resolution, zoned, "", "", int(found["pid"] or 0), rest, host=found["host"])
    return around(outer, _inside(rest, near, layers) or untimed_head(rest))


def _month(text: str) -> str:
    """``Nov 29 07:55:22`` as ``11-29 07:55:22``; a month that is none is the 0th, which no stamp accepts."""
    names = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    number = names.index(text[:3]) + 1 if text[:3] in names else 0
    return f"{number:02}-{text[4:].replace(' ', '0', 1) if text[4] == ' ' else text[4:]}"
