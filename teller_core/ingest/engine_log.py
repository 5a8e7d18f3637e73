"""Logs of engines and of what stands around them: plain text, JSON lines, or both in one file.

Every physical line is counted: the first of a record as kept, others by what they are: ``continuation``, ``blank``,
``progress``.
"""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from teller_core.data.records import LogLine, Process
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_S
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import lines, text_of
from teller_core.ingest.log_facts import Line, tell
from teller_core.ingest.log_json import json_head
from teller_core.ingest.log_patterns import Known, recognize, recognize_numbers
from teller_core.ingest.log_stamps import TAG, Head, head
from teller_core.ingest.redact import MAX_SCANNED, MAX_TEXT, Cleaned, shorten, strip, unclosed, visible
from teller_core.ingest.source import open_source

NAME = "engine_log"
MAX_RECORD = MAX_SCANNED
MAX_UNKNOWN = 300_000
"""Lines that no pattern knows are kept up to this number a file, then counted: ``unknown_line_over_limit``."""
QUARTER_HOUR = 900 * NS_PER_S
WIDEST_ZONE = 56
"""Quarters of an hour: no zone is over 14 hours from Greenwich."""
_PROGRESS = re.compile(r"(?<!\d)\d{1,6}%(?:\||.{0,80}?\d/\d{1,12} ?\[)|(?<!\d)\d{1,12}[A-Za-z]{0,12} \[\d\d:\d\d, ")
_DONE = re.compile(r"100%(?:\||.{0,80}?\d/\d{1,12} ?\[)")
_BAR_END = re.compile(r"\] ?(?=[\[({\dDIWEFCT])")
_GOES_ON = re.compile(
    r"[\s)}\]]|[\w.]*(?:Error|Exception|Interrupt|Exit)(?::|$)|During handling of|The above exception"
)
_WORKER = re.compile(r"(?:\w*Worker\w*?)(?:[_-](?:TP|DP|PP)?(?P<rank>\d+))?$")


def sniff(head_bytes: bytes) -> bool:
    """Whether it is text with at least one line that begins as a log line does, or is known."""
    if b"\x00" in head_bytes:
        return False
    text = head_bytes.decode("utf-8", "replace")
    if text.count("\ufffd") > len(text) // 100 + 4:
        return False
    some = re.split(r"[\r\n]+", text)[:400]
    return any(_beginning(line, 0) for line in some if len(line) < MAX_RECORD)


class _Open(NamedTuple):
    """A record whose lines still come."""

    head: Head
    number: int
    parts: list[str]


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Log lines, and the iterations and requests they tell of.

    Times without a zone are read as UTC: the file's clock is then ``wall``, unless other lines of it have a zone: these
    tell the offset. Problems: ``line_too_long``, ``bad_stamp``, ``line_of_unknown_zone``, ``implausible_duration``,
    ``cut_iteration_line``, ``unknown_line_over_limit``.
    """
    found = Found()
    log = _Log(found, place)
    with open_source(path) as source:
        for number, (raw, skipped) in enumerate(lines(source), 1):
            found.events += 1
            if skipped:
                found.problems["line_too_long"] += 1
            log.add(raw.decode("utf-8", "replace"), number)
            if progress is not None and number % 20_000 == 0:
                progress(source.on_disk)
    log.close()
    _one_clock(found, log.zoned)
    found.processes += [_with_role(place.host, pid, tag) for pid, tag in log.tags.items()]
    return found


class _Log:
    """The state of reading one log: the record that is open, the last time seen, processes by pid."""

    def __init__(self, found: Found, place: Place) -> None:
        self.found = found
        self.place = place
        self.open: _Open | None = None
        self.in_prompt: bool | None = None
        """Whether the open record holds a prompt that has not ended, so that nothing of its further lines may be kept.
        None where nobody has asked."""
        self.last = UNKNOWN
        self.main = 0
        self.tags: dict[int, str] = {}
        self.processes: dict[tuple[int, str], Process] = {}
        self.zoned: list[bool | None] = []
        self.unknown = 0

    def add(self, raw: str, number: int) -> None:
        """One physical line."""
        text = _without_progress(raw.rstrip("\r"), self.place.near)
        heads = None if text is None else _beginning(text, self.place.near)
        if text is None or not (text if heads is None else heads.message).strip():
            self.found.other["progress" if text is None else "blank"] += 1
        elif self._continues(text, heads):
            self.found.other["continuation"] += 1
        else:
            self.close()
            heads = heads or Head(UNKNOWN, UNKNOWN, False, "", "", 0, text)
            self.open = _Open(heads, number, [heads.message])

    def _continues(self, text: str, heads: Head | None) -> bool:
        """Whether the line belongs to the open record; if so it is added, unless it is the rest of a prompt."""
        if self.open is None:
            return False
        first, parts = self.open.head, self.open.parts
        message = text
        if heads is not None:
            message = heads.message
            if not _GOES_ON.match(message):
                return False
            if heads[:6] != first[:6] or (heads.tag == "" and heads.time == UNKNOWN):
                return False
        if self.in_prompt is None:
            self.in_prompt = unclosed(first.message)
        if heads is None and not self.in_prompt and not _GOES_ON.match(text):
            return False
        if not self.in_prompt and sum(map(len, parts)) < MAX_RECORD:
            parts.append(message)
        return True

    def close(self) -> None:
        """End the open record."""
        if self.open is None:
            return
        opened, self.open, self.in_prompt = self.open, None, None
        message = "\n".join(opened.parts)
        known = recognize_numbers(message) if len(opened.parts) == 1 else None
        if known is not None:
            cleaned = Cleaned(shorten(visible(message), MAX_TEXT), 0)
        else:
            bare = strip(message, salt=self.place.salt)
            known = recognize(bare.text)
            whole = strip(message, keep_prompts=True) if self.place.keep_prompts else bare
            cleaned = whole._replace(text=shorten(whole.text, MAX_TEXT))
        self.unknown += known is None
        if known is None and self.unknown > MAX_UNKNOWN:
            self.found.problems["unknown_line_over_limit"] += 1
        else:
            self._keep(opened, known, cleaned)

    def _keep(self, opened: _Open, known: Known | None, cleaned: Cleaned) -> None:
        found, first = self.found, opened.head
        rule, fields = (known.pattern.id, known.fields) if known else ("", {})
        if rule == "uvicorn.started":
            self.main = int(fields["pid"][:9])
        borrowed = first.time == UNKNOWN
        if borrowed and first.resolution != UNKNOWN:
            found.problems["bad_stamp"] += 1
        self.last = time = self.last if borrowed else first.time
        resolution = UNKNOWN if borrowed else first.resolution
        process = self._process(first.pid or (self.main if not first.tag else 0), first.tag)
        found.kept += 1
        found.redactions += cleaned.redactions
        text, file, number = cleaned.text, self.place.file, opened.number
        found.lines.append(LogLine(process, time, resolution, first.level, rule, fields, text, file, number))
        self.zoned.append(None if borrowed else first.zoned)
        if rule:
            producer = rule.partition(".")[0]
            if producer in ("vllm", "sglang"):
                found.engine = found.engine or producer
            tell(found, rule, fields, Line(process, time, resolution, _engine(first.tag), len(found.lines) - 1))

    def _process(self, pid: int, tag: str) -> Process:
        key = pid, tag
        if key not in self.processes:
            self.processes[key] = _with_role(self.place.host, pid, tag)
            if pid and (tag or pid not in self.tags):
                self.tags[pid] = tag
        return self.processes[key]


def _beginning(text: str, near: int) -> Head | None:
    if text[:1] == "{":
        return json_head(text, near)
    return head(visible(text) if "\x1b" in text else text, near)


def _without_progress(text: str, near: int) -> str | None:
    """What follows the last carriage return; None for a progress bar that has not reached its end.

    A bar may stand behind the process's tag, and a record behind the bar.
    """
    if "\r" not in text and "<" not in text and "it/s" not in text:
        return text
    tag = TAG.match(text)
    front, rest = (tag[0], text[tag.end() :]) if tag else ("", text)
    if "\r" in rest:
        parts = [part for part in rest.split("\r") if part.strip()]
        rest = next((part for part in reversed(parts) if not _PROGRESS.search(part)), parts[-1] if parts else "")
    bar = _PROGRESS.search(rest)
    if bar is None:
        return front + rest
    for end in _BAR_END.finditer(rest, bar.end()):
        if _beginning(rest[end.end() :], near) is not None:
            return front + rest[end.end() :]
    return front + rest if _DONE.search(rest) else None


def _with_role(host: str, pid: int, tag: str) -> Process:
    """A process by the name it gives itself."""
    tag = text_of(tag, 64)
    if tag.startswith("APIServer"):
        return Process(host, pid, "frontend")
    if tag.startswith("EngineCore"):
        return Process(host, pid, "engine")
    if match := _WORKER.match(tag):
        return Process(host, pid, "worker", int(match["rank"][:6]) if match["rank"] else None)
    ranks = re.findall(r"\bTP(\d{1,6})", tag)
    return Process(host, pid, "engine" if ranks else "unknown", int(ranks[0]) if ranks else None)


def _engine(tag: str) -> int:
    match = re.search(r"(?:DP|EngineCore_)(\d{1,6})", tag)
    return int(match[1]) if match else 0


def _one_clock(found: Found, zoned: list[bool | None]) -> None:
    """Put lines of a clock without zone on the Unix clock where neighbors with a zone tell the offset."""
    kinds = Counter(zoned)
    if not kinds[False]:
        found.clock = "unix" if kinds[True] else "local"
        return
    if not kinds[True]:
        found.clock = "wall"
        return
    shift = _offset(found.lines, zoned)
    if shift is None:
        found.problems["line_of_unknown_zone"] += kinds[False]
        return
    moved = {i for i, kind in enumerate(zoned) if kind is False}
    for i in moved:
        found.lines[i] = found.lines[i]._replace(time=found.lines[i].time - shift)
    found.iterations = [
        fact._replace(time=fact.time - shift) if fact.line in moved else fact for fact in found.iterations
    ]
    found.requests = [fact._replace(time=fact.time - shift) if fact.line in moved else fact for fact in found.requests]


def _offset(lines: list[LogLine], zoned: list[bool | None]) -> int | None:
    """How far the wall clock is ahead, in quarters of an hour: the median over neighbors. None where none tell."""
    steps: list[int] = []
    before: tuple[int, bool] | None = None
    for line, kind in zip(lines, zoned, strict=True):
        if kind is None:
            continue
        if before is not None and before[1] != kind:
            step = before[0] - line.time if kind else line.time - before[0]
            steps.append(round(step / QUARTER_HOUR))
        before = line.time, kind
    possible = sorted(step for step in steps if abs(step) <= WIDEST_ZONE)
    return possible[len(possible) // 2] * QUARTER_HOUR if possible else None
