"""The verbs about recording a running service."""

import argparse
import os
import re
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from teller_core.calls.arguments import option
from teller_core.cli.speech import complain, say, show, style
from teller_core.cli.verbs import Verbs

if TYPE_CHECKING:
    from teller_core.collect.environment import Environment
    from teller_core.collect.run import Captured
    from teller_core.collect.signals import Held
    from teller_core.data.report_recording import CaptureRunReport


def _capture(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    from teller_core.collect.signals import held

    began = time.monotonic()
    with held(given.ignored) as signals:  # before anything is imported that starts a thread
        folder, captured = _recorded(given, signals)
    from teller_core.collect.run import exit_code
    from teller_core.tell.recording_page import recording_page

    report = _report(folder, captured, time.monotonic() - began)
    if option(given, "json"):
        say(report.model_dump_json())
    else:
        complain("\n".join(recording_page(report, style())))
    return exit_code(captured.status)


def _recorded(given: argparse.Namespace, signals: "Held") -> "tuple[Path, Captured]":
    from teller_core.collect.bundle import engine_of
    from teller_core.collect.ring import Bounds
    from teller_core.collect.run import Wanted, capture
    from teller_core.collect.windows.control import Window
    from teller_core.collect.windows.triggers import plan_of
    from teller_core.tell.recording_page import begin_line, window_line

    engine = engine_of(given.command)
    folder: Path = given.to or _new_folder(engine or Path(given.command[0]).name)
    wanted = Wanted(
        bounds=Bounds(given.most_mb << 20, given.most_minutes * 60),
        plan=plan_of(given.window, Window(steps=given.window_steps, host=given.window_host)),
        without=given.without,
        outs=None if given.quiet else (2, 2) if option(given, "json") else (1, 2),
    )

    def told(made: "Environment") -> None:
        for line in begin_line(str(folder), made.on, made.off, given.without):
            complain(line)
        if engine and "hooks" in made.on:
            complain(window_line(os.getpid(), given.window_steps))

    return folder, capture(given.command, folder, os.environ, wanted, told, signals=signals)


def _new_folder(name: str) -> Path:
    """A folder's name from that of the command, in letters that neither a terminal nor a shell obeys."""
    plain = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.")[:64]
    return Path(f"teller-{plain or 'command'}-{time.strftime('%Y%m%d-%H%M%S')}")


def _size_on_disk(folder: Path) -> int:
    """Bytes that ``folder`` takes. A process that outlives the command may drop pieces of its ring meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            about = path.lstat()
            total += about.st_blocks * 512 if stat.S_ISREG(about.st_mode) else 0
    return total


def _report(folder: Path, captured: "Captured", seconds: float) -> "CaptureRunReport":
    from teller_core.collect.doctor.after import examine_recording
    from teller_core.collect.doctor.windows import NOT_OPENED
    from teller_core.data.report_recording import CaptureRunReport, DroppedFile, OffPart
    from teller_core.errors import InputError

    about = captured.about
    known = about["engine"] or any(captured.seen.values())
    seen: Mapping[str, int] = captured.seen if "hooks" in about["on"] and known else {}
    dropped = about["ring"]["dropped"].items()
    try:
        checks = examine_recording(folder).checks
    except InputError:  # somebody took the folder away: the command has ended as it has
        checks = []
    return CaptureRunReport(
        folder=str(folder),
        engine=about["engine"],
        exit=captured.status,
        duration_ms=round(seconds * 1000, 1),
        bytes=_size_on_disk(folder),
        processes=len({path.name.split("-")[1].split(".")[0] for path in (folder / "cap").glob("host-*")}),
        requests=seen.get("requests"),
        engine_steps=seen.get("steps"),
        windows=len(about["windows"]),
        on=list(about["on"]),
        off=[OffPart(part=part, why=why) for part, why in about["off"].items()],
        dropped=[DroppedFile(file=name, **gone) for name, gone in dropped],
        lost=sum(about["lost"].values()),
        recorder_cpu_ms=round(about["recorder_cpu_ns"] / 1e6, 1),
        checks=[
            check
            for check in checks
            if check.part == NOT_OPENED or (check.state in ("no", "partly") and check.part not in about["off"])
        ],
        next_call=f"teller import {_quoted(folder)}",
    )


def _quoted(folder: Path) -> str:
    import shlex

    return shlex.quote(str(folder))


def _bundle(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    from teller_core.collect.merge import merge

    show(given, merge(given.bundles, given.to))
    return 0


VERBS: Mapping[str, Callable[..., int]] = {"capture": _capture, "bundle": _bundle}
