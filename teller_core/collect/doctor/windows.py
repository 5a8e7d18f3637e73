"""What became of the windows of a recording: made or not, with kernels or without, and whether the service stayed slower."""

import json
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from teller_core.collect.about import count_of
from teller_core.collect.cupti.footers import footers, interval
from teller_core.collect.doctor.checks import no, note, partly, yes
from teller_core.collect.doctor.glance import LONGEST_LINE, STEPS, Glance
from teller_core.collect.finished import regular_files
from teller_core.data.report_recording import DoctorCheck
from teller_core.data.slowdown import COMPARED, Slowed, slowed

NEAR = 2 * COMPARED
"""Steps before and after a window whose tokens are read: some are within another window, or serve nobody."""
NOT_OPENED = "not opened"
_RULES = (
    'Record longer, or ask at once: "slow" needs a request at twice the median of 50 or more before it, and a minute since '
    "the last window"
)
REASONS = {
    "other_client": "another client had CUPTI, as torch's profiler has once it ran on the GPU",
    "gave_way": "the program started a profiler of its own",
    "blinded": "CUPTI gives this process no kernels any more",
    "too_many_windows": "its process had as many as are safe",
    "no_cupti": "no CUPTI was found in its process",
    "unknown_version": "its version of CUPTI is not known",
    "no_layout": "nobody said how its CUPTI lays out records",
    "layout_unreadable": "the description of CUPTI's records could not be read",
    "no_thread": "its process may have no more threads",
    "disk": "the disk was full",
}
"""Why a window was refused or ended early, by the library's word."""
_STEP = re.compile(rb'"t": ?(\d{1,19}).*?"name": ?"(?:' + "|".join(map(re.escape, STEPS)).encode() + rb')"')
_PROFILE = re.compile(rb'"t": ?(\d{1,19}).*?"name": ?"(profile_start|profile_stop)"')


def window_checks(about: Mapping[str, Any], cap: Path, seen: Glance) -> Iterator[DoctorCheck]:
    """The checks of the windows that were asked for. Errors: OSError."""
    listed = about.get("windows")
    asked = len(cast("list[Any]", listed)) if isinstance(listed, list) else 0
    made = len(regular_files(cap, "torch-*.json*"))
    gpu = list(footers(cap))
    if asked and not made and not gpu:
        refused = [str(row.get("reason", ""))[:100] for row in seen.rare if row.get("name") == "profile_refused"]
        why = f": {refused[0]}" if refused else ", as no process had torch, or none made a step"
        yield no("windows", f"{asked} asked for, none was made{why}", "Ask while requests run")
    elif made:
        of = f", from {asked:,} {'window' if asked == 1 else 'windows'}" if asked else ""
        yield yes("windows", f"{made:,} {'trace' if made == 1 else 'traces'} of torch's profiler{of}")
    yield from _not_opened(about)
    if lost := seen.names["profile_lost"]:
        yield partly("windows", f"{lost} were lost: no whole trace was written", "Ask for a shorter one")
    if gpu:
        yield _gpu([footer for _, footer in gpu])
    if made or gpu or seen.names["profile_stop"]:
        found = _slowed(cap, [when for _, footer in gpu if footer is not None and (when := interval(footer))])
        if found:
            worst = max(found, key=lambda one: one.share)
            told = (
                f"after {len(found)} of them steps of equal tokens took longer than before it, "
                f"by {worst.share:.0%} at the most ({worst.steps} steps, standard error {worst.spread:.1%})"
            )
            yield partly("after windows", told, "Take the requests after it for slower than they would be without it")


def _not_opened(about: Mapping[str, Any]) -> Iterator[DoctorCheck]:
    """Windows that were asked for and never opened: nobody else would say so."""
    listed = about.get("windows_left")
    left = [str(one)[:32] for one in cast("list[Any]", listed)] if isinstance(listed, list) else []
    if left:
        most = f"{', '.join(left[:4])}{' and more' if len(left) > 4 else ''}"
        yield note(NOT_OPENED, f"{most}: what they wait for did not come", _RULES)
    if refused := count_of(about, "windows_refused"):
        yield note(NOT_OPENED, f"{refused:,} that were due while another was open, or after the last that is allowed")


def _gpu(told: Sequence[dict[str, Any] | None]) -> DoctorCheck:
    part, whole = "GPU windows", [footer for footer in told if footer is not None]
    empty = [footer for footer in whole if not count_of(footer, "kernels")]
    dropped = sum(count_of(footer, name) for footer in whole for name in ("dropped", "late"))
    early = sorted({REASONS[reason] for footer in whole if (reason := str(footer.get("reason"))) in REASONS})
    why = f": {'; '.join(early)}" if early else ""
    if empty:
        said = f"{len(empty)} of {len(told)} hold no kernel{why}"
        return no(part, said, "Leave CUPTI to the recorder" if early else "Ask while requests run on the GPU")
    if dropped or early or len(whole) < len(told):
        said = f"{len(told)}, {len(told) - len(whole)} of them cut, {dropped:,} records dropped{why}"
        return partly(part, said, "Ask for a shorter window")
    return yes(part, f"{len(told)}, {sum(count_of(footer, 'kernels') for footer in whole):,} kernels")


def _slowed(cap: Path, windows: Sequence[tuple[int, int]]) -> list[Slowed]:
    """Windows, of torch's profiler too, after which an engine stayed slower."""
    pieces: defaultdict[str, list[Path]] = defaultdict(list)
    for path in regular_files(cap, "host-*.jsonl"):
        pieces[path.name.split("-")[1].partition(".")[0]].append(path)
    engines: list[_Steps] = []
    known = list(windows)
    for paths in pieces.values():
        steps = _Steps(paths)
        known += steps.windows
        engines += [steps] if steps.times else []
    return [one for steps in engines for one in steps.slowed(known)] if known else []


class _Steps:
    """When an engine chose its steps, and where in its files each says so; the windows of torch's profiler in its process."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.times, self.windows = array("q"), list[tuple[int, int]]()
        self._at, self._paths = array("q"), paths
        begun: int | None = None
        for k, path in enumerate(paths):
            with path.open("rb") as file:
                at = 0
                while line := file.readline(LONGEST_LINE):
                    if found := _STEP.search(line):
                        self.times.append(int(found[1]))
                        self._at.append(k << 48 | at)
                    elif found := _PROFILE.search(line):
                        if found[2] == b"profile_start":
                            begun = int(found[1])
                        elif begun is not None:
                            self.windows.append((begun, int(found[1])))
                            begun = None
                    at += len(line)

    def slowed(self, windows: Sequence[tuple[int, int]]) -> list[Slowed]:
        """Windows after which its steps took longer."""
        import numpy as np

        times = np.array(self.times, dtype=np.int64)
        order = np.argsort(times, kind="stable")
        near = np.zeros(len(times), dtype=np.bool_)
        for start, stop in windows:
            low, high = np.searchsorted(times, start, sorter=order), np.searchsorted(times, stop, sorter=order)
            near[order[max(0, int(low) - NEAR) : int(low)]] = True
            near[order[int(high) : int(high) + NEAR]] = True
        wanted = order[near[order]]
        tokens = np.fromiter(self._tokens(wanted.tolist()), np.int64, len(wanted))
        return slowed(times[wanted][tokens > 0], tokens[tokens > 0], windows)

    def _tokens(self, rows: Sequence[int]) -> Iterator[int]:
        """Tokens of the steps of ``rows``, 0 where they do not tell."""
        files = [path.open("rb") for path in self._paths]
        try:
            for row in rows:
                file = files[self._at[row] >> 48]
                file.seek(self._at[row] & (1 << 48) - 1)
                yield _tokens(file.readline(LONGEST_LINE))
        finally:
            for file in files:
                file.close()


def _tokens(line: bytes) -> int:
    try:
        told = json.loads(line).get("tokens")
    except (ValueError, RecursionError, AttributeError):
        return 0
    values = cast("dict[str, object]", told if isinstance(told, dict) else {}).values()
    return sum(value for value in values if isinstance(value, int) and 0 < value < 1 << 31)
