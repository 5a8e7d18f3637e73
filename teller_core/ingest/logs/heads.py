"""The beginnings of log lines: who wrote the line, when, how exactly that is known, and on which clock.

Engines and their libraries put a stamp first (here); containers, journals and collectors put another before it, or a JSON
object around it (:mod:`envelopes`, :mod:`json_heads`).
"""

import re

from teller_core.data.table import UNKNOWN
from teller_core.ingest.stamps import Head, stamp, unix_stamp

_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)"
TAG = re.compile(r"\((?P<tag>[\w :.=/\[\]-]{1,96}?) pid=(?P<pid>\d{1,9})(?:, ip=[\d.]+)?\) ?")
_VLLM = re.compile(
    _LEVEL + r" (?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?) \[?(?P<file>[\w/.-]+):\d+\]? ?(?P<message>.*)",
    re.DOTALL,
)
ISO = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d\b)?"
_BRACKET = re.compile(
    rf"\[(?P<stamp>{ISO}|\d\d:\d\d:\d\d)(?P<tag>(?: [A-Z_]+\d+)*)\]:? *(?:(?:\w+ )?{_LEVEL}:? +)?(?P<message>.*)",
    re.DOTALL,
)
_TRTLLM = re.compile(
    r"\[(?P<stamp>\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\] \[TRT-LLM\] (?:\[RANK (?P<tag>\d+)\] )?\[(?P<letter>\w)\] ?(?P<message>.*)",
    re.DOTALL,
)
_GLOG = re.compile(
    r"(?:\[rank(?P<rank>\d{1,6})\]:)?\[?(?P<letter>[IWEF])(?P<stamp>\d{3,4} \d\d:\d\d:\d\d\.\d{1,9}) +(?:(?P<pid>\d{1,9}) )?"
    r"(?P<file>[\w/.<>-]+:\d+)\] ?(?P<message>.*)",
    re.DOTALL,
)
_PLAIN = re.compile(rf"(?:{_LEVEL}:? +)?(?:USDT:)?(?P<stamp>{ISO})(?P<rest>.*)", re.DOTALL)
_AFTER = re.compile(
    rf" *(?:[-|:] *)?(?:(?P<pid>\d{{2,9}})(?::\d+)? )?(?:\[?{_LEVEL}\]?\b:?)? *(?:- +)?(?P<message>.*)", re.DOTALL
)
_UVICORN = re.compile(_LEVEL + r": {2,}(?P<message>.*)", re.DOTALL)
_NCCL = re.compile(r"[\w.-]{1,64}:(?P<pid>\d{1,9}):\d{1,9} \[\d+\] NCCL (?P<level>INFO|WARN|TRACE) ")
_ELAPSED = re.compile(
    r"(?P<minutes>\d{1,7})\.(?P<seconds>\d\d)\.(?P<ms>\d{3})\.(?P<us>\d{3}) (?P<letter>[IWEDV]) (?P<message>.*)",
    re.DOTALL,
)
"""llama.cpp's time since its start."""
_LLAMA = re.compile(
    r"(?P<level>INFO|WARN|ERR|VERB) (?P<message>\[ *\w+\] .*? \| .*?\btimestamp=(?P<stamp>\d{9,11})\b.*)", re.DOTALL
)
"""llama.cpp up to 2024 and ik_llama.cpp: the stamp stands among the fields behind the text."""
_LETTERS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL", "D": "DEBUG", "V": "DEBUG"}
_LLAMA_LEVELS = {"INFO": "INFO", "WARN": "WARNING", "ERR": "ERROR", "VERB": "DEBUG"}


def tagged(line: str, near: int) -> Head | None:
    """The head of a line that begins with its process's name for itself; None where it does not."""
    found = TAG.match(line)
    if found is None:
        return None
    rest, tag, pid = line[found.end() :], found["tag"], int(found["pid"])
    if rest.find(":  ", 3, 12) < 0 and (usual := _VLLM.match(rest)) is not None:
        return Head(*stamp(usual["stamp"], near), usual["level"], tag, pid, usual["message"])
    inner = engine_head(rest, near) or plain_head(rest, near)
    if inner is None:
        return Head(UNKNOWN, UNKNOWN, False, "", tag, pid, rest)
    return inner._replace(tag=tag, pid=pid)


def engine_head(line: str, near: int) -> Head | None:
    """The stamps that engines and their libraries write."""
    match line[:1]:
        case "[":
            return _bracketed(line, near)
        case "I" | "W" | "E" | "F" | "D" | "C" | "T" | "V":
            return _lettered(line, near)
        case first if first.isdigit():
            return _elapsed(line)
        case _:
            return untimed_head(line)


def _lettered(line: str, near: int) -> Head | None:
    if line.find(":  ", 3, 12) > 0:
        return untimed_head(line)
    if line[1:2].isdigit():
        found = _GLOG.match(line)
        return None if found is None else _glog(found, near)
    if found := _VLLM.match(line):
        return Head(*stamp(found["stamp"], near), found["level"], "", 0, found["message"])
    if "timestamp=" in line and (found := _LLAMA.match(line)):
        return Head(*unix_stamp(found["stamp"]), _LLAMA_LEVELS[found["level"]], "", 0, found["message"])
    return untimed_head(line)


def _bracketed(line: str, near: int) -> Head | None:
    if found := _BRACKET.match(line):
        uvicorn = _UVICORN.match(found["message"])
        message = uvicorn["message"] if uvicorn else found["message"]
        return Head(*stamp(found["stamp"], near), found["level"] or "", found["tag"].strip(), 0, message)
    if found := _GLOG.match(line):
        return _glog(found, near)
    if found := _TRTLLM.match(line):
        tag = f"RANK{found['tag']}" if found["tag"] else ""
        return Head(*stamp(found["stamp"], near), _LETTERS.get(found["letter"], ""), tag, 0, found["message"])
    return None


def _glog(found: re.Match[str], near: int) -> Head:
    """Triton quotes its messages since 2024."""
    message = found["message"]
    if len(message) > 1 and message[0] == message[-1] == '"':
        message = message[1:-1]
    tag = f"rank{found['rank']}" if found["rank"] else ""
    return Head(*stamp(found["stamp"], near), _LETTERS[found["letter"]], tag, int(found["pid"] or 0), message)


def _elapsed(line: str) -> Head | None:
    found = _ELAPSED.match(line)
    if found is None:
        return None
    minutes, seconds, ms, us = (int(found[name]) for name in ("minutes", "seconds", "ms", "us"))
    time = (((minutes * 60 + seconds) * 1000 + ms) * 1000 + us) * 1000
    return Head(time, 1000, False, _LETTERS[found["letter"]], "", 0, found["message"], local=True)


def plain_head(line: str, near: int) -> Head | None:
    """A date and a time in front: Python's default, Ray, the tracing of Rust."""
    found = _PLAIN.match(line)
    if found is None:
        return None
    rest = found["rest"]
    after = _AFTER.fullmatch(rest)
    time, resolution, zoned = stamp(found["stamp"], near)
    if after is None:
        return Head(time, resolution, zoned, found["level"] or "", "", 0, rest.strip())
    level = after["level"] or found["level"] or ""
    return Head(time, resolution, zoned, level, "", int(after["pid"] or 0), after["message"])


def untimed_head(line: str) -> Head | None:
    """Known forms that carry no time."""
    if found := _UVICORN.match(line):
        return Head(UNKNOWN, UNKNOWN, False, found["level"], "", 0, found["message"])
    if " NCCL " in line and (found := _NCCL.match(line)):
        level = "WARNING" if found["level"] == "WARN" else found["level"]
        return Head(UNKNOWN, UNKNOWN, False, level, "", int(found["pid"]), line)
    return None
