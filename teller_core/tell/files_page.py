"""The files and ranks of a capture, as a page shows them."""

from collections.abc import Sequence

from teller_core.data.losses import loss
from teller_core.data.report import CaptureReport, FileReport
from teller_core.tell.layout import Style, many, plain, wrap
from teller_core.tell.next_calls import processes

BROKEN = "broken_file"
MOST = 12
"""Files of a capture that are named one by one; more are told together, a line a format and what was lost of it."""


def file_lines(files: Sequence[FileReport], style: Style) -> list[str]:
    """How each file was read and what was lost of it, or, of many, of all that fared alike."""
    if len(files) <= MOST:
        told = [[file] for file in files]
    else:
        alike: dict[tuple[str, ...], list[FileReport]] = {}
        for file in files:
            alike.setdefault((file.format, *_lost(file)), []).append(file)
        told = list(alike.values())
    return [line for some in told for line in wrap(f"{_named(some)}: {_read(some)}", style, "  ", "    ")]


def ranks_of(report: CaptureReport) -> str:
    """How many ranks, and in how many recordings, where a process was recorded several times."""
    one = processes(report)
    if one == len(report.ranks):
        return many(one, "rank")
    return f"{many(one, 'rank')} in {len(report.ranks):,} recordings"


def _named(files: Sequence[FileReport]) -> str:
    first = plain(files[0].name, 120)
    return first if len(files) == 1 else f"{first} and {many(len(files) - 1, 'file')} like it"


def _read(files: Sequence[FileReport]) -> str:
    if not files[0].format:
        return f"not read ({', '.join(files[0].problems).replace('_', ' ')})"
    if BROKEN in files[0].problems and not files[0].events_kept:
        return f"{files[0].format}, damaged or cut short: nothing of it is used"
    kinds = list(dict.fromkeys(kind for file in files for kind in file.events_other))
    beside = [(kind, sum(file.events_other.get(kind, 0) for file in files)) for kind in kinds]
    kept, whole = sum(file.events_kept for file in files), sum(file.events_in_file for file in files)
    others = "".join(f", {count:,} {kind.replace('_', ' ')}" for kind, count in beside if count)
    lost = {name: sum(file.problems.get(name, 0) for file in files) for name in _lost(files[0])}
    said = "".join(f"; {loss(name).words} ({count:,})" for name, count in lost.items())
    return f"{files[0].format}, {kept:,} of {whole:,} events kept{others}{said}"


def _lost(file: FileReport) -> list[str]:
    return sorted(name for name, count in file.problems.items() if count)
