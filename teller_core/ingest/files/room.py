"""What this process may use of its machine: processors and memory, as its control group and its affinity allow."""

import os
from collections.abc import Iterator
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
MEMORY = Path("/proc/meminfo")
UNBOUNDED = 1 << 50
"""Bytes: more than any machine has. What stands for no limit in version 1 of control groups is more."""


def cores() -> int:
    """How many processors this process may keep busy, at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = [quota for folder in _groups() if (quota := _quota(folder)) is not None]
    return max(1, min([allowed, *shares]))


def memory() -> int:
    """Bytes that may be taken now: what the machine has left, or less where a control group allows less."""
    left = [rest for folder in _groups() if (rest := _left(folder)) is not None]
    return max(0, min([_available(), *left]))


def _groups() -> Iterator[Path]:
    """The folders of the control groups this process is in, from its own up to the root, of either version."""
    for line in _text(OWN).splitlines():
        _, kinds, where = line.split(":", 2) if line.count(":") >= 2 else ("", "none", "")
        roots = [GROUPS] if not kinds else [GROUPS / kinds] if {"cpu", "memory"} & set(kinds.split(",")) else []
        for root in roots:
            own = root / where.strip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(root))


def _quota(folder: Path) -> int | None:
    """Whole processors that ``folder`` allows, None for no limit."""
    words = _text(folder / "cpu.max").split() or [_text(folder / f"cpu.cfs_{what}_us") for what in ("quota", "period")]
    if len(words) != 2 or not all(word.strip().isdecimal() for word in words) or not int(words[1]):
        return None
    return max(1, int(words[0]) // int(words[1]))


def _left(folder: Path) -> int | None:
    """Bytes that ``folder`` still allows, None for no limit. Pages of files give way and are not counted as used."""
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, now = _text(folder / limit).strip(), _text(folder / used).strip()
        if most.isdecimal() and now.isdecimal() and int(most) < UNBOUNDED:
            return int(most) - int(now) + _named(_text(folder / "memory.stat"), cache)
    return None


def _available() -> int:
    return 1024 * _named(_text(MEMORY).replace(":", ""), "MemAvailable") or UNBOUNDED


def _named(text: str, name: str) -> int:
    """The number that follows ``name`` on a line of ``text``, 0 where there is none."""
    found = (line.split() for line in text.splitlines() if line.startswith(f"{name} "))
    return next((int(words[1]) for words in found if len(words) > 1 and words[1].isdecimal()), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
