"""What the probe is shown of a window: how things are called, how many there are, in which order; not how long they took."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import rows
from teller_core.data.trace import Layer
from teller_core.lab.evaluation.methods.logs import template

Bag = Mapping[str, float]
"""Features of a window: what is not in it is 0."""
SECOND = 1_000_000_000
SHAPES = ((re.compile(r"[0-9a-f]{6,}"), "h"), (re.compile(r"[0-9]+"), "9"))
"""What differs between two names of one shape: hexadecimal and decimal numbers."""
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


class Glance(NamedTuple):
    """A window: what was recorded in it, and when it stood: ``round`` of its block, ``at`` in the round, of ``among``, how many
    ``before`` it in the life, and the ns since the window before it ended (``since``) and ``until`` it ended.
    """

    capture: Capture
    round: int
    at: int
    among: int
    before: int
    since: int
    until: int


def processes(glance: Glance) -> Bag:
    """Which processes there are, by role and by what was recorded of them, and how many of each; hosts."""
    capture = glance.capture
    found: Counter[str] = Counter()
    for table, part in (("pauses", capture.pauses), ("samples", capture.samples)):
        for role in {(role, process) for role, process in zip(part.role, part.process, strict=True)}:
            found[f"{table} of {role[0] or 'machine'}"] += 1
    found["writes lines"] = len(set(capture.lines.process))
    found["hosts"] = len({process.partition("/")[0] for process in capture.samples.process if process})
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
    """Which operators, kernels and collectives a profile has."""
    return _named(glance.capture, PROFILE)


def symbols(glance: Glance) -> Bag:
    """Which functions and ranges of the engine's own a profile and our recorder have."""
    return _named(glance.capture, (Layer.REQUEST, Layer.ENGINE, Layer.PYTHON))


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
    """Of operators and what is below them: traces, rows by step, names, arguments and lanes. The engine's own ranges, which our
    recorder writes all the time, are no profile.
    """
    traces, rows_there, steps, lanes = 0, 0, 0, 0
    names, arguments = set[str](), set[str]()
    for position, rank in enumerate(capture.ranks):
        if rank.tree is None or not (deep := np.isin(rank.tree.trace.layer, PROFILE)).any():
            continue
        trace, before = rank.tree.trace, np.append(0, np.cumsum(deep))
        mine = (capture.work.rank == position) & (capture.work.row >= 0)
        steps += int((before[capture.work.row_stop[mine]] > before[capture.work.row[mine]]).sum())
        traces += 1
        rows_there += int(deep.sum())
        lanes += len(np.unique(trace.lane[deep]))
        names |= {trace.names[name] for name in map(int, np.unique(trace.name[deep]))}
        arguments |= {trace.args[arg] for arg in map(int, np.unique(trace.arg[deep])) if arg >= 0}
    return {
        "traces": traces,
        "rows of profiles": rows_there / max(steps, 1),
        "lanes in profiles": lanes,
        "names in profiles": float(np.log1p(len(names))),
        "arguments in profiles": float(np.log1p(len(arguments))),
    }


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


def _named(capture: Capture, layers: Iterable[int]) -> Bag:
    found: set[str] = set()
    for rank in capture.ranks:
        if rank.tree is None:
            continue
        trace = rank.tree.trace
        for layer in layers:
            present = map(int, np.unique(trace.name[trace.layer == layer]))
            found |= {f"{Layer(layer).name.lower()} {_shape(trace.names[name])}" for name in present}
    return dict.fromkeys(found, 1.0)


def _shape(text: str) -> str:
    for pattern, letter in SHAPES:
        text = pattern.sub(letter, text)
    return text
