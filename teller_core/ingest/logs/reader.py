"""Logs of engines and of what stands around them: plain text, JSON lines, or both in one file.

Every physical line is counted: the first of a record as kept, others by what they are: ``continuation``, ``blank``,
``progress``.
"""

import re
from pathlib import Path
from typing import NamedTuple

from teller_core.data.log_lines import Kind, LogLine
from teller_core.data.process import Process
from teller_core.data.table import UNKNOWN
from teller_core.ingest.files.source import open_source, read_head
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import lines
from teller_core.ingest.logs.clock import NONE, Clocks, kind_of, settle
from teller_core.ingest.logs.envelopes import head
from teller_core.ingest.logs.export import exported, is_export
from teller_core.ingest.logs.facts import TELLERS, Line
from teller_core.ingest.logs.patterns import Known, recognize, recognize_numbers
from teller_core.ingest.logs.processes import process_of, settle_hosts
from teller_core.ingest.logs.progress_bars import without_progress
from teller_core.ingest.logs.story import Story
from teller_core.ingest.logs.usual import Usual, find
from teller_core.ingest.redact import MAX_SCANNED, MAX_TEXT, Cleaned, endless, shorten, strip, unclosed, visible
from teller_core.ingest.stamps import Head, stamp

NAME = "engine_log"
MAX_RECORD = MAX_SCANNED
MAX_UNKNOWN = 300_000
"""Lines that no pattern knows are kept up to this number a file, then counted: ``unknown_line_over_limit``."""
_GOES_ON = re.compile(
    r"(?!\s*(?:eval|total) time\s+=)[\s)}\]]|[\w.]*(?:Error|Exception|Interrupt|Exit)(?::|$)|During handling of"
    r"|The above exception"
)
ENGINES = frozenset({"vllm", "sglang", "tgi", "llamacpp", "trtllm", "triton"})


UNSTAMPED = "llamacpp."
"""Rules of a producer that writes no stamps by default: its lines are known by what they say."""


def sniff(head_bytes: bytes) -> bool:
    """Whether it is text with at least one line that begins as a log line does, or is known."""
    if is_export(head_bytes):
        return True
    text = head_bytes.decode("utf-8", "replace")
    if text.count("\ufffd") + text.count("\0") > len(text) // 100 + 4:  # a few may come out of what somebody asked
        return False
    some = re.split(r"[\r\n]+", text)[:400]
    return any(_is_log(line) for line in some if len(line) < MAX_RECORD)


def _is_log(line: str) -> bool:
    if beginning(line, 0) is not None or recognize_numbers(line) is not None:
        return True
    known = recognize(line)
    return known is not None and known.pattern.id.startswith(UNSTAMPED)


class _Open(NamedTuple):
    """A record whose lines still come."""

    head: Head
    number: int
    parts: list[str]
    whole: bool
    """A JSON object: no line of plain text goes on with it."""


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Log lines, and the iterations and requests they tell of.

    Times without a zone are read as UTC: the file's clock is then ``wall``, unless other lines of it have a zone: these
    tell the offset. Problems: ``line_too_long``, ``bad_stamp``, ``line_of_unknown_zone``, ``implausible_duration``,
    ``cut_iteration_line``, ``unknown_line_over_limit``, ``bad_line`` (in an export), ``requests_without_id``,
    ``times_by_order_of_lines``.
    """
    log = Log(place, path.name)
    if is_export(read_head(path)):
        heads, dropped = exported(path, place.near)
        for number, one in enumerate(heads, 1):
            log.add_line(one.message, one, number)
        log.found.events += dropped
        log.found.problems["bad_line"] += dropped
        return log.finish()
    with open_source(path) as source:
        for number, (raw, skipped) in enumerate(lines(source), 1):
            if skipped:
                log.found.problems["line_too_long"] += 1
            log.add(raw.decode("utf-8", "replace"), number)
            if progress is not None and number % 20_000 == 0:
                progress(source.on_disk)
    return log.finish()


class Log:
    """The state of reading one log: the record that is open, the last time seen, processes by pid."""

    def __init__(self, place: Place, name: str) -> None:
        self.found = Found()
        self.place = place
        self.story = Story(self.found, place, name)
        self.open: _Open | None = None
        self.in_prompt: bool | None = None
        """Whether the open record holds a prompt that has not ended, so that nothing of its further lines may be kept.
        None where nobody has asked."""
        self.last = UNKNOWN
        self.main = 0
        self.tags: dict[tuple[str, int], str] = {}
        self.processes: dict[tuple[str, int, str], Process] = {}
        self.clocks = Clocks()
        self.unknown = 0
        self.kinds: dict[tuple[str | None, ...], tuple[Process, str, int]] = {}

    def add(self, raw: str, number: int) -> None:
        """One physical line."""
        usual = find(raw)
        if usual is not None and self._usual(*usual, number):
            return
        text = without_progress(raw.rstrip("\r"), self.place.near)
        self.add_line(text, None if text is None else beginning(text, self.place.near), number)

    def _usual(self, usual: Usual, match: re.Match[str], number: int) -> bool:
        """Keep a line that was read at once; False where it must go the long way after all."""
        if self.open is not None and (self.open.head.part or endless(self.open.head.message)):
            return False
        time, resolution, kind = self.last, UNKNOWN, NONE
        if usual.stamped:
            time, resolution, zoned = stamp(match["stamp_"] or match["date_"], self.place.near)
            if time == UNKNOWN:
                return False
            kind = kind_of(zoned, False)
        self.close()
        self.last = time
        ranks = match["ranks_"] if usual.stamped else None
        process, tag, code = self._written_by(usual.rule, match["tag_"], match["pid_"], match["level_"], ranks)
        self.found.events += 1
        self.found.kept += 1
        text = shorten(match["message_"], MAX_TEXT)
        lines = self.found.lines
        as_text, fields = usual.fields(match)
        lines.put(code, time, resolution, fields=as_text, text=text, file=self.place.file, number=number)
        self.clocks.add(kind, time)
        if usual.rule in TELLERS:
            self._tell(usual.rule, fields, Line(process, time, resolution, tag, len(lines) - 1, number))
        return True

    def _written_by(self, *told: str | None) -> tuple[Process, str, int]:
        """The process of a usual line, its tag and the number of its kind: by rule, tag, pid, level and ranks as written."""
        found = self.kinds.get(told)
        if found is None or (not told[1] and found[0].pid != self.main):
            rule, tag, pid, level, ranks = told
            self._note_engine(rule or "")
            name = tag or (ranks or "").strip()
            process = self._process(Head(UNKNOWN, UNKNOWN, False, "", name, int(pid or 0), ""))
            code = self.found.lines.code(Kind(process, level or "", rule or ""))
            found = self.kinds[told] = process, name, code
        return found

    def add_line(self, text: str | None, heads: Head | None, number: int) -> None:
        """One line with the head it begins with; None for a progress bar that goes on."""
        self.found.events += 1
        if text is None:
            self.found.other["progress"] += 1
        elif not (text if heads is None else heads.message).strip():
            self.found.other["blank"] += 1
        elif self._continues(text, heads):
            self.found.other["continuation"] += 1
        else:
            self.close()
            heads = heads or Head(UNKNOWN, UNKNOWN, False, "", "", 0, text)
            self.open = _Open(heads, number, [heads.message], text[:1] == "{")

    def _continues(self, text: str, heads: Head | None) -> bool:
        """Whether the line belongs to the open record; if so it is added, unless it is the rest of a prompt."""
        if self.open is None:
            return False
        first, parts = self.open.head, self.open.parts
        if heads is not None and not first.part and not _GOES_ON.match(heads.message):
            return self._is_prompt(heads)
        if heads is not None and first.part:
            return self._completes(heads)
        if heads is not None and (heads[:6] != first[:6] or (heads.tag == "" and heads.time == UNKNOWN)):
            return self._is_prompt(heads)
        if self.in_prompt is None:
            self.in_prompt = not self.open.whole and unclosed(first.message)
        message = text if heads is None else heads.message
        if heads is None and not self.in_prompt and not _GOES_ON.match(text):
            return False
        if not self.in_prompt and sum(map(len, parts)) < MAX_RECORD:
            parts.append(message)
        return True

    def _is_prompt(self, heads: Head) -> bool:
        """Whether a line that looks like a record's is of the prompt before it, which only a record of that form ends."""
        if self.open is None or self.open.whole or not endless(self.open.head.message):
            return False
        first = self.open.head
        return heads.resolution != first.resolution or heads.zoned != first.zoned or heads.time < first.time

    def _completes(self, heads: Head) -> bool:
        """A line that its container cut into pieces: this is the next one."""
        if self.open is None:
            return False
        message = self.open.head.message
        if len(message) < MAX_RECORD:
            message += heads.message
        self.open = self.open._replace(head=self.open.head._replace(message=message, part=heads.part), parts=[message])
        return True

    def close(self) -> None:
        """End the open record."""
        if self.open is None:
            return
        opened, self.open, self.in_prompt = self.open, None, None
        message = opened.parts[0] if len(opened.parts) == 1 else "\n".join(opened.parts)
        known = recognize_numbers(message) if len(opened.parts) == 1 else None
        if known is not None:
            plain = message if message.isprintable() else visible(message)
            cleaned = Cleaned(plain if len(plain) <= MAX_TEXT else shorten(plain, MAX_TEXT), 0)
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
        process = self._process(first)
        found.kept += 1
        found.redactions += cleaned.redactions
        if first.zone:
            fields = {**fields, "zone": _zone(first.zone)}
        text, file, number = cleaned.text, self.place.file, opened.number
        found.lines.append(LogLine(process, time, resolution, first.level, rule, fields, text, file, number))
        self.clocks.add(NONE if borrowed else kind_of(first.zoned, first.local), time)
        if first.zone:
            self.clocks.vote(first.zone)
        if rule:
            self._tell(rule, fields, Line(process, time, resolution, first.tag, len(found.lines) - 1, number))

    def _tell(self, rule: str, fields: dict[str, str], line: Line) -> None:
        self._note_engine(rule)
        epoch = self.story.tell(rule, fields, line)
        if epoch is not None:
            self.clocks.said(line.time, epoch)

    def _note_engine(self, rule: str) -> None:
        producer = rule.partition(".")[0]
        if not self.found.engine and producer in ENGINES:
            self.found.engine = producer

    def _process(self, first: Head) -> Process:
        pid, host = first.pid or (self.main if not first.tag else 0), self.place.host or first.host
        key = host, pid, first.tag
        process = self.processes.get(key)
        if process is None:
            process = self.processes[key] = process_of(host, pid, first.tag)
            if pid and (first.tag or (host, pid) not in self.tags):
                self.tags[host, pid] = first.tag
        return process

    def finish(self) -> Found:
        """What the log said, on one clock."""
        self.close()
        self.story.close()
        settle(self.found, self.clocks)
        hosts = settle_hosts(self.found, self.place.host)
        told = [self.processes[host, pid, tag] for (host, pid), tag in self.tags.items()]
        self.found.processes += [process._replace(host=hosts.get(process.host, process.host)) for process in told]
        return self.found


def beginning(text: str, near: int) -> Head | None:
    """The head of a line, escape sequences apart."""
    return head(visible(text) if "\x1b" in text else text, near)


def _zone(ahead: int) -> str:
    """``-07:00`` of ns ahead of Greenwich."""
    minutes = abs(ahead) // 60_000_000_000
    return f"{'-' if ahead < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
