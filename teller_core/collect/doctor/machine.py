"""What the system lets us see from outside the service: counters, clocks, room."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from teller_core.collect import proc
from teller_core.collect.doctor.checks import no, note, partly, yes
from teller_core.collect.ring import MOST_MB
from teller_core.data.report_recording import DoctorCheck

CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
GOOD_CLOCKS = frozenset({"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"})
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
CAP_SYS_PTRACE = 19


def machine_checks(folder: Path) -> Iterator[DoctorCheck]:
    """Counters of processes and cgroups, the clock, ptrace, and room for a recording into ``folder``."""
    own = os.getpid()
    schedstat = proc.ran(_text(proc.schedstat(own, own)).encode()) is not None
    told = "run-queue wait of each thread" if schedstat else "/proc/PID/task/TID/schedstat cannot be read"
    yield (yes if schedstat else no)("waiting for a processor", told, None if schedstat else "Use a kernel that has it")
    missing = [name for name in ("cpu", "io", "memory") if not _readable(Path(proc.PROC) / "pressure" / name)]
    told = "for processors, storage and memory" if not missing else f"cannot be read for {', '.join(missing)}"
    yield (no if len(missing) == 3 else partly if missing else yes)(
        "pressure", told, "Boot with psi=1, or let the container read /proc/pressure" if missing else None
    )
    yield (
        yes("storage I/O", "of each process")
        if any(proc.io(_text(Path(proc.PROC) / str(own) / "io")))
        else no("storage I/O", "/proc/PID/io cannot be read")
    )
    throttled = any(proc.throttling(proc.groups(own), _text))
    told = "of the service's cgroup" if throttled else "its cgroup has no counters of the processor's quota"
    yield (yes if throttled else note)("throttling", told)
    yield _limits()
    yield _clock()
    yield _ptrace()
    yield room(folder)


def room(folder: Path) -> DoctorCheck:
    """Whether a recording of the usual bound fits into ``folder``, or into the nearest folder above it that is there."""
    there = next((place for place in (folder, *folder.absolute().parents) if place.is_dir()), Path("/"))
    if not os.access(there, os.W_OK | os.X_OK):
        return no("room", "the folder to record into may not be written", "Name another one with --to FOLDER")
    free = shutil.disk_usage(there).free >> 20
    if free < MOST_MB:
        told = f"{free:,} MB free, a recording may keep {MOST_MB} MB"
        return partly("room", told, f"Bound it with --most-mb {max(1, free // 2)}, or name another folder")
    return yes("room", f"{free:,} MB free, a recording keeps at most {MOST_MB} MB")


def _limits() -> DoctorCheck:
    processors = len(os.sched_getaffinity(0))
    quota = _text(proc.CGROUP / "cpu.max").split()
    old = _text(proc.CGROUP / "cpu" / "cpu.cfs_quota_us"), _text(proc.CGROUP / "cpu" / "cpu.cfs_period_us")
    given, period = (quota[0], quota[1]) if len(quota) == 2 else (old[0].strip(), old[1].strip())
    if given.isdigit() and period.isdigit() and int(period):
        return note("processors", f"{processors}, of which the container may use {int(given) / int(period):.1f}")
    return note("processors", f"{processors}, without a quota of this container")


def _clock() -> DoctorCheck:
    source = _text(CLOCK).strip()
    if not source:
        return note("clock", "its source cannot be read")
    if source in GOOD_CLOCKS:
        return yes("clock", f"{source}: reading it costs tens of ns")
    return note(
        "clock", f"{source}: reading it costs microseconds, so recording costs more", "Boot with tsc, if it is stable"
    )


def _ptrace() -> DoctorCheck:
    scope = _text(YAMA).strip()
    line = next(
        (line for line in _text(Path(proc.PROC) / "self" / "status").splitlines() if line.startswith("CapEff:")), ""
    )
    able = bool(int(line.split()[1], 16) >> CAP_SYS_PTRACE & 1) if line else False
    if able or scope in ("", "0"):
        return yes("stacks of threads", "other tools may attach to the service (py-spy)")
    return note("stacks of threads", f"ptrace_scope is {scope}: tools as py-spy must be the service's parent, or root")


def _readable(path: Path) -> bool:
    return bool(_text(path))


def _text(path: Path | str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""
