"""Bundles of several machines become one: each in a folder of its own name, so that processes with one pid stay apart.

``bundle.json`` of the merged one lists the machines with what their own say of their clocks. Nothing is changed in the files:
reading lays the clocks on one another, by what bounds them.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from teller_core.collect.about import NAME, SCHEMA, read_about, write_about
from teller_core.collect.finished import copy_files, finished_files
from teller_core.data.report_recording import MergedMachine, MergeReport
from teller_core.errors import InputError

MOST = 1 << 62
"""ns of a time, or us of an error, beyond which a file is wrong."""
KEPT = ("host", "clock", "anchors", "start_ns", "stop_ns", "pid", "command", "exit")


def merge(bundles: Sequence[Path], target: Path) -> MergeReport:
    """Copy ``bundles`` into the new or empty folder ``target`` as one bundle.

    Raises InputError for fewer than two, for one that is no bundle or is merged already, for one named twice, and for a
    target that is in use or cannot be written.
    """
    if len(bundles) < 2:
        raise InputError("The bundles", "one alone has nothing to be merged with", "Name the bundle of each machine")
    roots = [bundle.resolve() for bundle in bundles]
    if len(set(roots)) < len(roots):
        raise InputError("The bundles", "one is named twice", "Name the bundle of each machine once")
    if any(one in other.parents for one in roots for other in roots):
        raise InputError(
            "The bundles", "one lies in another", "Name the bundle of each machine, each outside the others"
        )
    abouts = [_about(bundle) for bundle in bundles]
    _check_target(target, roots)
    names = machine_names(roots)
    machines: list[MergedMachine] = []
    there = target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        for root, name, about in zip(roots, names, abouts, strict=True):
            files, size = copy_files(finished_files(root), root, target / name)
            machines.append(_machine(name, about, files, size))
        merged = [{"name": name, **_kept(about)} for name, about in zip(names, abouts, strict=True)]
        write_about(target, {"schema": SCHEMA, "engine": _engine(abouts), "merged": merged, **_span(abouts)})
    except OSError as error:
        for half in [target / name for name in names] if there else [target]:
            shutil.rmtree(half, ignore_errors=True)
        reason = (error.strerror or "the system refused it").lower()
        raise InputError("The merged bundle", f"it cannot be written ({reason})", "Name a folder with room") from None
    return MergeReport(
        folder=str(target),
        machines=machines,
        same_clock=_same_machine(abouts),
        clock_error_ms=_error_ms(abouts),
        clock_note=_note(abouts),
    )


def machine_names(roots: Sequence[Path]) -> list[str]:
    """A name for each of several folders: the first part of its path in which they differ, as reading them together names
    them, numbered where two share it. None is hidden: reading leaves out what is.
    """
    common = Path(os.path.commonpath(roots))
    parts = [root.relative_to(common).parts or (root.name,) for root in roots]
    names: list[str] = []
    for part in parts:
        taken = {*names, NAME}
        words = [word.lstrip(".") for word in part]
        name = next((word for word in words if word and word not in taken), f"{words[0] or 'machine'}-{len(names) + 1}")
        names.append(name)
    return names


def _about(bundle: Path) -> dict[str, Any]:
    """What ``bundle`` says of itself, if it is of one machine."""
    about, what = read_about(bundle), f"The recording {bundle.name}"
    if not isinstance(about.get("schema"), int):
        raise InputError(what, "its bundle.json is none of ours", "Name a folder that was recorded")
    if "merged" in about:
        raise InputError(what, "it is merged already", "Merge the bundles of the machines themselves, all at once")
    return about


def _check_target(target: Path, roots: Sequence[Path]) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError("The folder to merge into", "it is not empty", "Name a new folder")
    if any(target.resolve().is_relative_to(root) for root in roots):
        raise InputError("The folder to merge into", "it lies in one of the bundles", "Name one outside of them")


def _kept(about: Mapping[str, Any]) -> dict[str, Any]:
    return {key: about[key] for key in KEPT if key in about}


def _engine(abouts: Sequence[Mapping[str, Any]]) -> str:
    return next((str(about["engine"]) for about in abouts if about.get("engine")), "")


def _span(abouts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """From the first start to the last stop, by the machines' own clocks; without what none says."""
    found: dict[str, int] = {}
    for key, of in (("start_ns", min), ("stop_ns", max)):
        times = [time for about in abouts if (time := _whole(about.get(key))) is not None]
        if len(times) == len(abouts):
            found[key] = of(times)
    return found


def _clock(about: Mapping[str, Any]) -> dict[str, Any]:
    clock = about.get("clock")
    return cast("dict[str, Any]", clock) if isinstance(clock, dict) else {}


def _error_us(about: Mapping[str, Any]) -> int | None:
    return _whole(_clock(about).get("max_error_us"))


def _whole(value: object) -> int | None:
    """``value`` where it is a count or a time that can be one: what a file says is taken for no more than it may be."""
    return value if type(value) is int and 0 <= value < MOST else None


def _same_machine(abouts: Sequence[Mapping[str, Any]]) -> bool:
    machines = {str(_clock(about).get("machine") or "") for about in abouts}
    return len(machines) == 1 and "" not in machines


def _error_ms(abouts: Sequence[Mapping[str, Any]]) -> float | None:
    """ms by which the clocks of any two may differ, by what their kernels say; None where one does not."""
    if _same_machine(abouts):
        return 0.0
    errors = sorted(error for about in abouts if (error := _error_us(about)) is not None)
    return round(sum(errors[-2:]) / 1000, 3) if len(errors) == len(abouts) else None


def _note(abouts: Sequence[Mapping[str, Any]]) -> str:
    if _same_machine(abouts):
        return "all were recorded on one machine, with one clock"
    if _error_ms(abouts) is not None:
        return "by what the machines' kernels say of their clocks; collectives may bound them closer when they are read"
    return "a machine does not say how good its clock is: only collectives can bound them, when they are read"


def _machine(name: str, about: Mapping[str, Any], files: int, size: int) -> MergedMachine:
    error = _error_us(about)
    return MergedMachine(
        name=name,
        host=str(about.get("host") or ""),
        files=files,
        bytes=size,
        clock_error_ms=None if error is None else error / 1000,
    )
