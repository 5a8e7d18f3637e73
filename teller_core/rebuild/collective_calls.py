"""The collectives in the traces of all ranks, each with what is said of it: by its own arguments, and by who launched it.

PyTorch says of a collective which group, number and size it has, in the arguments of ``record_param_comms`` (since 2.1 all of it,
the number since 2.5; before, only shapes) and, since 2.2, in those of NCCL's kernels. A kernel whose name says nothing takes what
the calls above its launch say.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from teller_core.data.capture import Rank
from teller_core.data.records import CollectiveFact
from teller_core.data.steps import StepWork
from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.trace import Layer, Trace
from teller_core.data.tree import ROOT, Tree
from teller_core.rebuild.collective_kinds import SEND, TALK, Kind, kind_of, kinds_of
from teller_core.rebuild.collective_roots import (
    MOST_RANKS,
    OPERATORS,
    UNSAID,
    Ends,
    ends_called,
    ends_of,
    ends_said,
    handed_over,
    only_group,
    with_caller,
)

COMMS = "record_param_comms"
RAN = re.compile(r"gloo:(?!send|recv)")
"""Host ranges that last as long as their collective: Gloo's own, on its threads. Others only hand it over."""
MAX_ELEMENTS = 1 << 60

Bool = npt.NDArray[np.bool_]


class Key(NamedTuple):
    """Which collective: ranks with equal keys met. ``size``: how many ranks must meet, 0 where not known. ``how`` it is known:
    ``sequence``, ``recorder``, ``step`` or ``order``."""

    group: str
    first: int
    second: int
    size: int
    how: str


class Said(NamedTuple):
    """What is said of one collective; empty, 0 or -1 where nothing is."""

    group: str = ""
    size: int = 0
    sequence: int = -1
    elements: int = -1
    dtype: str = ""
    word: str = ""
    """The producer's word for its kind."""
    ends: Ends = UNSAID


NOTHING = Said()


class Call(NamedTuple):
    """One collective of one rank (position in Capture.ranks), on its own clock. ``called``: when the host handed it over."""

    rank: int
    row: int
    step: int
    start: int
    dur: int
    called: int
    kind: Kind
    said: Said = NOTHING
    key: Key | None = None

    @property
    def paired(self) -> bool:
        """Whether it is a send or recv of which both sides are told."""
        ends = self.said.ends
        return self.kind == SEND and min(ends) >= 0 and ends.source != ends.target


def traced_calls(i: int, rank: Rank, work: StepWork) -> list[Call]:
    """The collectives in the trace of the rank at position ``i``, by time; those of its device and those that Gloo ran."""
    tree = rank.tree
    if tree is None:
        return []
    trace, rows = tree.trace, _rows(tree.trace)
    if not len(rows):
        return []
    known = kinds_of(trace.names)
    definite = np.array([kind is not None and kind.definite for kind in known], dtype=np.bool_)
    comms = np.array([name == COMMS for name in trace.names], dtype=np.bool_)
    talks = trace.layer == int(Layer.COMMUNICATION)
    named = _above(tree, rows, definite[trace.name] & talks).tolist()
    told = _above(tree, rows, comms[trace.name]).tolist()
    called = _called(tree, rows).tolist()
    steps = _steps_of(rows, trace.start[rows], i, work).tolist()
    said_by, ends_by = _reader(trace), _ends_by(tree, rows)
    calls: list[Call] = []
    for k, row in enumerate(rows.tolist()):
        said = _joined(said_by(row), _joined(said_by(told[k]), _shape(said_by(named[k]))))
        ends, word = (said.ends, said.word) if said.ends != UNSAID else ends_by.get(row, (UNSAID, ""))
        said = said._replace(ends=with_caller(ends, word, rank.rank)) if ends != UNSAID else said
        above = known[int(trace.name[named[k]])] if named[k] != ROOT else None
        kind = _kind(known[int(trace.name[row])], said.word, above)
        calls.append(Call(i, row, steps[k], int(trace.start[row]), int(trace.dur[row]), called[k], kind, said))
    return calls


def recorded_calls(i: int, facts: Sequence[CollectiveFact]) -> list[Call]:
    """The collectives of the rank at position ``i`` that a recorder timed, by time. NCCL counts those of each kind apart."""
    calls: list[Call] = []
    for fact in facts:
        if fact.timed and fact.started <= fact.finished:
            kind = kind_of(fact.name) or TALK
            size = len(fact.members) or fact.size
            key = Key(f"group {fact.group} {kind.name}", fact.sequence, 0, size, "recorder")
            said = Said(
                f"group {fact.group}", size, fact.sequence, -1 if fact.elements is None else fact.elements, fact.dtype,
                ends=ends_of(kind.name, fact.root),
            )  # fmt: skip
            called = fact.started if fact.time == UNKNOWN else fact.time
            calls.append(Call(i, -1, -1, fact.started, fact.finished - fact.started, called, kind, said, key))
    return sorted(calls, key=lambda call: call.start)


def _kind(own: Kind | None, word: str, above: Kind | None) -> Kind:
    """What was called, where the name of the kernel itself does not say. The word of the arguments is nearer to it than an
    operator above, which may be a whole layer."""
    if own is not None and own.definite:
        return own
    return next((kind for kind in (kind_of(word) if word else None, above, own) if kind is not None), TALK)


def _rows(trace: Trace) -> Int64:
    """The rows that last as long as a collective, by time."""
    rows = np.flatnonzero(trace.layer == int(Layer.COMMUNICATION))
    ran = np.array([RAN.match(name) is not None for name in trace.names], dtype=np.bool_)
    rows = rows[trace.on_device[rows] | ran[trace.name[rows]]]
    return rows[np.argsort(trace.start[rows], kind="stable")].astype(np.int64)


def _above(tree: Tree, rows: Int64, wanted: Bool) -> Int64:
    """int64: the nearest of each row and its ancestors that is ``wanted`` (bool a row of the tree), -1 for none."""
    found = np.full(len(rows), ROOT, dtype=np.int64)
    at, live = rows.copy(), np.arange(len(rows))
    while len(live):
        hit = wanted[at[live]]
        found[live[hit]] = at[live[hit]]
        live = live[~hit]
        at[live] = tree.parent[at[live]]
        live = live[at[live] != ROOT]
    return found


def _ends_by(tree: Tree, rows: Int64) -> dict[int, tuple[Ends, str]]:
    """What the operators that called ``rows`` say of their ends, by row, and the name of each."""
    trace = tree.trace
    asked = np.array([name in OPERATORS for name in trace.names], dtype=np.bool_)
    above = _above(tree, rows, asked[trace.name])
    known = above != ROOT
    called = dict(zip(rows[known].tolist(), above[known].tolist(), strict=True)) | handed_over(trace, rows)
    members = only_group(trace.origin.groups, trace.origin.rank)
    found: dict[int, tuple[Ends, str]] = {}
    for row, operator in called.items():
        name, arg = trace.names[int(trace.name[operator])], int(trace.arg[operator])
        found[row] = (ends_called(name, trace.args[arg], members) if arg >= 0 else UNSAID, name)
    return found


def _called(tree: Tree, rows: Int64) -> Int64:
    """int64 ns: when the call above a device row launched it; the row's own start where that is not in the file."""
    above = tree.parent[rows].astype(np.int64)
    launched = tree.trace.on_device[rows] & (above != ROOT)
    return np.where(launched, tree.trace.start[above], tree.trace.start[rows])


def _steps_of(rows: Int64, start: Int64, rank: int, work: StepWork) -> Int64:
    """The step of each row: whose rows hold it, else (Gloo's threads) whose time on this rank does; -1 for none."""
    own = np.flatnonzero((work.rank == rank) & (work.row >= 0))
    step = np.full(len(rows), -1, dtype=np.int64)
    if not len(own):
        return step
    for values, low, high in ((rows, work.row[own], work.row_stop[own]), (start, work.start[own], work.stop[own] + 1)):
        order = np.argsort(low, kind="stable")
        k = np.searchsorted(low[order], values, side="right") - 1
        inside = (k >= 0) & (values < high[order][k]) & (step < 0)
        step[inside] = work.step[own][order][k[inside]]
    return step


def _reader(trace: Trace) -> Callable[[int], Said]:
    """What the arguments of a row say; each text is read once."""

    @cache
    def of_text(arg: int) -> Said:
        return _said(trace.args[arg])

    def of_row(row: int) -> Said:
        arg = int(trace.arg[row]) if row != ROOT else -1
        return NOTHING if arg < 0 else of_text(arg)

    return of_row


def _joined(first: Said, second: Said) -> Said:
    """``first``, with what only ``second`` says."""
    if first is NOTHING or second is NOTHING:
        return second if first is NOTHING else first
    return Said(
        first.group or second.group,
        first.size or second.size,
        first.sequence if first.sequence >= 0 else second.sequence,
        first.elements if first.elements >= 0 else second.elements,
        first.dtype or second.dtype,
        first.word or second.word,
        first.ends if first.ends != UNSAID else second.ends,
    )


def _shape(said: Said) -> Said:
    return said if said is NOTHING else Said(elements=said.elements, dtype=said.dtype)


def _said(text: str) -> Said:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING
    args = cast("dict[str, object]", read if isinstance(read, dict) else {})
    name = args.get("Process Group Name")
    members = args.get("Process Group Ranks")
    begin = args.get("Global rank start")
    size = _whole(args.get("Group size"))
    # One number is counted for the groups of all ranks alike, but two jobs in one capture would share it: the members tell.
    where = f"{size if size > 0 else '?'} from {_shown(members if begin is None else begin)}"
    elements, word = _whole(args.get("In msg nelems")), str(args.get("Collective name") or "")[:64]
    return Said(
        group=f"{_shown(name)} of {where}" if name else "",
        size=size if 0 < size <= MOST_RANKS else 0,
        sequence=_whole(args.get("Seq")),
        elements=elements if elements >= 0 else _elements(args.get("Input Dims")),
        dtype=str(args.get("dtype") or _first(args.get("Input type")))[:32].lower().removeprefix("c10::"),
        word=word,
        ends=ends_said(args, word),
    )


def _shown(value: object) -> str:
    """What a trace calls something, on one line and cut: it is kept and shown as text of others."""
    text = str(value)[:64]
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_ELEMENTS else -1


def _first(value: object) -> str:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return listed[0] if listed and isinstance(listed[0], str) and listed[0] not in ("TensorList", "Scalar") else ""


def _elements(dims: object) -> int:
    """Numbers in the first tensor, -1 where there is none: lists of tensors have no shape here."""
    shapes = cast("list[object]", dims) if isinstance(dims, list) else []
    sizes = cast("list[object]", shapes[0]) if shapes and isinstance(shapes[0], list) else []
    if not sizes:
        return -1
    product = 1
    for size in sizes:
        whole = _whole(size)
        product = min(product * whole, MAX_ELEMENTS) if whole >= 0 and product >= 0 else -1
    return product
