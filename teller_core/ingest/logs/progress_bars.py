"""Progress bars in logs: redrawn in place, they leave dozens of lines that say nothing."""

import re

from teller_core.ingest.logs.envelopes import head
from teller_core.ingest.logs.heads import TAG
from teller_core.ingest.redact import visible

_PROGRESS = re.compile(r"(?<!\d)\d{1,6}%(?:\||.{0,80}?\d/\d{1,12} ?\[)|(?<!\d)\d{1,12}[A-Za-z]{0,12} \[\d\d:\d\d, ")
_DONE = re.compile(r"100%(?:\||.{0,80}?\d/\d{1,12} ?\[)")
_BAR_END = re.compile(r"\] ?(?=[\[({\dDIWEFCT])")


def without_progress(text: str, near: int) -> str | None:
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
        behind = rest[end.end() :]
        if head(visible(behind) if "\x1b" in behind else behind, near) is not None:
            return front + behind
    return front + rest if _DONE.search(rest) else None
