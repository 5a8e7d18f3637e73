"""Log lines that are JSON objects: of formatters, containers, journals and collectors, who have many names for one thing."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import count, unix_ns
from teller_core.ingest.jsonl import as_object, json_object, text_of
from teller_core.ingest.stamps import Head, stamp

TIMES = (
    *("created", "timestamp_ns", "timestamp", "time", "ts", "@timestamp", "asctime", "datetime", "date"),
    *("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP", "receiveTimestamp"),
)
MESSAGES = ("message", "msg", "event", "log", "text", "line", "MESSAGE", "textPayload", "@message")
LEVELS = ("levelname", "level", "severity", "lvl", "PRIORITY")
PIDS = ("process", "pid", "process_id", "_PID", "SYSLOG_PID")
NAMES = ("vllm_process_name", "processName", "process_name")
HOSTS = ("pod", "pod_name", "_HOSTNAME", "hostname", "instance", "container_name", "logStreamName")
NESTED = ("kubernetes", "labels", "stream", "resource")
"""Objects in which collectors name the pod or the machine."""
_NUMBER = re.compile(r"\d{9,19}(?:\.\d{1,9})?")
_PRIORITIES = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARNING", "INFO", "INFO", "DEBUG")


def json_head(line: str, near: int) -> Head | None:
    """The head of a JSON log line; None where it is no object with a message and a time."""
    row = json_object(line)
    return None if row is None else row_head(row, near)


def row_head(row: Mapping[str, Any], near: int) -> Head | None:
    """The head of a line that is the object ``row``; None where it has no message or no time.

    A number of seconds is read to the digit; its resolution is a microsecond, or more where fewer digits are written.
    """
    payload = as_object(row.get("jsonPayload"))
    message = _message(row) or _message(payload)
    if message is None:
        return None
    time, resolution, zoned = _time(row, near)
    if time == UNKNOWN:
        return None
    whole = message.rstrip("\r\n")
    for extra in ("exc_info", "exception", "exc_text", "stack_info"):
        if isinstance(row.get(extra), str):
            whole += "\n" + row[extra]
    pid = next((n for key in PIDS if (n := _pid(row.get(key))) is not None), 0)
    level = (_first_text(row, LEVELS) or _first_text(payload, LEVELS) or "").upper()[:16]
    if level.isascii() and level.isdigit():
        level = _PRIORITIES[int(level) & 7]
    cut = isinstance(row.get("log"), str) and "stream" in row and len(message) >= SPLIT and not message.endswith("\n")
    return Head(time, resolution, zoned, text_of(level), _name(row), pid, _told(row, whole), _host(row), part=cut)


SPLIT = 16_000
"""Docker cuts a line after 16 KiB and ends the pieces but for the last without a line break."""


def _message(row: Mapping[str, Any]) -> str | None:
    """The text of a row. The journal writes text with bytes that do not print as a list of numbers."""
    message = _first_text(row, MESSAGES)
    if message is not None:
        return message
    listed = row.get("MESSAGE")
    if isinstance(listed, list) and all(type(byte) is int and 0 <= byte < 256 for byte in cast("list[object]", listed)):
        return bytes(cast("list[int]", listed)).decode("utf-8", "replace")
    return None


def _told(row: Mapping[str, Any], message: str) -> str:
    """The message with what its producer says in fields beside it, in the form in which it writes text."""
    span = as_object(row.get("span"))
    if isinstance(span.get("name"), str):
        fields = "".join(f' {key}="{value}"' for key, value in span.items() if key != "name" and isinstance(value, str))
        return f"{span['name']}{{{fields[1:]}}}: {_rust_place(row)}{message}"
    if isinstance(row.get("target"), str) and isinstance(row.get("filename"), str):
        return f"{_rust_place(row)}{message}"
    task = next((n for key in ("id_task", "task_id") if (n := count(row.get(key))) is not None), None)
    if task is not None and isinstance(row.get("function"), str):
        slot = next((n for key in ("id_slot", "slot_id") if (n := count(row.get(key))) is not None), -1)
        return f"slot {row['function']}: id {slot} | task {task} | {message}"
    if isinstance(row.get("deployment"), str) and isinstance(row.get("replica"), str):
        request = f" {row['request_id']}" if isinstance(row.get("request_id"), str) else ""
        return f"{row['deployment']} {row['replica']}{request} {message}"
    return message


def _rust_place(row: Mapping[str, Any]) -> str:
    target, file, line = (row.get(key) for key in ("target", "filename", "line_number"))
    if not isinstance(target, str):
        return ""
    return f"{target}: {file}:{line}: " if isinstance(file, str) else f"{target}: "


def _pid(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    number = count(value)
    return number if number is not None and number < 1 << 31 else None


def _time(row: Mapping[str, Any], near: int) -> tuple[int, int, bool]:
    for key in TIMES:
        value = row.get(key)
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return unix_ns(value), _resolution(value), True
        if isinstance(value, str):
            if _NUMBER.fullmatch(value):
                whole = value.isdigit()
                return (
                    unix_ns(int(value) if whole else value),
                    _resolution(int(value) if whole else Decimal(value)),
                    True,
                )
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


def _host(row: Mapping[str, Any]) -> str:
    nested = [as_object(row.get(key)) for key in NESTED]
    nested += [as_object(inner.get("labels")) for inner in nested]
    return next((text_of(name, 128) for each in (row, *nested) if (name := _first_text(each, HOSTS))), "")


def _first_text(row: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((row[key] for key in keys if isinstance(row.get(key), str)), None)
