"""A glance at what a recording's processes left: how often each kind of event, and when the last was. No event is kept."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from teller_core.collect.finished import regular_files

RARE = ("hooks_disabled", "hook_error", "profile_lost", "profile_refused")
"""Instants that are looked into."""
STEPS = ("vllm.schedule", "cb.prepare")
_EVENT = re.compile(rb'"t": ?(\d{1,19}).*?"name": ?"([^"]{1,64})"')
_STATS = re.compile(rb'\{"k": ?"([SFC])","t": ?(\d{1,19})')
LONGEST_LINE = 1 << 20


@dataclass
class Glance:
    """``names``: events by name; a row of vLLM's own statistics is ``stats.S`` (a step), ``stats.F`` (a finished request),
    and ``stats.counted`` one of a step that says what was in it."""

    names: Counter[str] = field(default_factory=Counter[str])
    rare: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    last: int = 0
    """Unix ns of the last event, ``last_step`` of the last step; 0 without any."""
    last_step: int = 0
    cut: list[str] = field(default_factory=list[str])
    """Files whose last line is not whole."""
    cost: dict[str, Any] = field(default_factory=dict[str, Any])
    """The last row in which the stat logger tells what it took and lost."""
    files: int = 0


def glance(cap: Path) -> Glance:
    """What lies in the folder ``cap`` where a recording's processes wrote."""
    seen = Glance()
    for path in regular_files(cap, "host-*.jsonl"):
        _events(seen, path)
    for path in regular_files(cap, "stats-*.jsonl"):
        _stats(seen, path)
    return seen


def _lines(seen: Glance, path: Path) -> Iterator[bytes]:
    seen.files += 1
    line = b"\n"
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            if not line.endswith(b"\n"):
                seen.cut.append(path.name)
                return
            yield line


def _events(seen: Glance, path: Path) -> None:
    for line in _lines(seen, path):
        found = _EVENT.search(line)
        if found is None:
            continue
        time, name = int(found[1]), found[2].decode("utf-8", "replace")
        seen.names[name] += 1
        seen.last = max(seen.last, time)
        if name in STEPS:
            seen.last_step = max(seen.last_step, time)
        elif name in RARE:
            seen.rare += _object(line)


def _stats(seen: Glance, path: Path) -> None:
    for line in _lines(seen, path):
        found = _STATS.match(line)
        if found is None:
            continue
        kind, time = found[1].decode(), int(found[2])
        seen.last = max(seen.last, time)
        if kind == "C":
            seen.cost = next(iter(_object(line)), seen.cost)
        else:
            seen.names[f"stats.{kind}"] += 1
            seen.names["stats.counted"] += kind == "S" and b'"step":' in line
            seen.last_step = max(seen.last_step, time)


def _object(line: bytes | str) -> list[dict[str, Any]]:
    """The JSON object of a line, or nothing."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return [cast("dict[str, Any]", value)] if isinstance(value, dict) else []
