"""The recording process beside a command: it samples, asks for windows, keeps the bounds and says in ``bundle.json`` what is.

All of it happens in one thread, ten times a second, and none of it in the command. Whatever the disk refuses is counted and
tried again.
"""

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from teller_core.collect.about import SCHEMA, write_about
from teller_core.collect.clock import machine_clock
from teller_core.collect.cupti.footers import outcomes
from teller_core.collect.finished import regular_files
from teller_core.collect.output import Shown
from teller_core.collect.packing import compress_traces
from teller_core.collect.ring import Bounds, Ring
from teller_core.collect.sampler import INTERVAL_S, Sampler
from teller_core.collect.segments import Segments
from teller_core.collect.windows.triggers import Watch
from teller_core.errors import InputError

ASK_EVERY = 3
SWEEP_EVERY = 10
SAY_EVERY = 50
"""Turns between two looks for a window that is due, between two at the disk, and between two versions of ``bundle.json``."""
MOST_WINDOWS = 1_000


@dataclass
class Recording:
    """A command that is being recorded: what is known of it, and who does what."""

    folder: Path
    about: dict[str, Any]
    ring: Ring
    watch: Watch
    sampler: Sampler | None
    samples: Segments
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    packing: threading.Thread | None = None
    cpu_ns: int = 0
    refused: int = 0
    """How often the disk did not take ``bundle.json``."""


def prepare(folder: Path) -> Path:
    """Make the new or empty ``folder`` ready to be recorded into. Returns where the command's processes write.

    Raises InputError where it is in use or cannot be written.
    """
    cap = folder / "cap"
    try:
        if folder.exists() and any(folder.iterdir()):
            raise InputError("The folder to record into", "it is not empty", "Name a new folder")
        cap.mkdir(parents=True, exist_ok=True)
        (folder / ".part-try").write_bytes(b" " * 4096)  # a full disk lets a folder be made
        (folder / ".part-try").unlink()
    except OSError as error:
        raise unwritable(error) from None
    return cap


def unwritable(error: OSError) -> InputError:
    """The refusal of a folder that the disk does not let us write to."""
    why = f"it cannot be written ({(error.strerror or 'no reason given').lower()})"
    return InputError("The folder to record into", why, "Name one where there is room")


def begin(
    folder: Path,
    pid: int,
    about: Mapping[str, Any],
    watch: Watch,
    *,
    bounds: Bounds,
    outputs: Sequence[Path],
    shown: Sequence[Shown] = (),
    with_samples: bool = True,
) -> Recording:
    """Start to record the process ``pid`` and all that come from it, until :func:`finish`.

    ``about`` is what ``bundle.json`` says besides: its ``start_ns`` and first clock anchor were taken before the command
    began. ``outputs`` are files that the command writes itself, ``shown`` how far each is shown to somebody.
    """
    samples = Segments(folder, "samples", *bounds.of_writer())
    recording = Recording(
        folder,
        {"schema": SCHEMA, "host": socket.gethostname(), "clock": machine_clock(), "pid": pid, **about},
        Ring(folder, bounds, outputs, shown),
        watch,
        Sampler(pid, samples) if with_samples else None,
        samples,
    )
    say(recording)
    recording.thread = threading.Thread(target=_keep, args=(recording,), name="teller-record", daemon=True)
    recording.thread.start()
    return recording


def finish(recording: Recording, status: int) -> None:
    """Close the bundle of a command that has ended with ``status`` (negative: by a signal)."""
    recording.stop.set()
    if recording.thread is not None:
        recording.thread.join()
    if recording.packing is not None:
        recording.packing.join()
    recording.about["exit"] = status
    _compress(recording.folder / "cap")
    recording.ring.close()
    recording.about["stop_ns"] = time.time_ns()
    say(recording)


def say(recording: Recording) -> None:
    """Write ``bundle.json``: what is known now."""
    about = recording.about
    about["anchors"] = [about["anchors"][0], anchor()]
    about["recorder_cpu_ns"] = recording.cpu_ns
    about["ring"] = recording.ring.report()
    about["lost"] = {"samples": recording.samples.lost, "bundle": recording.refused}
    about["windows_refused"] = recording.watch.refused
    about["windows_left"] = recording.watch.left()
    try:
        about["gpu_windows"] = outcomes(recording.folder / "cap")
        write_about(recording.folder, about)
    except OSError:
        recording.refused += 1


def anchor() -> list[int]:
    """One moment on three clocks: [Unix ns, monotonic ns, perf_counter ns]."""
    return [time.time_ns(), time.monotonic_ns(), time.perf_counter_ns()]


def _keep(recording: Recording) -> None:
    turn, due = 0, time.monotonic()
    while not recording.stop.is_set():
        if recording.sampler is not None:
            recording.sampler.turn()
        if turn % ASK_EVERY == 0:
            _ask(recording)
        if turn % SWEEP_EVERY == 0:
            recording.ring.sweep()
            _pack(recording)
        if turn % SAY_EVERY == 0:
            say(recording)
        recording.cpu_ns = time.thread_time_ns()
        turn += 1
        due = max(due + INTERVAL_S, time.monotonic())  # what was missed is not made up for
        recording.stop.wait(due - time.monotonic())
    if recording.sampler is not None:
        recording.sampler.close()
    recording.cpu_ns = time.thread_time_ns()


def _ask(recording: Recording) -> None:
    try:
        asked = recording.watch.poll(time.time_ns())
    except (InputError, OSError):
        recording.refused += 1
        return
    windows: list[dict[str, object]] = recording.about["windows"]
    windows += [one.record() for one in asked]
    del windows[:-MOST_WINDOWS]


def _pack(recording: Recording) -> None:
    """Compress the traces of windows aside: it takes as long as several samples."""
    cap = recording.folder / "cap"
    if (recording.packing is None or not recording.packing.is_alive()) and any(regular_files(cap, "torch-*.json")):
        recording.packing = threading.Thread(target=_compress, args=(cap,), name="teller-pack", daemon=True)
        recording.packing.start()


def _compress(cap: Path) -> None:
    with suppress(OSError):  # what the disk has no room for stays as it is
        compress_traces(cap)
