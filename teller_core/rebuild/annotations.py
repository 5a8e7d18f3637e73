"""Steps that a trace names: ranges that an engine or a profiler opens around one iteration.

Names differ by engine and version (the patterns below, each with a sample of a real trace). They hold counts, never
request ids. Ranges of graph capture (``capture_32_FULL``) and empty iterations (a dummy run of an idle rank) are no steps.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int64
from teller_core.data.tree import Tree


class StepName(NamedTuple):
    """What the name of a range says about its step; -1 where it does not say. ``rank``: the lower, the closer to the engine."""

    rank: int
    number: int = -1
    requests: int = -1
    context_requests: int = -1
    context_tokens: int = -1
    generation_requests: int = -1
    generation_tokens: int = -1
    kv_tokens: int = -1

    @property
    def empty(self) -> bool:
        """The engine ran an iteration without any request."""
        return self.requests == 0


class Pattern(NamedTuple):
    """A form of step names. Groups: ``number``, ``context``, ``context_tokens``, ``generation``, ``generation_tokens``,
    ``context_kv``, ``generation_kv``, ``all`` (requests of either kind) and ``mode``."""

    id: str
    rank: int
    regex: str
    sample: str


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "vllm",
        0,
        r"execute_context_(?P<context>\d+)\((?P<context_tokens>\d+)[^)]*\)"
        r"_generation_(?P<generation>\d+)\((?P<generation_tokens>\d+)",
        "execute_context_1(888_788544)_generation_0(0)",
    ),
    Pattern(
        "vllm.lengths",
        0,
        r"execute_\d+_context_(?P<context>\d+)\(sq(?P<context_tokens>\d+)sk(?P<context_kv>\d+)[^)]*\)"
        r"_generation_(?P<generation>\d+)\(sq(?P<generation_tokens>\d+)sk(?P<generation_kv>\d+)",
        "execute_8192_context_9(sq8155sk8430sqsq1sqsk2)_generation_37(sq37sk34489sqsq37sqsk34489)",
    ),
    Pattern("vllm.new_cached", 0, r"execute_new_(?P<new>\d+)_cached_(?P<cached>\d+)", "execute_new_2_cached_30"),
    Pattern(
        "sglang.mixed",
        1,
        r"step\[(?:mixed|MIXED) bs=(?P<all>\d+)(?: toks=\d+)? ext=(?P<context>\d+) dec=(?P<generation>\d+)",
        "step[mixed bs=12 ext=4 dec=8]",
    ),
    Pattern(
        "sglang",
        1,
        r"step\[(?P<mode>extend|prefill|decode|idle|EXTEND|PREFILL|DECODE|IDLE)(?: bs=(?P<all>\d+))?(?: toks=(?P<tokens>\d+))?",
        "step[EXTEND bs=15 toks=15360]",
    ),
    Pattern(
        "trtllm",
        1,
        r"\[Executor\] _forward_step(?: (?P<number>\d+))?: (?P<context>\d+) ctx reqs,"
        r"(?: (?P<context_tokens>\d+) ctx tokens,)? (?P<generation>\d+) gen reqs",
        "[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs",
    ),
    Pattern("profiler", 2, r"ProfilerStep\s*#(?P<number>\d+)", "ProfilerStep#12"),
    Pattern("numbered", 3, r"(?:step|iteration)[ _#](?P<number>\d+)$", "step_19"),
)
_COMPILED = tuple((pattern, re.compile(pattern.regex)) for pattern in PATTERNS)
_FIRST_LETTERS = ("execute_", "step", "iteration", "[Executor]", "ProfilerStep")


def parse(name: str) -> StepName | None:
    """What ``name`` says about a step, None where it names none."""
    if not name.startswith(_FIRST_LETTERS):
        return None
    for pattern, regex in _COMPILED:
        if found := regex.match(name):
            return _named(pattern, {key: value for key, value in found.groupdict().items() if value is not None})
    return None


def _named(pattern: Pattern, said: Mapping[str, str]) -> StepName:
    number = {key: int(value) for key, value in said.items() if key != "mode"}
    context, generation = number.get("context", -1), number.get("generation", -1)
    context_tokens, generation_tokens = number.get("context_tokens", -1), number.get("generation_tokens", -1)
    requests = number.get("all", -1)
    match said.get("mode", "").lower():
        case "extend" | "prefill":
            context, context_tokens, generation, generation_tokens = requests, number.get("tokens", -1), 0, 0
        case "decode":
            context, context_tokens, generation = 0, 0, requests
        case "idle":
            requests = 0
        case _:
            pass
    if "new" in number:
        requests = number["new"] + number["cached"]
    elif context >= 0 and generation >= 0:
        requests = context + generation
    kv = number["context_kv"] + number["generation_kv"] if "context_kv" in number else -1
    return StepName(
        pattern.rank, number.get("number", -1), requests, context, context_tokens, generation, generation_tokens, kv
    )


@dataclass(frozen=True)
class Annotated:
    """The steps that one tree names, by time: ``row`` in the tree, ``start``, ``end`` int64 ns, ``name`` a StepName each."""

    row: Int64
    start: Int64
    end: Int64
    name: Sequence[StepName]

    def __len__(self) -> int:
        return len(self.row)


def annotated(tree: Tree) -> Annotated:
    """The steps named by ranges on host threads of ``tree``.

    Where ranges nest (SGLang opens ``step[...]`` inside ``execute_...``), they are one step: the outer range, with what the
    inner one adds. A profiler's own step ranges count only where no engine named any.
    """
    trace = tree.trace
    names = [parse(name) for name in trace.names]
    wanted = np.array([name is not None and not name.empty for name in names], dtype=np.bool_)
    if not wanted.any():
        return _picked(tree, [], [])
    rows = np.flatnonzero(wanted[trace.name])
    rows = rows[~np.array([lane.device for lane in trace.lanes], dtype=np.bool_)[trace.lane[rows]]]
    found = [(row, name) for row in rows.tolist() if (name := names[trace.name[row]]) is not None]
    nearest = min((name.rank for _, name in found), default=0)
    if nearest < 2:
        found = [(row, name) for row, name in found if name.rank < 2]
    else:
        found = [(row, name) for row, name in found if name.rank == nearest]
    return _outermost(tree, found)


def _outermost(tree: Tree, found: Sequence[tuple[int, StepName]]) -> Annotated:
    rows: list[int] = []
    kept: list[StepName] = []
    until = 0
    for row, name in found:
        if rows and row < until:
            kept[-1] = _filled(kept[-1], name)
            continue
        rows.append(row)
        kept.append(name)
        until = int(tree.stop[row])
    return _picked(tree, rows, kept)


def _filled(outer: StepName, inner: StepName) -> StepName:
    return StepName(outer.rank, *(a if a >= 0 else b for a, b in zip(outer[1:], inner[1:], strict=True)))


def _picked(tree: Tree, rows: Sequence[int], names: Sequence[StepName]) -> Annotated:
    row = np.array(rows, dtype=np.int64)
    start = tree.trace.start[row]
    order = np.argsort(start, kind="stable")
    ordered: list[StepName] = [names[i] for i in order.tolist()]
    return Annotated(row[order], start[order], start[order] + tree.trace.dur[row[order]], ordered)
