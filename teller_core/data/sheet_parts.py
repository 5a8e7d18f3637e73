"""The parts of a sheet: tables with several rows a sheet, as :mod:`sheets` puts them together."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import numpy as np

from teller_core.data.table import Float32, Float64, Int32, Int64, Text, UInt8, check_columns, columns

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Part = TypeVar("Part", bound=DataclassInstance)
else:
    Part = TypeVar("Part")

SAID_NUMBERS = 4
"""Numbers of a log line that are kept."""


@dataclass(frozen=True)
class Pieces:
    """Vertical: tokens of the step's spans, rank by rank in pre-order; of more than may be, those that took most own time and all
    they hang below. Horizontal: the step's collectives on all ranks in order of their begin.

    ``symbol`` int32 into the vocabulary, -1 for a collective; ``run`` int32 neighbors alike that it counts; ``parent`` int32 in
    this sheet, -1; ``depth`` int32; ``layer`` uint8 of its heaviest span; ``rank`` int32 into ``Capture.ranks``, ``row`` int32 of
    the rank's tree, of the heaviest span, -1; ``own`` int64 ns; ``wait`` int64 ns that a collective waited for the last rank,
    UNKNOWN; ``residual`` float32: log of ``own`` over what is usual for it here, NaN; ``share`` float32 of the step; ``begin``
    float32: the share of the step that had gone when it began; ``name``: of its heaviest span, untrusted text, cleaned.
    """

    symbol: Int32
    run: Int32
    parent: Int32
    depth: Int32
    layer: UInt8
    rank: Int32
    row: Int32
    own: Int64
    wait: Int64
    residual: Float32
    share: Float32
    begin: Float32
    name: Text

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class Suspects:
    """What numbers suspect in the step, what adds most first.

    ``name``: untrusted text, cleaned; ``layer`` uint8; ``rank`` int32 position and ``row`` int32 of its tree (-1: of all calls);
    ``value``, ``normal`` int64 ns; ``residual`` float32: robust standard deviations of log time, NaN; ``share`` float32: what it
    adds, of the step; ``piece`` int32 of this sheet that it lies in, -1; ``method``: which localizer suspects it.
    """

    name: Text
    layer: UInt8
    rank: Int32
    row: Int32
    value: Int64
    normal: Int64
    residual: Float32
    share: Float32
    piece: Int32
    method: Text

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class Said:
    """Log lines of the stretch, by time.

    ``line`` int32 in ``Capture.lines``; ``rule`` that knows it, empty; ``level``, empty; ``untrusted_text``: its words, cleaned
    and shortened, a number in it as ``#`` and the name of a request as ``*``; ``begin`` float32: the share of the stretch that
    had gone, 1 where it has no time; ``own`` uint8: it names the request, or the step; ``numbers`` float32 [rows, SAID_NUMBERS]:
    signed log1p, NaN.
    """

    line: Int32
    rule: Text
    level: Text
    untrusted_text: Text
    begin: Float32
    own: UInt8
    numbers: "np.ndarray[tuple[int, int], np.dtype[np.float32]]"

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)
        if self.numbers.shape != (len(self.line), SAID_NUMBERS):
            raise ValueError("a line has another number of numbers")


@dataclass(frozen=True)
class Facts:
    """The evidence of every clue, as :class:`EvidenceItem`: what words may cite. The dearest cause first.

    ``cause``: which clue it belongs to; ``name``, ``unit``, ``kind``, ``scope``: empty for none; ``value``, ``normal`` float64 as
    they are read, NaN; ``share`` float32 of the stretch and ``sure`` float32 of the clue as a whole; ``step`` and ``rank`` (its
    position) int32, -1; ``operator``: what the clue blames, untrusted text, cleaned, empty; ``span``: RANK:ROW, empty; ``line``
    int32 in ``Capture.lines``, -1; ``horizontal`` uint8: the clue is between ranks.
    """

    cause: Text
    name: Text
    value: Float64
    normal: Float64
    unit: Text
    kind: Text
    scope: Text
    share: Float32
    sure: Float32
    step: Int32
    rank: Int32
    operator: Text
    span: Text
    line: Int32
    horizontal: UInt8

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class Together:
    """The ranks that worked on the step, or on all steps of the request: those first that others waited for most.

    ``rank`` int32 position in ``Capture.ranks``; float32: ``lasted`` log over the median of the ranks; of the time ``waited`` for
    others, ``waited_for`` by others, ``transfer``; ``late``: share of the meetings to which it came last; ``kept``: share of the
    time in which its thread waited for a processor or its process stood still; NaN. ``collectives`` int32.
    """

    rank: Int32
    lasted: Float32
    waited: Float32
    waited_for: Float32
    transfer: Float32
    late: Float32
    kept: Float32
    collectives: Int32

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


PARTS = {"pieces": 128, "suspects": 8, "said": 16, "facts": 24, "together": 16}
"""By part, the most rows a sheet has of it."""


def no_rows(part: type[Part]) -> Part:
    """A table of this part without rows: the same one every time."""
    return _empty(part)


@cache
def _empty(part: Any) -> Any:
    hints = get_type_hints(part)
    given: dict[str, Any] = {}
    for field in fields(part):
        if hints[field.name] == Text:
            given[field.name] = []
            continue
        shape = (0, SAID_NUMBERS) if field.name == "numbers" else (0,)
        given[field.name] = np.empty(shape, hints[field.name].__args__[1].__args__[0])
    return part(**given)


def joined_rows(several: Sequence[Part]) -> Part:
    """The rows of all of ``several``, one behind the other."""
    given: dict[str, Any] = {}
    for name, first in columns(several[0]).items():
        each = [getattr(table, name) for table in several]
        given[name] = (
            np.concatenate(each) if isinstance(first, np.ndarray) else [cell for part in each for cell in part]
        )
    return type(several[0])(**given)
