"""Tables of arrivals without answers: Mooncake's traces (JSON lines), Azure's LLM inference traces and BurstGPT (CSV).

They say when requests came and how many tokens they had; what they took is not in them, but for BurstGPT's ``Elapsed time``.
Mooncake's ``hash_ids`` name the blocks of a prompt: leading ones that an earlier request had could be found in a prefix cache.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from teller_core.data.records import ClientRecord, Metric
from teller_core.data.table import UNKNOWN
from teller_core.errors import FormatError
from teller_core.ingest.decimals import NS_PER_MS, NS_PER_S, few, scaled
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import file_lines, first_object, json_object
from teller_core.ingest.stamps import stamp

NAME = "arrivals"
MAX_BLOCKS = 20_000_000
"""Different blocks that are remembered: over 1 GB of them."""
MOONCAKE = frozenset({"timestamp", "input_length", "output_length"})
TIMES = ("timestamp",)
PROMPTS = ("contexttokens", "request tokens")
OUTPUTS = ("generatedtokens", "response tokens")
ELAPSED = "elapsed time"


def sniff(head: bytes) -> bool:
    """Whether it is a line of Mooncake's, or a header of one of the tables."""
    row = first_object(head)
    return row.keys() >= MOONCAKE if row is not None else _columns(head.split(b"\n", 1)[0]) is not None


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Client records that know when a request came, and its end only where the table says how long it took.

    Problems: ``bad_json``, ``bad_row``: one without a time. Blocks are counted in ``arrivals:blocks`` and
    ``arrivals:shared_blocks`` (those at the beginning of a prompt that an earlier one had). Errors: FormatError.
    """
    found = Found(clock="local")
    taker: Callable[[bytes], ClientRecord | None] | None = None
    blocks = _Blocks()
    for number, (line, skipped) in enumerate(file_lines(path), 1):
        if not line.strip() and not skipped:
            continue
        if taker is None:
            taker = _taker(line, found, blocks)
            if taker is None:
                raise FormatError(
                    path.name, "its first line names no columns that are known", "Keep the table's header"
                )
            if not line.lstrip().startswith(b"{"):
                found.events += 1
                found.other["header"] += 1
                continue
        found.events += 1
        record = None if skipped else taker(line)
        if record is None:
            found.problems["bad_row"] += 1
            continue
        found.kept += 1
        found.clients.append(record._replace(request=f"line{number}"))
    found.metrics += blocks.metrics()
    return found


def _taker(line: bytes, found: Found, blocks: "_Blocks") -> Callable[[bytes], ClientRecord | None] | None:
    """What makes records of the lines behind ``line``, the first; None where it is neither an object nor a known header."""
    if line.lstrip().startswith(b"{"):
        return lambda line: _mooncake(json_object(line), blocks)
    columns = _columns(line)
    return None if columns is None else lambda line: _row(_fields(line), columns, found)


class _Blocks:
    """Blocks of prompts seen so far."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.total = 0
        self.shared = 0

    def add(self, ids: object) -> None:
        """The blocks of the next prompt."""
        numbers = [one for one in cast("list[object]", ids) if type(one) is int] if isinstance(ids, list) else []
        self.total += len(numbers)
        self.shared += next((i for i, one in enumerate(numbers) if one not in self.seen), len(numbers))
        if len(self.seen) < MAX_BLOCKS:
            self.seen.update(numbers)

    def metrics(self) -> list[Metric]:
        """How many blocks there were, and how many of them were shared; none without any."""
        counts = (("blocks", self.total), ("shared_blocks", self.shared)) if self.total else ()
        return [Metric(UNKNOWN, f"arrivals:{name}", {}, float(count)) for name, count in counts]


def _mooncake(row: Mapping[str, Any] | None, blocks: _Blocks) -> ClientRecord | None:
    start = None if row is None else scaled(row.get("timestamp"), NS_PER_MS)
    if row is None or start is None or start < 0:
        return None
    blocks.add(row.get("hash_ids"))
    prompt, output = few(row.get("input_length")), few(row.get("output_length"))
    return ClientRecord("", start, UNKNOWN, prompt_tokens=prompt, output_tokens=output, clock="local")


def _columns(line: bytes) -> dict[str, int] | None:
    """The places of the columns that a header names; None where it names no time or no tokens."""
    places = {name.strip().strip("\ufeff").lower(): at for at, name in enumerate(_fields(line))}
    picked = {
        key: places[name]
        for key, names in (("time", TIMES), ("prompt", PROMPTS), ("output", OUTPUTS), ("elapsed", (ELAPSED,)))
        for name in names
        if name in places
    }
    return picked if {"time", "prompt", "output"} <= picked.keys() else None


def _fields(line: bytes) -> Sequence[str]:
    try:
        return next(csv.reader([line.decode("utf-8", "replace").rstrip("\r")]), ())
    except csv.Error:
        return ()


def _row(fields: Sequence[str], columns: Mapping[str, int], found: Found) -> ClientRecord | None:
    if len(fields) <= max(columns.values()):
        return None
    start, clock = _time(fields[columns["time"]].strip())
    if start == UNKNOWN:
        return None
    found.clock = clock
    took = scaled(fields[columns["elapsed"]].strip(), NS_PER_S) if "elapsed" in columns else None
    prompt, output = (few(scaled(fields[columns[name]].strip(), 1)) for name in ("prompt", "output"))
    end = start + took if took is not None and took > 0 else UNKNOWN
    return ClientRecord("", start, end, prompt_tokens=prompt, output_tokens=output, clock=clock)


def _time(text: str) -> tuple[int, str]:
    """(int ns, clock): a date, or seconds since the table begins."""
    seconds = scaled(text, NS_PER_S)
    if seconds is not None:
        return (seconds, "local") if seconds >= 0 else (UNKNOWN, "local")
    time, _, zoned = stamp(text, 0)
    return time, "unix" if zoned else "wall"
