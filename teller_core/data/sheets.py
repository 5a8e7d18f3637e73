"""Sheets: what the root-cause model reads of one step or one request. Columns; what several rows tell stands in parts.

Whatever can be is relative, a share of the stretch or the log over what is usual in the same capture, so that one service teaches
about another. What nobody recorded is NaN, and an empty part: a sheet of a lower tier is one with less in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cache
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np

from teller_core.data.causes import causes
from teller_core.data.parts import PHASES, RESOURCES
from teller_core.data.sheet_parts import (
    PARTS,
    SAID_NUMBERS,
    Facts,
    Pieces,
    Said,
    Suspects,
    Together,
    joined_rows,
    no_rows,
)
from teller_core.data.table import UNKNOWN, Float32, Int32, Int64, Mask, UInt8, rows, take

LAYOUT = 1
"""Raised whenever a number comes to mean something else under the same name."""
COUNTERS = (
    "run_ns",
    "run_queue_wait_ns",
    "pressure_cpu_some_us",
    "pressure_io_some_us",
    "pressure_memory_some_us",
    "cgroup_throttled_us",
    "involuntary_switches",
    "voluntary_switches",
    "write_bytes",
    "machine_busy_ns",
)
"""Growth a second of the time, all processes of the path together: log1p of a share, see ``judge.step_numbers``."""
PAUSES = ("gc", "thread_lag", "stop_signal")
ZONES = ("way", "in", "out", "back")
"""A request outside its engine: on the way to the front end, in it, in it after its last step, on the way back."""
CHARGES = ("whole", "over", "collection", "starved", "stood", "worked", "rest")
METRICS = ("ttft", "tpot", "itl_max", "e2e")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "times": ("took", "before", "wait", "run", "out"),
    "over": (
        "over",
        "residual",
        "excess",
        "around",
        "unusual",
        "worst_over",
        "worst_residual",
        "worst_excess",
        "slow_share",
    ),
    "work": ("context", "generation", "kv", "prefill", "mixed", "kv_usage", "preempted", "batch"),
    "host": COUNTERS,
    "threads": ("waited", "asleep", "crowded", "kept_rank", "others_kept"),
    "pauses": (*PAUSES, *(f"front {kind}" for kind in PAUSES)),
    "holds": ("over", "observed", "collection", "prompts", "starved", "device", "rest", "asleep", "crowded", "gaps"),
    "zones": tuple(f"{zone} {charge}" for zone in ZONES for charge in CHARGES),
    "phases": PHASES,
    "resources": RESOURCES,
    "asked": tuple(f"{metric} {of}" for metric in METRICS for of in ("over_work", "over_load", "residual")),
    "request": (
        *METRICS,
        "way",
        "tokenizing",
        "queue",
        "prefill",
        "delivery",
        "prompt",
        "output",
        "cached",
        "preempted",
        "failed",
    ),
    "ranks": ("spread", "wait", "late_share", "transfer", "ranks"),
    "profile": ("spans", "work", "silence", "device", "largest", "profiled"),
    "service": ("step_ns", "at_once", "front_apart", "steps"),
}
"""By group, its numbers. A step has no ``zones``, ``phases``, ``resources``, ``asked`` and ``request``; of a request what steps
have is the mean over its steps, each weighted by its time, and ``worst`` that of its most suspicious one.
"""
NUMBERS: tuple[str, ...] = tuple(f"{group}.{name}" for group, names in GROUPS.items() for name in names)
CLUE = ("cost", "sure", "told")
"""Of the rule of a cause: the share of the stretch that it says it cost (0: it ran and saw nothing; NaN: what it looks at was not
recorded), how direct its evidence is (0 to 1, 0 where it saw nothing), and whether rules alone would tell it: 1 for the dearest,
1/2 for the next one, and so on, 0 for none.
"""
Float32x3 = np.ndarray[tuple[int, int, int], np.dtype[np.float32]]
Float32x2 = np.ndarray[tuple[int, int], np.dtype[np.float32]]


class Kind(IntEnum):
    """What a sheet is of."""

    STEP = 0
    REQUEST = 1


class View(IntEnum):
    """Which way it looks: down the stack of a step, or across its ranks. A request is looked at both ways at once: VERTICAL."""

    VERTICAL = 0
    HORIZONTAL = 1


@dataclass(frozen=True)
class Sheets:
    """One row a sheet. ``kind``, ``view``; ``tier``: the capture's; ``position``: of the step or the request in its capture;
    ``step``: which one ``pieces`` and ``suspects`` are of, -1 for none; ``span`` int64 ns: what shares are shares of, UNKNOWN;
    ``numbers`` float32 [sheets, NUMBERS]; ``clues`` float32 [sheets, causes in the order of :func:`cause_ids`, CLUE].

    ``X_at`` [sheets + 1]: the rows of part X of sheet ``i`` are ``X_at[i]`` to ``X_at[i + 1]``. Positions in a part count from
    the first row of its sheet. ``vocabulary``: the hash of that of Trace Pair Encoding, empty where no sheet has tokens.
    """

    kind: UInt8
    view: UInt8
    tier: UInt8
    position: Int32
    step: Int32
    span: Int64
    numbers: Float32x2
    clues: Float32x3
    pieces: Pieces
    pieces_at: Int32
    suspects: Suspects
    suspects_at: Int32
    said: Said
    said_at: Int32
    facts: Facts
    facts_at: Int32
    together: Together
    together_at: Int32
    vocabulary: str = ""

    def __len__(self) -> int:
        return len(self.kind)

    def of(self, part: str, sheet: int) -> slice:
        """The rows of ``part`` that belong to ``sheet``."""
        at = getattr(self, f"{part}_at")
        return slice(int(at[sheet]), int(at[sheet + 1]))

    def check(self) -> None:
        """Raise ValueError where columns differ in length, a part is longer than it may be or points outside its sheet."""
        count = len(self)
        lengths = {name: len(getattr(self, name)) for name in COLUMNS}
        if set(lengths.values()) - {count}:
            raise ValueError(f"columns differ in length: {lengths}")
        shapes = (self.numbers.shape, self.clues.shape)
        if shapes != ((count, len(NUMBERS)), (count, len(cause_ids()), len(CLUE))):
            raise ValueError(f"the numbers are of other shapes than these of this program: {shapes}")
        if np.isinf(self.numbers).any() or np.isinf(self.clues).any():
            raise ValueError("a number is infinite")
        for part, most in PARTS.items():
            at, table = getattr(self, f"{part}_at"), getattr(self, part)
            table.check()
            if len(at) != count + 1 or int(at[0]) != 0 or int(at[-1]) != rows(table):
                raise ValueError(f"the rows of {part} are not those of the sheets")
            many = np.diff(at)
            if np.any(many < 0) or np.any(many > most):
                raise ValueError(f"a sheet has fewer than no rows of {part}, or more than {most}")
        self._check_inside()

    def _check_inside(self) -> None:
        pieces, many = np.diff(self.pieces_at), np.diff(self.suspects_at)
        place = np.arange(rows(self.pieces)) - np.repeat(self.pieces_at[:-1], pieces)
        if np.any(self.pieces.parent >= place) or np.any(self.pieces.parent < -1):
            raise ValueError("a piece hangs below none that comes before it in its sheet")
        if np.any(self.suspects.piece >= np.repeat(pieces, many)) or np.any(self.suspects.piece < -1):
            raise ValueError("a suspect lies in a piece that is not in its sheet")


COLUMNS = ("kind", "view", "tier", "position", "step", "span", "numbers", "clues")
"""The columns of :class:`Sheets` with a row a sheet."""
AnyPart = TypeVar("AnyPart", Pieces, Suspects, Said, Facts, Together)


@cache
def cause_ids() -> tuple[str, ...]:
    """The causes of the taxonomy in its order: that of ``clues``."""
    return tuple(causes())


@cache
def place_of() -> Mapping[str, int]:
    """Where each number stands in ``numbers``, by its name in NUMBERS."""
    return {name: at for at, name in enumerate(NUMBERS)}


@cache
def layout_hash() -> str:
    """Of all that gives a sheet's numbers their meaning: what was learned from sheets of another layout must not read these."""
    empty = no_sheets()
    columns = {name: [f.name for f in fields(getattr(empty, name))] for name in PARTS}
    text = repr((LAYOUT, NUMBERS, cause_ids(), CLUE, sorted(PARTS.items()), sorted(columns.items()), SAID_NUMBERS))
    return sha256(text.encode()).hexdigest()[:16]


def no_sheets(count: int = 0, vocabulary: str = "") -> Sheets:
    """``count`` sheets of which nothing is known, all vertical ones of step 0."""
    none, at = np.zeros(count, np.uint8), np.zeros(count + 1, np.int32)
    return Sheets(
        kind=none,
        view=none.copy(),
        tier=none.copy(),
        position=np.zeros(count, np.int32),
        step=np.full(count, -1, np.int32),
        span=np.full(count, UNKNOWN, np.int64),
        numbers=np.full((count, len(NUMBERS)), np.nan, np.float32),
        clues=np.full((count, len(cause_ids()), len(CLUE)), np.nan, np.float32),
        pieces=no_rows(Pieces),
        pieces_at=at,
        suspects=no_rows(Suspects),
        suspects_at=at.copy(),
        said=no_rows(Said),
        said_at=at.copy(),
        facts=no_rows(Facts),
        facts_at=at.copy(),
        together=no_rows(Together),
        together_at=at.copy(),
        vocabulary=vocabulary,
    )


def taken(sheets: Sheets, index: Int64 | Mask) -> Sheets:
    """The sheets at ``index``, positions or a mask, in its order."""
    where = np.flatnonzero(index) if index.dtype == np.bool_ else np.asarray(index, np.int64)
    given: dict[str, Any] = {name: getattr(sheets, name)[where] for name in COLUMNS}
    for part in PARTS:
        at = getattr(sheets, f"{part}_at").astype(np.int64)
        many = at[where + 1] - at[where]
        ends = np.append(0, np.cumsum(many))
        picked = np.arange(int(ends[-1])) + np.repeat(at[where] - ends[:-1], many)
        given[part], given[f"{part}_at"] = take(getattr(sheets, part), picked), ends.astype(np.int32)
    return Sheets(**given, vocabulary=sheets.vocabulary)


def joined(several: Sequence[Sheets]) -> Sheets:
    """The sheets of all of ``several``, one behind the other. Raises ValueError where their tokens are of two vocabularies."""
    vocabularies = {sheets.vocabulary for sheets in several if sheets.vocabulary}
    if len(vocabularies) > 1:
        raise ValueError("sheets of two vocabularies cannot be joined")
    if not several:
        return no_sheets()
    given: dict[str, Any] = {name: np.concatenate([getattr(sheets, name) for sheets in several]) for name in COLUMNS}
    for part in PARTS:
        given[part] = joined_rows([getattr(sheets, part) for sheets in several])
        many = np.concatenate([np.diff(getattr(sheets, f"{part}_at")) for sheets in several])
        given[f"{part}_at"] = np.append(0, np.cumsum(many)).astype(np.int32)
    return Sheets(**given, vocabulary=next(iter(vocabularies), ""))


def with_rows(at: Sequence[int]) -> Int32:
    """int32: the ``X_at`` of sheets with so many rows each."""
    return np.append(0, np.cumsum(np.asarray(at, np.int64))).astype(np.int32)


def numbers_of(given: Mapping[str, float | np.floating[Any]]) -> Float32:
    """float32 [NUMBERS]: those of ``given``, by name, and NaN for all others. Raises KeyError for a name that is none."""
    out, place = np.full(len(NUMBERS), np.nan, np.float32), place_of()
    for name, value in given.items():
        out[place[name]] = value
    return out
