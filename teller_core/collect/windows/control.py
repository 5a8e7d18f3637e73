"""The files by which the recorder asks the processes of a service for a window: ``PROFILE`` the import hook, ``CUPTI`` the
injection library.

``PROFILE`` in the capture's folder holds words: the longest time in seconds, then ``steps=N``, ``events=N``,
``reason=WORD``, ``shapes`` and ``host``. Every process that has torch opens a window when the file is new, and closes it when the
first bound is met or the file is gone. ``CUPTI`` is written with it, with the same bounds, where the capture has the library.

Who records what, so that CUPTI has one client: in a process whose CUDA has loaded our library, the library records the GPU;
torch's profiler runs beside it on the CPU alone, and only where operators on the host were asked for. In every other process,
and where the library refuses (its file says why), torch's profiler records all that it can.
"""

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from teller_core.collect.cupti.windows import MOST_RECORDS, are_on, close_window, open_window
from teller_core.errors import InputError

REASONS = ("start", "requests", "time", "signal", "slow", "mcp", "call")
MOST_SECONDS, MOST_STEPS, MOST_EVENTS = 600.0, 100_000, 2_000_000


@dataclass(frozen=True)
class Window:
    """Bounds of one window; the first that is met ends it. Shapes make every event twice as dear. ``host``: operators on the host
    are wanted too where CUPTI records the GPU; shapes are theirs.
    """

    seconds: float = 5.0
    steps: int | None = 10
    events: int | None = 100_000
    shapes: bool = False
    host: bool = False


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
        return {"when_ns": self.when, "reason": self.reason, "request": self.request, **bounds}


def ask(cap: Path, how: Window, reason: str = "call") -> None:
    """Ask every process that records into ``cap`` for a window. Raises InputError where a bound is out of range."""
    _check(how)
    words = [
        f"{how.seconds:g}",
        f"steps={how.steps}" if how.steps else "",
        f"events={how.events}" if how.events else "",
    ]
    words += [f"reason={reason}", "shapes" if how.shapes else "", "host" if how.host else ""]
    hidden = cap / f".PROFILE-{reason}"
    try:
        if are_on(cap):
            open_window(cap, how.seconds, how.events or MOST_RECORDS, steps=how.steps)
        hidden.write_text(" ".join(filter(None, words)))
        hidden.replace(cap / "PROFILE")
    except OSError as error:
        why = (error.strerror or "it cannot be written").lower()
        raise InputError("The folder of the capture", why, "Name the folder of a capture that is running") from None


def close(cap: Path) -> None:
    """End the window that was asked for, before its bounds are met."""
    (cap / "PROFILE").unlink(missing_ok=True)
    close_window(cap)


def asked_in(cap: Path) -> tuple[int, str] | None:
    """When (Unix ns) and why the last window was asked for, or None where none was or it was closed."""
    path = cap / "PROFILE"
    try:
        about = path.stat()
        words = path.read_text("utf-8", "replace").split() if stat.S_ISREG(about.st_mode) else []
    except OSError:
        return None
    said = next((word.removeprefix("reason=") for word in words if word.startswith("reason=")), "call")
    return about.st_mtime_ns, said if said in REASONS else "call"


def _check(how: Window) -> None:
    for name, value, most in (
        ("seconds", how.seconds, MOST_SECONDS),
        ("steps", how.steps, MOST_STEPS),
        ("events", how.events, MOST_EVENTS),
    ):
        if value is not None and not 0 < value <= most:
            raise InputError(f"The {name} of a window", f"it is not between 0 and {most:g}", "Ask for a smaller window")
