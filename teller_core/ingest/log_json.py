"""Log lines that are JSON objects: Python's formatters, and what others call the same things."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import count, unix_ns
from teller_core.ingest.jsonl import json_object, text_of
from teller_core.ingest.log_stamps import Head, stamp

TIMES = ("created", "timestamp", "time", "ts", "@timestamp", "asctime", "datetime", "date")
MESSAGES = ("message", "msg", "event", "log", "text")
LEVELS = ("levelname", "level", "severity", "lvl")
PIDS = ("process", "pid", "process_id")
NAMES = ("vllm_process_name", "processName", "process_name")


def json_head(line: str, near: int) -> Head | None:
    """The head of a JSON log line; None where it is no object with a message and a time.

    ``created`` is read to the digit; its resolution is a microsecond, or more where fewer digits are written.
    """
    row = json_object(line)
    if row is None:
        return None
    message = _first_text(row, MESSAGES)
    if message is None:
        return None
    time, resolution, zoned = _time(row, near)
    if time == UNKNOWN:
        return None
    for extra in ("exc_info", "exception", "stack_info"):
        if isinstance(row.get(extra), str):
            message += "\n" + row[extra]
    pid = next((n for key in PIDS if (n := count(row.get(key))) is not None and n < 1 << 31), 0)
    level = (_first_text(row, LEVELS) or "").upper()[:16]
    return Head(time, resolution, zoned, text_of(level), _name(row), pid, message)


def _time(row: Mapping[str, Any], near: int) -> tuple[int, int, bool]:
    for key in TIMES:
        value = row.get(key)
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return unix_ns(value), _resolution(value), True
        if isinstance(value, str):
            if re.fullmatch(r"\d{9,19}(?:\.\d{1,9})?", value):
                return unix_ns(value), _resolution(Decimal(value)), True
            return stamp(value[:64].strip(), near)
    return UNKNOWN, UNKNOWN, False


def _resolution(value: int | Decimal) -> int:
    """ns: one unit of the last digit, at least that of a float's microsecond, which drops closing zeros."""
    digits = value.adjusted() + 1 if isinstance(value, Decimal) else len(str(abs(value)))
    unit = 10**9 if digits <= 11 else 10**6 if digits <= 14 else 10**3 if digits <= 17 else 1
    return min(unit, 1000) if isinstance(value, Decimal) else unit


def _name(row: Mapping[str, Any]) -> str:
    """The process's name: the engine's own, with the number that multiprocessing gives workers."""
    for key in NAMES:
        name = row.get(key)
        if isinstance(name, str) and name not in ("", "MainProcess"):
            other = row.get("processName")
            numbered = isinstance(other, str) and other.startswith("VllmWorker-") and name.startswith("Worker")
            return text_of(other if numbered else name, 64)
    return ""


def _first_text(row: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((row[key] for key in keys if isinstance(row.get(key), str)), None)
