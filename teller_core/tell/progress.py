"""How far long work is: a line on a terminal, and nothing anywhere else."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Protocol, TextIO

from teller_core.tell.visible import visible

CLEAR = "\r\x1b[K"
COUNTED = ("judge",)
"""Stages that count requests; all others count bytes."""
BESIDE = ("list ", "check ", "unpack ")
"""How the names of stages begin that go over bytes before they are read: each has a bar of its own."""


class Told(Protocol):
    """Called with what is being done, how far it is and how far it goes: bytes (requests in COUNTED stages), 0 where
    nobody knows."""

    def __call__(self, stage: str, done: int, total: int) -> None: ...


@contextmanager
def shown_on(stream: TextIO) -> Generator[Told]:
    """A function that shows progress on ``stream`` where that is a terminal. Nothing of it is left afterwards."""
    if not stream.isatty():
        yield nobody
        return
    said = ("", -2)

    def put(text: str) -> None:
        with suppress(OSError):  # the terminal went away: the work goes on
            stream.write(text)
            stream.flush()

    def tell(stage: str, done: int, total: int) -> None:
        nonlocal said
        share = min(100, 100 * done // total) if total > 0 else -1
        if said != (stage, share):
            said = (stage, share)
            put(CLEAR + _line(stage, share, done, total))

    try:
        yield tell
    finally:
        put(CLEAR)


def _line(stage: str, share: int, done: int, total: int) -> str:
    text = visible(stage[-70:])
    if share < 0:
        return text
    how_far = f"{done:,} of {total:,}" if stage in COUNTED else f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
    return f"{text[-24:]:<24}  [{'#' * (share // 5):<20}] {share:3d} %  {how_far}"


def staged(verb: str, progress: Told) -> Told:
    """``progress`` for a stage before reading, which is named by ``verb`` and the file."""
    return nobody if progress is nobody else lambda stage, done, total: progress(f"{verb} {stage}", done, total)


def part_of(progress: Told, before: int, whole: int) -> Told:
    """``progress`` for reading a part of ``whole`` bytes, ``before`` of which lie before the part: one bar for all parts."""

    def tell(stage: str, done: int, total: int) -> None:
        counts = total <= 0 or stage in COUNTED or stage.startswith(BESIDE)
        progress(stage, done if counts else before + done, total if counts else max(whole, total))

    return nobody if progress is nobody else tell


def nobody(stage: str, done: int, total: int) -> None:
    """A Told that shows nothing."""
