"""What became of a recording: empty, cut, stalled, hooks off, parts dropped, windows without kernels; and what to do."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from teller_core.collect.about import NAME, count_of, read_about
from teller_core.collect.doctor.checks import no, note, partly, yes
from teller_core.collect.doctor.glance import Glance, glance
from teller_core.collect.doctor.windows import window_checks
from teller_core.collect.finished import regular_files
from teller_core.data.report_recording import DoctorCheck, DoctorReport
from teller_core.errors import InputError

STALLED_NS = 10_000_000_000
"""No step of an engine that has requests takes so long, but for a first one that compiles."""
GAP_NS = 2_000_000_000
"""Twenty samples that were not taken."""
ARRIVED = ("request.received", "request.arrived", "request.added", "request.queued", "cb.add_request")
ENDED = ("request.finished", "request.aborted", "request.ended")
LIBRARIES = {
    "torch": "calls of collectives over Gloo are not in it",
    "nvtx": "ranges of the Python package are not in it",
    "uvicorn": "up to a quarter second before a signal ended a server may be missing",
}
"""What a recording lacks where the hooks of a library were off: no part that everybody needs."""
_SEE_OFF = "See what is off below; why a request was slow needs its steps"
_COUNTS = "Start vLLM with --enable-logging-iteration-details to have them (tier T2): most causes need its steps"


def examine_recording(folder: Path) -> DoctorReport:
    """The checks of the recording in ``folder``. It may still be going on.

    Errors: InputError where it is none, FormatError for one that describes itself in no JSON.
    """
    about = _about(folder)
    alone = not about and not (folder / "cap").is_dir()
    cap = folder if alone else folder / "cap"
    try:
        seen = glance(cap)
        checks = [
            _by_itself() if alone else _end(about, folder),
            *_content(about, seen, _COUNTS if alone else _SEE_OFF),
            *_parts(about, seen),
            *_losses(about, seen),
            *window_checks(about, cap, seen),
            *_samples(folder),
        ]
    except OSError as error:
        why = f"it cannot be read ({(error.strerror or 'no reason given').lower()})"
        raise InputError(folder.name, why, "Ask its owner to let you") from None
    return DoctorReport(subject="recording", name=folder.name, checks=checks)


def _about(folder: Path) -> dict[str, Any]:
    """What the recording says of itself; nothing where only the stat logger wrote here, without us as the parent."""
    left = (one for pattern in ("cap/host-*.jsonl", "stats-*.jsonl") for one in folder.glob(pattern))
    if not (folder / NAME).exists() and any(left):
        return {}
    about = read_about(folder)
    if "merged" in about:
        raise InputError(folder.name, "it holds the recordings of several machines", "Name the folder of one in it")
    return about


def _by_itself() -> DoctorCheck:
    """For a folder of the stat logger's, which nobody closes."""
    told = "there was none around the service: vLLM's stat logger wrote this by itself, and may still do so"
    return note("recorder", told)


def _end(about: Mapping[str, Any], folder: Path) -> DoctorCheck:
    if not count_of(about, "stop_ns"):
        pid = count_of(about, "pid")
        if pid and Path(f"/proc/{pid}").exists():
            return note("end", "it is still going on", "Ask again when it has ended")
        told = "the recorder was ended before it could close it: what was written up to then is there"
        return partly("end", told, f"Import it as it is: teller import {folder.name}")
    status = about.get("exit")
    if isinstance(status, int) and status < 0:
        return note("end", f"the command was ended by signal {-status}")
    if isinstance(status, int) and status > 0:
        return note("end", f"the command ended with status {status}", "Look into the end of server.log")
    return yes("end", "the command ended well, and the recording was closed")


def _content(about: Mapping[str, Any], seen: Glance, for_steps: str) -> Iterator[DoctorCheck]:
    names = seen.names
    steps = names["vllm.schedule"] + names["cb.prepare"] or names["stats.counted"]
    came = max((names[name] for name in ARRIVED), default=0)
    gone = max(max((names[name] for name in ENDED), default=0), names["stats.F"])
    if not seen.files:
        told = "no process wrote anything: the command started no Python that heard of the recorder"
        yield no("requests", told, "Check that it does not clear PYTHONPATH, nor run Python with -E, -I or -S")
        return
    if not came and not gone:
        engine = about.get("engine")
        why = "no request came" if engine else "no engine that is known ran"
        ask = "Send requests while it records" if engine else "See teller doctor for which engines are known"
        yield no("requests", why, ask)
    else:
        yield yes("requests", f"{max(came, gone):,} came, {gone:,} of them ended")
        if not steps:
            yield no("steps", "none was recorded", for_steps)
        else:
            yield yes("steps", f"{steps:,}")
    yield from _stall(about, seen, came - gone)


def _stall(about: Mapping[str, Any], seen: Glance, waiting: int) -> Iterator[DoctorCheck]:
    """An engine that had requests and made no step until the end."""
    end = count_of(about, "stop_ns")
    still = end - seen.last_step
    if waiting > 0 and end and seen.last_step and still > STALLED_NS:
        told = f"the last {still / 1e9:,.0f} s held no step, while {waiting:,} requests had not ended"
        yield partly("stall", told, "Ask why of one of these; see where its processes waited")


def _parts(about: Mapping[str, Any], seen: Glance) -> Iterator[DoctorCheck]:
    """What was off, by the recorder's word and by that of the hooks."""
    off = about.get("off")
    for part, why in cast("dict[str, Any]", off).items() if isinstance(off, dict) else ():
        if why not in ("only vLLM has it", "it was declined"):
            yield note(f"{str(part)[:32]}", f"off: {str(why)[:200]}")
    disabled = {
        (str(row.get("package", ""))[:64], str(row.get("version", ""))[:32])
        for row in seen.rare
        if row.get("name") == "hooks_disabled"
    }
    if about.get("engine") == "vllm":  # which has transformers inside, and serves without it
        disabled = {(package, version) for package, version in disabled if package != "transformers"}
    for package, version in sorted(disabled):
        if package in LIBRARIES:
            told = f"off in {package} {version}, which is none that its hooks were tested on: {LIBRARIES[package]}"
            yield note("hooks", told, "See teller doctor for the versions that are known")
            continue
        told = f"off in {package} {version}: not a version that they were tested on, or not as it was there"
        yield partly("hooks", told, "See teller doctor for the versions that are known")
    errors: Counter[tuple[str, str]] = Counter()
    for row in seen.rare:
        if row.get("name") == "hook_error" and isinstance(row.get("count"), int):
            key = (str(row.get("mod", ""))[:64], str(row.get("err", ""))[:64])
            errors[key] = max(errors[key], row["count"])
    if errors:
        told = ", ".join(f"{mod or 'a hook'} {err} ({count:,})" for (mod, err), count in errors.most_common(3))
        yield partly("hooks", f"failed and went unnoticed by the service: {told}", "Report it as an issue")


def _losses(about: Mapping[str, Any], seen: Glance) -> Iterator[DoctorCheck]:
    ring = _table(about, "ring")
    dropped = {
        name: cast("dict[str, Any]", gone) for name, gone in _table(ring, "dropped").items() if isinstance(gone, dict)
    }
    if dropped:
        size = sum(count_of(gone, "bytes") for gone in dropped.values())
        most = count_of(ring, "most_bytes") >> 20
        told = f"the oldest {size >> 20:,} MB of {len(dropped)} files were dropped, to keep within {most:,} MB"
        yield partly("bound", told, "Record for a shorter time, or allow more with --most-mb or --most-minutes")
    lost = {name: count_of(_table(about, "lost"), name) for name in ("samples", "bundle")}
    lost["stat logger"] = count_of(seen.cost, "lost")
    if any(lost.values()):
        told = "the disk refused " + ", ".join(f"{count:,} ({name})" for name, count in lost.items() if count)
        yield partly("disk", told, "Record where there is room")
    if seen.cut:
        yield note(
            "last lines",
            f"cut in {', '.join(seen.cut[:3])}{' and more' if len(seen.cut) > 3 else ''}: a process was killed",
        )


def _samples(folder: Path) -> Iterator[DoctorCheck]:
    """Whether the recorder itself was held up: then the machine was short of processors."""
    times: list[int] = []
    for path in regular_files(folder, "samples*.jsonl"):
        with path.open("rb") as file:
            for line in file:
                head = line[:40].partition(b'"t":')[2].strip().split(b",")[0]
                if head.isdigit():
                    times.append(int(head))
    times.sort()
    gaps = [after - before for before, after in pairwise(times) if after - before > GAP_NS]
    if gaps:
        told = f"none for {max(gaps) / 1e9:,.1f} s at the longest: the recorder itself got no processor, or the machine slept"
        yield note("samples", told)


def _table(about: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = about.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
