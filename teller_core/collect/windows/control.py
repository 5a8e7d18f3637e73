"""The files by which the recorder asks the processes of a service for a window: ``PROFILE`` the import hook, ``CUPTI`` the
injection library.

``PROFILE`` in the capture's folder holds words: the longest time in seconds, then ``steps=N``, ``events=N``, ``at=NS``,
``reason=WORD``, ``shapes`` and ``host``. Every process that has torch opens a window when the file is new, or at the Unix
time ``at``, and closes it when the first bound is met or the file is gone. ``CUPTI`` is written with it, with the same
bounds, where the capture has the library.

Who records what, so that CUPTI has one client: in a process whose CUDA has loaded our library, the library records the GPU;
torch's profiler runs beside it on the CPU alone, and only where operators on the host were asked for. In every other process,
and where the library refuses (its file says why), torch's profiler records all that it can.
"""

import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from teller_core.collect.cupti.windows import MOST_RECORDS, are_on, close_window, open_window
from teller_core.errors import InputError

REASONS = ("start", "requests", "time", "signal", "slow", "mcp", "call")
MOST_SECONDS, MOST_STEPS, MOST_EVENTS = 600.0, 100_000, 2_000_000
LONGEST_AHEAD_S = 60.0
"""How far ahead a window may be asked for: whoever restarts meanwhile opens none."""


@dataclass(frozen=True)
class Window:
    """Bounds of one window; the first that is met ends it. Shapes make every event twice as dear. ``host``: operators on the host
    are wanted too where CUPTI records the GPU; shapes are theirs. ``at``: when it opens (Unix ns), in all processes at once, so
    that few steps are the same ones on every rank; None: in each when it sees that it is asked, within a quarter of a second.

    A window of few steps has no need of a bound of its events: that is kept by time, in pieces that cut steps.
    """

    seconds: float = 5.0
    steps: int | None = 10
    events: int | None = 100_000
    shapes: bool = False
    host: bool = False
    at: int | None = None


class Asked(NamedTuple):
    """One window that was asked for: when (Unix ns), why (one of ``REASONS``) and, if slow, for which request."""

    when: int
    reason: str
    request: str
    window: Window

    def record(self) -> dict[str, object]:
        """What ``bundle.json`` keeps of it."""
        how = self.window
        bounds = {"seconds": how.seconds, "steps": how.steps, "events": how.events, "shapes": how.shapes}
        bounds["host"] = how.host
        bounds |= {} if how.at is None else {"at_ns": how.at}
        return {"when_ns": self.when, "reason": self.reason, "request": self.request, **bounds}


def ask(cap: Path, how: Window, reason: str = "call") -> None:
    """Ask every process that records into ``cap`` for a window. Raises InputError where a bound is out of range."""
    _check(how)
    words = [
        f"{how.seconds:g}",
        f"steps={how.steps}" if how.steps else "",
        f"events={how.events}" if how.events else "",
        f"at={how.at}" if how.at else "",
    ]
    words += [f"reason={reason}", "shapes" if how.shapes else "", "host" if how.host else ""]
    hidden = cap / f".PROFILE-{reason}"
    try:
        if are_on(cap):
            open_window(cap, how.seconds, how.events or MOST_RECORDS, steps=how.steps, at=how.at)
        hidden.write_text(" ".join(filter(None, words)))
        hidden.replace(cap / "PROFILE")
    except OSError as error:
        why = (error.strerror or "it cannot be written").lower()
        raise InputError("The folder of the capture", why, "Name the folder of a capture that is running") from None


def close(cap: Path) -> None:
    """End the window that was asked for, before its bounds are met."""
    (cap / "PROFILE").unlink(missing_ok=True)
    close_window(cap)


def asked_in(cap: Path) -> Asked | None:
    """The last window that was asked for, or None where none was or it was closed."""
    path = cap / "PROFILE"
    try:
        about = path.stat()
        words = path.read_text("utf-8", "replace").split() if stat.S_ISREG(about.st_mode) else []
    except OSError:
        return None
    said = {name: value for name, is_one, value in (word.partition("=") for word in words[1:]) if is_one}
    reason = said.get("reason", "")
    return Asked(about.st_mtime_ns, reason if reason in REASONS else "call", "", _window(words, said))


def _window(words: Sequence[str], said: Mapping[str, str]) -> Window:
    """The bounds that a control file asks for. Whoever wrote it may have written anything."""
    steps, events, at = (_count(said.get(name, "")) for name in ("steps", "events", "at"))
    try:
        seconds = float(words[0])
    except (ValueError, IndexError):
        seconds = 1.0
    return Window(seconds if isfinite(seconds) else 1.0, steps, events, "shapes" in words, "host" in words, at)


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 20 else None


def _check(how: Window) -> None:
    for name, value, most in (
        ("seconds", how.seconds, MOST_SECONDS),
        ("steps", how.steps, MOST_STEPS),
        ("events", how.events, MOST_EVENTS),
    ):
        if value is not None and not 0 < value <= most:
            raise InputError(f"The {name} of a window", f"it is not between 0 and {most:g}", "Ask for a smaller window")
    if how.at is not None and not 0 < how.at <= time.time_ns() + LONGEST_AHEAD_S * 1e9:
        why = f"it lies more than {LONGEST_AHEAD_S:g} seconds ahead"
        raise InputError("The time at which a window opens", why, "Ask for it later")
