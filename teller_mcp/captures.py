"""The recordings that this server makes: one at a time, each imported when it ends.

What is recorded is a job of :mod:`teller_core.collect.jobs`, a process that ends with this one. A job that was canceled or
whose server ended is not imported; its folder stays.
"""

import difflib
import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from teller_core.collect import jobs
from teller_core.data.report import ImportReport
from teller_core.data.report_recording import JobReport, ProfileLine
from teller_core.errors import InputError, LimitError, TellerError, UnknownName
from teller_mcp.profiles import Profile, Profiles, variables_of

audit = logging.getLogger("teller.audit")
log = logging.getLogger("teller")
KEPT = 20
"""Ended jobs that are still answered for."""
GRACE_S = 120.0
"""How long after its time a job may take to close what it recorded before it is ended by force."""
BUSY = ("starting", "recording", "ending", "importing")

Import = Callable[[Path], ImportReport]


@dataclass
class _Entry:
    """One job. ``state`` is empty while the job itself tells it."""

    id: str
    asked: tuple[str, float | None, float | None]
    """The profile, seconds and window_s of the call: a client may repeat it."""
    plan: jobs.JobPlan
    job: jobs.Job
    canceled: bool = False
    state: str = ""
    capture: str | None = None
    error: str | None = None
    over: threading.Event = field(default_factory=threading.Event)


@dataclass
class Captures:
    """What may be recorded, and what was. ``base``: the folder of the profiles' file; ``keep_in``: where recordings go."""

    profiles: Profiles
    base: Path
    keep_in: Path
    _entries: dict[str, _Entry] = field(default_factory=dict[str, _Entry])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lines(self) -> list[ProfileLine]:
        """The profiles, as they may be shown."""
        return [
            ProfileLine(
                name=name,
                about=profile.about,
                kind=profile.kind,
                seconds=profile.seconds,
                megabytes=profile.megabytes,
                window_s=profile.window_s,
                consent=profile.consent,
            )
            for name, profile in self.profiles.profiles.items()
        ]

    def profile(self, name: str) -> Profile:
        """The profile ``name``. Raises UnknownName, with the names there are."""
        found = self.profiles.profiles.get(name)
        if found is None:
            near = difflib.get_close_matches(name, list(self.profiles.profiles), 1, cutoff=0.5)
            there = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.profiles.profiles)}"
            raise UnknownName(
                "profile", f"there is none of this name; {there}", "Call capture_trace without one to list them"
            )
        return found

    def check(self, profile: Profile, seconds: float | None, window_s: float | None) -> None:
        """Raise InputError where more is asked for than ``profile`` allows."""
        for name, asked, most in (("seconds", seconds, profile.seconds), ("window_s", window_s, profile.window_s)):
            if asked is not None and asked > most:
                raise InputError(name, f"{asked:g} is over the profile's {most:g}", "Ask for less")

    def start(
        self, name: str, *, seconds: float | None, window_s: float | None, consent: str, read: Import
    ) -> JobReport:
        """Start what the profile ``name`` says, for at most ``seconds``, and return at once. ``read`` imports it when it ends.

        The same call while its job runs gives that job. Raises UnknownName, InputError for a bound over the profile's,
        LimitError while another job runs.
        """
        profile = self.profile(name)
        self.check(profile, seconds, window_s)
        with self._lock:
            asked = (name, seconds, window_s)
            running = next((entry for entry in self._entries.values() if _report(entry).state in BUSY), None)
            if running is not None and running.asked == asked:
                return _report(running)
            if running is not None:
                raise LimitError("The capture", f"job {running.id} is still running", "Wait for it, or cancel it")
            identity = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
            plan = self._plan(name, profile, seconds, window_s, identity)
            entry = _Entry(identity, asked, plan, jobs.start(plan))
            self._entries[identity] = entry
            for old in list(self._entries)[:-KEPT]:
                del self._entries[old]
        audit.info("capture job=%s profile=%s consent=%s state=started", identity, name, consent)
        threading.Thread(target=self._follow, args=(entry, read), daemon=True).start()
        return _report(entry)

    def report(self, identity: str | None) -> JobReport | None:
        """The job ``identity``, without it the last one, None where there was none. Raises UnknownName."""
        if identity is None:
            return _report(list(self._entries.values())[-1]) if self._entries else None
        return _report(self._entry(identity))

    def wait(self, identity: str | None, seconds: float) -> None:
        """Wait at most ``seconds`` for the end of the job, importing included."""
        known = self.report(identity)
        if known is not None:
            self._entry(known.id).over.wait(seconds)

    def end(self, identity: str | None, *, cancel: bool) -> None:
        """Ask a job to end now. With ``cancel`` it is not imported. One that has ended stays as it is."""
        known = self.report(identity)
        if known is None:
            raise UnknownName("job", "none was started", "Start one with capture_trace")
        entry = self._entry(known.id)
        entry.canceled |= cancel and known.state in BUSY
        audit.info("capture job=%s profile=%s asked=%s", entry.id, entry.asked[0], "cancel" if cancel else "finish")
        jobs.stop(entry.job)
        entry.over.wait(GRACE_S if cancel else 0)

    def _entry(self, identity: str) -> _Entry:
        if identity not in self._entries:
            known = ", ".join(list(self._entries)[-3:]) or "none"
            raise UnknownName("job", f"there is none of this id; the last are {known}", "Leave it out for the last one")
        return self._entries[identity]

    def _plan(
        self, name: str, profile: Profile, seconds: float | None, window_s: float | None, identity: str
    ) -> jobs.JobPlan:
        source = profile.attach or profile.traces
        folder = self.keep_in / f"{name}-{identity}"
        try:
            folder.mkdir(parents=True, mode=0o700)
        except OSError as error:
            why = f"it cannot be made ({error.strerror})"
            raise InputError("The folder for recordings", why, "Set keep_in in the profiles to a folder") from None
        return jobs.JobPlan(
            kind=profile.kind,
            folder=folder,
            seconds=profile.seconds if seconds is None else seconds,
            most_bytes=profile.megabytes * 1_000_000,
            window_s=profile.window_s if window_s is None else window_s,
            command=tuple(profile.command or ()),
            variables=variables_of(profile),
            working_folder=self.base / profile.folder,
            endpoint=profile.endpoint or "",
            allowed=tuple(self.profiles.allow),
            source=None if source is None else self.base / source,
        )

    def _follow(self, entry: _Entry, read: Import) -> None:
        """Wait for the end of the recording, then import it."""
        if not entry.job.done.wait(entry.plan.seconds + GRACE_S):
            jobs.kill(entry.job)
            entry.job.done.wait(GRACE_S)
        try:
            self._close(entry, read)
        finally:
            entry.over.set()
            state = _report(entry).state
            audit.info(
                "capture job=%s profile=%s state=%s capture=%s", entry.id, entry.asked[0], state, entry.capture or "-"
            )

    def _close(self, entry: _Entry, read: Import) -> None:
        if entry.canceled:
            entry.state = "canceled"
        elif entry.job.told.state == "failed":
            entry.state, entry.error = "failed", entry.job.told.error
        else:
            entry.state = "importing"
            try:
                entry.capture = read(entry.plan.folder).captures[0].id
                entry.state = "done"
            except TellerError as error:
                entry.state, entry.error = "failed", f"it was recorded and cannot be imported: {error}"
            finally:
                if entry.state == "importing":  # a fault of ours: the thread's own report has the rest
                    entry.state, entry.error = "failed", "it was recorded; importing it met a fault of TELLER"


def _report(entry: _Entry) -> JobReport:
    told = entry.job.told
    state = entry.state or ("ending" if told.state in ("ended", "failed") else told.state)
    return JobReport.model_validate(
        {
            "id": entry.id,
            "profile": entry.asked[0],
            "state": state,
            "elapsed_s": told.elapsed_s,
            "seconds": entry.plan.seconds,
            "megabytes": round(told.bytes / 1e6, 1),
            "ended_by": told.ended_by or None,
            "exit": told.exit,
            "capture": entry.capture,
            "recording": entry.plan.folder.name,
            "error": entry.error,
        }
    )
