"""What of a recording there would be at each tier: a folder of files in, a folder of files out.

== ================================================================================================================
T0 the log as the engine prints it by default: vLLM's as text with whole seconds; ``/metrics`` pages where there are any
T1 and a record of each request: the caller's rows, and of vLLM what a span of a request tells
T2 and a line a step, of engines that can log one (vLLM), and what our stat logger counts of it, exactly timed
T3 and all that our recorder writes all the time: decisions, executions, pauses, counters, the log with microseconds
T4 and windows of a profiler
== ================================================================================================================
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

TIERS = range(5)
STEP_LINE = re.compile(r"\bEngine \d+: Iteration\(\d+\)")
FROM: tuple[tuple[str, int], ...] = (
    ("metrics*", 0),
    ("server*.log", 0),
    ("client*.jsonl", 1),
    ("stats-*.jsonl", 1),
    ("torch-*", 4),
    ("cupti-*", 4),
)
"""The lowest tier at which there is such a file; any other that the recorder writes is there from RECORDED on."""
COUNTED = 2
"""From here on steps are counted, in the log and by our stat logger."""
RECORDED = 3
NOTHING = ("PROFILE", "CUPTI", "vllm-logging.json", ".*")
"""What steers a recorder, and what nobody reads."""
OF_FINISHED = ("P", "F")
"""Rows of our stat logger that tell of requests: the beginning of a file, and a finished one."""
OF_FIRST = ("k", "t", "e", "at", "first")
"""What a step's row tells of requests: when a first token came."""


def at_tier(bundle: Path, tier: int, target: Path) -> None:
    """Write into the new folder ``target`` the files of ``bundle`` that there would be at ``tier``, as they would be."""
    target.mkdir(parents=True)
    for path in sorted(each for each in bundle.rglob("*") if each.is_file()):
        if any(path.match(pattern) for pattern in NOTHING) or tier < _first(path):
            continue
        to = target / path.relative_to(bundle)
        to.parent.mkdir(parents=True, exist_ok=True)
        if (change := _change(path, tier)) is not None:
            with path.open(errors="replace") as source, to.open("w") as copy:
                copy.writelines(change(source))
            about = path.stat()
            os.utime(to, ns=(about.st_atime_ns, about.st_mtime_ns))  # a log without a year takes it from there
        else:
            shutil.copy2(path, to)


def _first(path: Path) -> int:
    return next((tier for pattern, tier in FROM if path.match(pattern)), RECORDED)


def _change(path: Path, tier: int) -> Callable[[Iterator[str]], Iterator[str]] | None:
    """How the lines of a file are others at ``tier`` than they were recorded, None where they are not."""
    if path.match("server*.log") and tier < RECORDED:
        return partial(_as_printed, with_steps=tier >= COUNTED)
    return _of_requests if path.match("stats-*.jsonl") and tier < COUNTED else None


def _as_printed(lines: Iterator[str], *, with_steps: bool) -> Iterator[str]:
    """The log of vLLM as it is without a configuration of its own; lines of others as they are."""
    for line in lines:
        said = _said(line)
        if said is None:
            yield line
        elif with_steps or not STEP_LINE.search(said["message"]):
            yield from _printed(said)


def _said(line: str) -> dict[str, Any] | None:
    """A record of the log's JSON, None for a line that is none."""
    try:
        said: dict[str, Any] = json.loads(line) if line.startswith("{") else {}  # what begins so is an object
    except ValueError:
        return None
    return said if {"created", "message", "levelname"} <= said.keys() else None


def _printed(said: dict[str, Any]) -> Iterator[str]:
    """vLLM 0.32: ``(NAME pid=N) LEVEL MONTH-DAY HH:MM:SS [FILE:LINE] MESSAGE``, before each line of a message. In UTC."""
    stamp = datetime.fromtimestamp(said["created"], UTC).strftime("%m-%d %H:%M:%S")
    where = f"[{said.get('filename', '')}:{said.get('lineno', 0)}]"
    head = f"({said.get('vllm_process_name', 'APIServer')} pid={said.get('process', 0)}) "
    for line in said["message"].split("\n"):
        yield f"{head}{said['levelname']} {stamp} {where} {line}\n"


def _of_requests(lines: Iterator[str]) -> Iterator[str]:
    """What our stat logger says of requests, as a span of each would: nothing of steps."""
    for line in lines:
        try:
            row: dict[str, Any] = json.loads(line)
        except ValueError:
            continue  # the last one, of a process that was ended
        if row.get("k") in OF_FINISHED:
            yield line
        elif row.get("first"):
            yield json.dumps({name: row[name] for name in OF_FIRST if name in row}, separators=(",", ":")) + "\n"
