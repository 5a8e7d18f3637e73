"""When a request began and ended by what its servers say of it afterwards: a line at the end that tells how long it took.

A line of whole seconds places the end within a second, but the time it tells is exact: begin and end are then taken from
one line, the longest, and never from two.
"""

from collections.abc import Sequence
from typing import NamedTuple

from teller_core.data.records import RequestFact, known
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.step_table import FINE_NS

SERVED = "served"
"""The kind of fact whose time is the end and whose value is what came before it."""
RUN_DURATIONS = ("sglang.forward_duration",)
"""Names under which engines report how long a request ran, from its first scheduling to its end."""
PER_REQUEST = frozenset({SERVED, "scheduled", "first_token"})
"""Kinds of facts that only a record of each request tells."""


class Served(NamedTuple):
    """int ns: when it came to the outermost of its servers, and when that had answered; UNKNOWN for both or none."""

    begin: int = UNKNOWN
    end: int = UNKNOWN
    inner: int = UNKNOWN
    """When it came to the innermost of several."""


def served(facts: Sequence[RequestFact], fine: bool) -> Served:
    """What the servers of one request say. ``fine``: it has finer times, beside which those of whole seconds say nothing."""
    said = [(fact.time, fact.value, fact.resolution) for fact in facts if fact.kind == SERVED and known(fact.time)]
    spans = [(end - took, end, known(its) and its <= FINE_NS) for end, took, its in said if took is not None]
    if all(exact for _, _, exact in spans) and spans:
        begins = sorted(begin for begin, _, _ in spans)
        return Served(begins[0], max(end for _, end, _ in spans), begins[-1] if len(spans) > 1 else UNKNOWN)
    if fine or not spans:
        return Served()
    begin, end, _ = max(spans, key=lambda span: span[1] - span[0])
    return Served(begin, end)


def ran(facts: Sequence[RequestFact], finished: int) -> int:
    """int ns: when it was first scheduled, by how long it ran until it ``finished``; UNKNOWN where nobody says."""
    took = next((fact.value for name in RUN_DURATIONS for fact in facts if fact.kind == name and fact.value), None)
    return finished - took if took is not None and known(finished) else UNKNOWN
