"""What the probe is shown of a window: how things are called, how many there are, in which order; not how long they took."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import Mask, rows
from teller_core.data.trace import Layer, Trace
from teller_core.lab.evaluation.methods.logs import template

Bag = Mapping[str, float]
"""Features of a window: what is not in it is 0."""
SECOND = 1_000_000_000
SHAPES = ((re.compile(r"\b[a-z2-7]{32,}\b"), "h"), (re.compile(r"[0-9a-f]{6,}"), "h"), (re.compile(r"[0-9]+"), "9"))
"""What differs between two names of one shape: the base 32 by which PyTorch calls compiled graphs, which are of one model each,
and hexadecimal and decimal numbers.
"""
TABLES = (
    "steps",
    "work",
    "requests",
    "participation",
    "lines",
    "samples",
    "collectives",
    "meetings",
    "readings",
    "buckets",
)
PROFILE = (Layer.OPERATOR, Layer.RUNTIME, Layer.KERNEL, Layer.COMMUNICATION)
IN_TIME = ("samples", "readings", "buckets")
"""Tables that grow with time alone: a slower window has more rows of them."""
READ_NS = 5 * SECOND
"""A process that does nothing is sampled once in this time: that a shorter window has no sample of it says nothing."""
KIND = re.compile(r'"([^"]+)":')
CUT = "finished"
"""The argument of an operator that still ran when the profiler stopped: where it stopped is chance."""


class Glance(NamedTuple):
    """A window: what was recorded in it, and when it stood: ``round`` of its block, ``at`` in the round, of ``among``, how many
    ``before`` it in the life, and the ns since the window before it ended (``since``) and ``until`` it ended. ``usual``: (role,
    process) of which most windows of its life have samples.
    """

    capture: Capture
    round: int
    at: int
    among: int
    before: int
    since: int
    until: int
    usual: frozenset[tuple[str, str]]


def processes(glance: Glance) -> Bag:
    """Which processes there are, by role and by what was recorded of them, and how many of each; hosts."""
    capture, samples = glance.capture, glance.capture.samples
    sampled = set(zip(samples.role, samples.process, strict=True))
    if glance.until < READ_NS:
        sampled |= glance.usual
    paused = set(zip(capture.pauses.role, capture.pauses.process, strict=True))
    found: Counter[str] = Counter()
    for table, part in (("pauses", paused), ("samples", sampled)):
        found.update(f"{table} of {role or 'machine'}" for role, _ in part)
    found["writes lines"] = len(set(capture.lines.process))
    found["hosts"] = len({process.partition("/")[0] for _, process in sampled if process})
    return dict(found)


def identifiers(glance: Glance) -> Bag:
    """The shapes of requests' ids and the digits they begin with, as shares of the requests."""
    requests = glance.capture.requests
    found: Counter[str] = Counter()
    for name in ("engine_id", "client_id", "trace_id"):
        for text in getattr(requests, name):
            found[f"{name} like {_shape(text)}"] += 1
            found[f"{name} begins with {text.rpartition('-')[2][:1]}"] += 1
    return {feature: count / max(len(requests.number), 1) for feature, count in found.items()}


def operators(glance: Glance) -> Bag:
    """Which operators, kernels and collectives a profile has of processes that run steps, and which of others."""
    capture, found = glance.capture, set[str]()
    for position, rank in enumerate(capture.ranks):
        if rank.tree is None:
            continue
        runs = bool(_of_steps(capture, position, np.isin(rank.tree.trace.layer, PROFILE)))
        found |= {name if runs else f"{name} without steps" for name in _names(rank.tree.trace, PROFILE)}
    return dict.fromkeys(found, 1.0)


def symbols(glance: Glance) -> Bag:
    """Which functions and ranges of the engine's own a profile and our recorder have."""
    trees = [rank.tree for rank in glance.capture.ranks if rank.tree is not None]
    layers = (Layer.REQUEST, Layer.ENGINE, Layer.PYTHON)
    return dict.fromkeys((name for tree in trees for name in _names(tree.trace, layers)), 1.0)


def lines(glance: Glance) -> Bag:
    """Which templates of log lines were written."""
    found = glance.capture.lines
    return {f"line {each}": 1.0 for each in set(map(template, found.rule, found.untrusted_text))}


def sizes(glance: Glance) -> Bag:
    """Rows of each table, by request, or by second for what grows with time; of profiles, rows, names and arguments by step."""
    capture = glance.capture
    requests, seconds = max(len(capture.requests.number), 1), max(glance.until, 1) / SECOND
    found = {f"rows of {name}": rows(getattr(capture, name)) / requests for name in TABLES if name not in IN_TIME}
    found |= {f"rows of {name}": rows(getattr(capture, name)) / seconds for name in IN_TIME}
    found["requests"] = len(capture.requests.number)
    found["tokens"] = len(capture.tokens.time) / requests
    found |= _profiles(capture)
    return {name: float(value) for name, value in found.items()}


def _profiles(capture: Capture) -> Bag:
    """Of operators and what is below them, in processes that run steps: traces, rows by step and between steps, names, kinds of
    arguments and lanes; of other processes, traces. The engine's own ranges, which our recorder writes all the time, are no
    profile. How much of a step it has that was not over when it stopped is chance, and not told.
    """
    traces, others, inside, between, steps, lanes = 0, 0, 0, 0, 0, 0
    names, arguments = set[str](), set[str]()
    for position, rank in enumerate(capture.ranks):
        if rank.tree is None or not (deep := np.isin(rank.tree.trace.layer, PROFILE)).any():
            continue
        trace, spans = rank.tree.trace, _of_steps(capture, position, deep)
        if not spans:
            others += 1
            continue
        own = np.zeros(len(trace.start), dtype=np.bool_)
        for low, high in spans:
            own[low:high] = True
        meanwhile = (trace.start >= trace.start[own].min()) & (trace.start < trace.end[own].max())
        traces += 1
        steps += len(spans)
        inside += int((deep & own).sum())
        between += int((deep & meanwhile & ~own).sum())
        lanes += len(np.unique(trace.lane[deep]))
        names |= {trace.names[name] for name in map(int, np.unique(trace.name[deep]))}
        for arg in map(int, np.unique(trace.arg[deep])):
            arguments |= set(KIND.findall(trace.args[arg])) if arg >= 0 else set()
    return {
        "traces": traces,
        "traces without steps": others,
        "rows of profiles": inside / max(steps, 1),
        "rows between steps": float(np.log1p(between)),
        "lanes in profiles": lanes,
        "names in profiles": float(np.log1p(len(names))),
        "arguments in profiles": len(arguments - {CUT}),
    }


def _of_steps(capture: Capture, rank: int, deep: Mask) -> list[tuple[int, int]]:
    """The rows of each step that ``rank`` has a profile of: such with a ``deep`` one."""
    mine = (capture.work.rank == rank) & (capture.work.row >= 0)
    spans = zip(map(int, capture.work.row[mine]), map(int, capture.work.row_stop[mine]), strict=True)
    return [(low, high) for low, high in spans if deep[low:high].any()]


def order(glance: Glance) -> Bag:
    """Where it stands among the windows of its round and its life, and how long after the one before it."""
    return {
        f"number {glance.at} of its round": 1.0,
        "first of its round": float(glance.at == 0),
        "last of its round": float(glance.at == glance.among - 1),
        "how far in its round": glance.at / max(glance.among - 1, 1),
        f"round {glance.round}": 1.0,
        "windows before it": float(glance.before),
        "since the one before": float(np.log1p(max(glance.since, 0) / 1e6)),
    }


VIEWS: Mapping[str, Callable[[Glance], Bag]] = {
    "processes": processes,
    "ids": identifiers,
    "operators": operators,
    "symbols": symbols,
    "lines": lines,
    "sizes": sizes,
    "order": order,
}


def _names(trace: Trace, layers: Iterable[int]) -> set[str]:
    found: set[str] = set()
    for layer in layers:
        present = map(int, np.unique(trace.name[trace.layer == layer]))
        found |= {f"{Layer(layer).name.lower()} {_shape(trace.names[name])}" for name in present}
    return found


def _shape(text: str) -> str:
    for pattern, letter in SHAPES:
        text = pattern.sub(letter, text)
    return text
