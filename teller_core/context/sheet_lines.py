"""Log lines as a part of a sheet: what was said in a stretch of time, the most telling lines of it."""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from teller_core.data.sheet_parts import PARTS, SAID_NUMBERS, Said, no_rows
from teller_core.data.steps import Lines
from teller_core.data.table import UNKNOWN, Float32, Int64, Mask

LONGEST = 160
"""Characters of a line that are kept: what it is about stands at its beginning."""
LOUD = ("WARNING", "WARN", "ERROR", "CRITICAL", "FATAL")
NAMES = re.compile(r"\b(?:\w+-)*(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{6,}\b(?:-[0-9a-z]+)*|\b0x[0-9a-fA-F]+\b")
"""Names that somebody made up for one request, one object: they say nothing about any other."""
NUMBER = re.compile(r"(?:(?<!\w)[-+])?\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?", re.I)
REPEATED = 2
"""Lines that say the same but for numbers: what steps and requests count is known without them."""
MOST_LOOKED_AT = 4000
"""Lines of a stretch: of more those at its beginning are enough to choose from."""


def said_between(lines: Lines, low: int, high: int, own: Int64) -> Said:
    """What was said from ``low`` to ``high`` (ns) and, whenever it was, in the rows ``own``, which name what the sheet is of.
    Lines that name another request are left out. First come those that name it, then loud ones, then known ones, then rare ones.
    """
    timed = lines.time[: bisect_left(range(len(lines.time)), x=True, key=lambda at: int(lines.time[at]) == UNKNOWN)]
    first, last = np.searchsorted(timed, [low, high + 1]).tolist()
    during = np.arange(first, min(last, first + MOST_LOOKED_AT), dtype=np.int64)
    own = own[:MOST_LOOKED_AT]
    during = during[lines.request[during] < 0]
    rows: Int64 = np.union1d(during, own).astype(np.int64)
    text = [words(lines.untrusted_text[row]) for row in map(int, rows)]
    mine = np.isin(rows, own)
    chosen = sorted(_telling(lines, rows, text, mine)[: PARTS["said"]])
    if not chosen:
        return no_rows(Said)
    kept = [int(rows[at]) for at in chosen]
    time = np.where(lines.time[kept] != UNKNOWN, lines.time[kept], high)
    return Said(
        line=np.array(kept, np.int32),
        rule=[lines.rule[row] for row in kept],
        level=[lines.level[row] for row in kept],
        untrusted_text=[text[at] for at in chosen],
        begin=np.clip((time - low) / max(high - low, 1), 0.0, 1.0).astype(np.float32),
        own=mine[chosen].astype(np.uint8),
        numbers=np.stack([_numbers(lines.fields[row], lines.untrusted_text[row]) for row in kept]),
    )


@lru_cache(maxsize=8192)
def words(text: str) -> str:
    """``text`` on one line without what differs from one request to the next: names as ``*``, numbers as ``#``."""
    plain = text[: 4 * LONGEST]
    if not plain.isprintable():
        plain = "".join(letter if letter.isprintable() else " " for letter in plain)
    return NUMBER.sub("#", NAMES.sub("*", plain))[:LONGEST].strip()


def _telling(lines: Lines, rows: Int64, text: Sequence[str], mine: Mask) -> list[int]:
    """The positions of ``rows``, the most telling one first: of lines that say the same no more than REPEATED."""
    often = Counter(text)
    seen: Counter[str] = Counter()
    keys: list[tuple[int, int, int, int, int, int]] = []
    for at, row in enumerate(map(int, rows)):
        loud = lines.level[row].upper() in LOUD
        if seen[text[at]] < REPEATED:
            keys.append((seen[text[at]], -int(mine[at]), -int(loud), -int(bool(lines.rule[row])), often[text[at]], at))
        seen[text[at]] += 1
    return [key[-1] for key in sorted(keys)]


@lru_cache(maxsize=8192)
def _numbers(fields: str, text: str) -> Float32:
    """float32 [SAID_NUMBERS]: signed log1p of the first numbers that a line's rule knows, else of those in its words; NaN."""
    out = np.full(SAID_NUMBERS, np.nan, np.float32)
    given = [*_known(fields)] or [*_written(text)]
    for at, value in enumerate(given[:SAID_NUMBERS]):
        out[at] = np.sign(value) * np.log1p(abs(value))
    return out


def _known(fields: str) -> Iterator[float]:
    try:
        said: object = json.loads(fields) if fields else {}
    except (ValueError, RecursionError):
        return
    if not isinstance(said, dict):
        return
    for value in cast("dict[str, object]", said).values():
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
            yield float(value)


def _written(text: str) -> Iterator[float]:
    for found in NUMBER.finditer(NAMES.sub("*", text[: 4 * LONGEST])):
        value = float(found[0].replace("_", ""))
        if abs(value) < 1e15:
            yield value
