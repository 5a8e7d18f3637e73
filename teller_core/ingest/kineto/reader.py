"""PyTorch-profiler traces: Chrome JSON as libkineto writes it, and as tools rewrite it.

Time is exact: decimal microseconds become int64 ns without a float, ``baseTimeNanoseconds`` added wherever it stands. All
records are accounted for: ``events_in_file == len(trace) + sum(events_other) + sum(problems)``.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teller_core.data.trace import Trace
from teller_core.errors import FormatError, LimitError
from teller_core.ingest.files.file_names import named
from teller_core.ingest.files.source import open_source

if TYPE_CHECKING:
    from teller_core.ingest.kineto.collected import Collected
    from teller_core.ingest.kineto.window import Window

MARKS = (b'"traceEvents"', b'"baseTimeNanoseconds"', b'"deviceProperties"', b'"distributedInfo"')
HEADER = frozenset({"baseTimeNanoseconds", "distributedInfo", "deviceProperties", "host_name"})
AGAIN = "Copy or record the file again"
OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, COLON, COMMA = b"{[}:,"
BOM = b"\xef\xbb\xbf"


def sniff(head: bytes) -> bool:
    """Whether a file whose expanded bytes begin with ``head`` is a PyTorch-profiler or Chrome trace in JSON."""
    text = head.removeprefix(BOM).lstrip(b" \t\r\n")
    if text.startswith(b"{"):
        return any(mark in text for mark in MARKS)
    return text.startswith(b"[") and text[1:].lstrip(b" \t\r\n").startswith(b"{") and b'"ph"' in text


@dataclass
class _Found:
    """What has been read of a file: its events, and those members of its header that say where it came from."""

    collected: "Collected"
    header: dict[str, Any] = field(default_factory=dict[str, Any])
    has_events: bool = False


def read(path: Path, *, progress: Callable[[int], None] | None = None) -> Trace:
    """All complete events of the file at ``path``; ``progress`` is told the bytes of the file read so far.

    Errors: InputError for a file that cannot be opened, FormatError for one that is cut, damaged or no such trace,
    LimitError over a bound of :mod:`source`, :mod:`window` or :mod:`tokens`. The first call in a fresh installation
    compiles the reader: see ``announce_compiling`` in :mod:`teller_core.data.compiled`.
    """
    from teller_core.ingest.kineto.collected import new_collected, trace_of
    from teller_core.ingest.kineto.window import window_on

    found = _Found(new_collected())
    with open_source(path) as source:
        window = window_on(source)
        try:
            _document(window, found, progress or (lambda _: None))
        except FormatError as error:
            kept = found.collected.complete
            salvage = f", after at least {kept} complete events" if kept else ""
            raise FormatError(error.what, f"{error.why}{salvage}", error.next_step) from None
    if not found.has_events:
        raise FormatError(path.name, "JSON without a traceEvents list", "Name a trace of the PyTorch profiler")
    trace = trace_of(found.collected, found.header, path.name)
    return replace(trace, origin=named(trace.origin, path))


def _document(window: "Window", found: _Found, progress: Callable[[int], None]) -> None:
    window.more()
    if window.data[: len(BOM)].tobytes() == BOM:
        window.low = len(BOM)
    first = _peek(window)
    if first == OPEN_LIST:
        _events(window, found, progress)
    elif first == OPEN_OBJECT:
        _members(window, found, progress)
    else:
        raise FormatError(window.source.path.name, "it is no JSON", "Name a trace of the PyTorch profiler")
    if _peek(window, end=True) >= 0:
        raise _broken(window)


def _members(window: "Window", found: _Found, progress: Callable[[int], None]) -> None:
    """The members of the outermost object, in any order."""
    window.low += 1
    if _peek(window) == CLOSE_OBJECT:
        window.low += 1
        return
    while True:
        key = _load(window, _take(window))
        if not isinstance(key, str) or _peek(window) != COLON:
            raise _broken(window)
        window.low += 1
        first = _peek(window)
        if key == "traceEvents":
            if first != OPEN_LIST or found.has_events:
                raise FormatError(
                    window.source.path.name, "traceEvents is not one list", "Name a trace of the PyTorch profiler"
                )
            _events(window, found, progress)
        else:
            value = _take(window)
            if key in HEADER:
                found.header[key] = _load(window, value)
        after = _peek(window)
        window.low += 1
        if after == CLOSE_OBJECT:
            return
        if after != COMMA:
            raise _broken(window)
        _peek(window)


def _events(window: "Window", found: _Found, progress: Callable[[int], None]) -> None:
    from teller_core.ingest.kineto.scan import DONE, MORE, ROOM

    found.has_events = True
    window.low += 1
    while True:
        stopped, window.low = found.collected.scan(window.data, window.low, window.high)
        if stopped == DONE:
            progress(window.source.on_disk)
            return
        if stopped == ROOM:
            found.collected.make_room(window.high - window.low)
        elif stopped != MORE:
            raise _refusal(window, stopped)
        else:
            _more(window)
            progress(window.source.on_disk)


def _peek(window: "Window", *, end: bool = False) -> int:
    """The next byte that is no white space; -1 at the end of the file, which is an error unless ``end``."""
    from teller_core.ingest.scanning.tokens import skip_space

    while True:
        window.low = skip_space(window.data, window.low)
        if window.low < window.high:
            return int(window.data[window.low])
        if end:
            window.more()
            if window.ended:
                return -1
        else:
            _more(window)


def _take(window: "Window") -> bytes:
    """The value that starts at the window's first byte, which is used up."""
    from teller_core.ingest.scanning.tokens import skip_value

    while True:
        after = skip_value(window.data, window.low, window.high)
        if after < 0:
            raise _refusal(window, after)
        if after < window.high:
            value = window.data[window.low : after].tobytes()
            window.low = after
            return value
        _more(window)


def _more(window: "Window") -> None:
    window.more()
    if window.ended:
        raise FormatError(window.source.path.name, "the JSON ends early", AGAIN)


def _load(window: "Window", value: bytes) -> Any:
    try:
        return json.loads(value, strict=False)
    except (ValueError, RecursionError):
        raise _broken(window) from None


def _broken(window: "Window") -> FormatError:
    at = window.source.expanded - (window.high - window.low)
    return FormatError(window.source.path.name, f"it is no valid JSON at byte {at}", AGAIN)


def _refusal(window: "Window", code: int) -> FormatError | LimitError:
    from teller_core.ingest.scanning.tokens import MAX_NESTING, TOO_DEEP

    if code == TOO_DEEP:
        return LimitError(window.source.path.name, f"a record nests over {MAX_NESTING} levels deep", "Check the file")
    return _broken(window)
