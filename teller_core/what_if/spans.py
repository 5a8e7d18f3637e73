"""Spans that are taken to have lasted another time, as savings of the steps that they are in: by replay of each step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from teller_core.context.linking import step_linked
from teller_core.data.capture import Capture
from teller_core.data.linked import Linked
from teller_core.data.table import Int64
from teller_core.errors import InputError, UnknownName
from teller_core.judge.replay import Network, network, saving
from teller_core.judge.replay.network import unclaimed
from teller_core.judge.replay.what_if import taking
from teller_core.store.store import Store
from teller_core.what_if.supposed import Supposed

MOST_STEPS = 64
"""Steps that are re-timed for one question, those that took longest."""

TWICE = "another recording of its process has more of its calls, take a span of that one"


@dataclass
class Replayed:
    """``saved`` int ns (least, most) by step; ``silent``: why nothing is claimed of a step; ``left_out``: steps over
    MOST_STEPS.
    """

    saved: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    silent: dict[int, str] = field(default_factory=dict[int, str])
    left_out: int = 0

    def note(self) -> str:
        """What is not known, in words; empty where all is."""
        told: list[str] = []
        if self.silent:
            why = list(self.silent.values())
            told.append(f"of {len(self.silent)} steps nothing is claimed: {max(set(why), key=why.count)}")
        if self.left_out:
            told.append(f"{self.left_out} steps with such calls were not re-timed, the shortest ones")
        return "; ".join(told)


def replayed(store: Store, tables: Capture, said: Sequence[Supposed], own: Int64, took: Int64) -> Replayed:
    """What the spans and operators of ``said`` save in their steps, all of them together. Operators are looked for in the steps
    ``own``. Raises UnknownName for a span that is not there or in no step, and for an operator that no step calls.
    """
    spans = {one.target: _place(store, tables, one.target) for one in said if one.kind == "span"}
    operators = {one.target for one in said if one.kind == "operator"}
    steps = {step for step, _, _ in spans.values()}
    steps |= set(_profiled(tables, own)) if operators else steps
    found = Replayed()
    seen: set[str] = set(spans)
    for step in sorted(steps, key=lambda step: (-int(took[step]), step)):
        few = len(found.saved) + len(found.silent) < MOST_STEPS
        rows = step_linked(tables, step, partial(store.tree_rows, tables.id)) if few else None
        if rows is None:
            found.left_out += 1
            continue
        wanted = {one.target: _rows(rows, one, spans, step) for one in said if one.kind in ("span", "operator")}
        seen |= {name for name, at in wanted.items() if at}
        if any(at == step for name, (at, _, _) in spans.items() if not wanted[name]):
            found.silent[step] = TWICE
        if any(wanted.values()):
            _save(
                found, step, network(rows), [(row, one.ns or 0) for one in said for row in wanted.get(one.target, [])]
            )
    if missing := operators - seen:
        why = (
            "no profiled step of the request calls it"
            if len(missing) == 1
            else "no profiled step of the request calls them"
        )
        raise UnknownName("the operator", why, "Take a name that a slice of the request shows")
    return found


def _save(found: Replayed, step: int, graph: Network, wanted: Sequence[tuple[int, int]]) -> None:
    if why := unclaimed(graph):
        found.silent[step] = why
        return
    owners, durations = _durations(graph, wanted)
    told = saving(graph, owners, durations)
    found.saved[step] = told.low, told.high


def _place(store: Store, tables: Capture, handle: str) -> tuple[int, int, int]:
    """The step, rank and row of a span."""
    rank, row = (int(part) for part in handle.split(":"))
    if rank >= len(tables.ranks):
        raise UnknownName(
            "the span", f"the capture has {len(tables.ranks)} ranks", "Take a handle from an answer or a slice"
        )
    store.tree_rows(tables.id, rank, row, row + 1, ("name",))
    step = store.step_of(tables.id, rank, row)
    if step is None:
        raise InputError(
            "the span", "it lies in no step, and what it held up is not known", "Take one from a step's slice"
        )
    return step, rank, row


def _profiled(tables: Capture, steps: Int64) -> list[int]:
    return np.unique(tables.work.step[(tables.work.row >= 0) & np.isin(tables.work.step, steps)]).tolist()


def _rows(rows: Linked, one: Supposed, spans: dict[str, tuple[int, int, int]], step: int) -> list[int]:
    """Where in ``rows`` what is supposed lies; of calls within calls of one name, the outer ones."""
    if one.kind == "span":
        at, rank, row = spans[one.target]
        here = rows.row(rank, row) if at == step else -1
        return [here] if here >= 0 else []
    found: list[int] = []
    for part, first in zip(rows.parts, rows.first.tolist(), strict=False):
        trace = part.tree.trace
        named = np.array([name == one.target for name in trace.names], dtype=np.bool_)
        at = np.flatnonzero(named[trace.name]) + first if len(named) else np.empty(0, dtype=np.int64)
        reach = np.append(0, np.maximum.accumulate(rows.stop[at])[:-1]) if len(at) else at
        found += at[reach <= at].tolist()
    return found


def _durations(graph: Network, wanted: Sequence[tuple[int, int]]) -> tuple[Int64, Int64]:
    """Owners of time and int64 ns for each, for rows to take so long by themselves."""
    made: dict[int, int] = {}
    for row, ns in wanted:
        owners, durations = taking(graph, row, ns)
        made.update(zip(owners.tolist(), durations.tolist(), strict=True))
    return np.array(list(made), dtype=np.int64), np.array(list(made.values()), dtype=np.int64)
