"""Operators of two captures, by what each adds to a usual step."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from teller_core.data.assessment import Baselines
from teller_core.data.report import Difference
from teller_core.data.trace import Layer
from teller_core.tell.compare_intervals import difference
from teller_core.tell.names import shorten

OPERATORS = 12
"""Operators shown, those that move a step most first."""
MATERIAL = 0.01
"""And only those that move a step by one part in a hundred."""
MEDIAN_ERROR = 1.2533
"""The standard error of a median of normal values, in units of that of their mean."""
LEAST_ERROR = 0.05
"""Log: two runs of one service differ by about this much in any operator, however many calls were seen."""
SURE_SPREADS = 1.96
ENOUGH = 8
"""Calls on each side for a sure difference."""
MORE_CALLS = 1.5


@dataclass(frozen=True)
class _Added:
    """What one operator, or layer, adds to a step of one phase: ``ns``, with its error in ns, ``calls`` and spans ``seen``."""

    ns: float
    error: float
    calls: float
    seen: int
    layer: int


def compare_operators(before: Baselines, after: Baselines) -> Iterator[Difference]:
    """The layers, then the operators that move a step of a phase that both captures know, the largest change first."""
    both = sorted(set(before.phase) & set(after.phase) - {""}) or [""]
    for layers in (True, False):
        a, b = (_added(table, set(both), layers=layers) for table in (before, after))
        steps = {p: max(sum(x.ns for (_, q), x in side.items() if q == p) for side in (a, b)) for p in both}
        keys = sorted(a.keys() | b.keys(), key=lambda k: -abs(_ns(b.get(k)) - _ns(a.get(k))))
        keys = [k for k in keys if abs(_ns(b.get(k)) - _ns(a.get(k))) >= MATERIAL * steps[k[1]]]
        for key in keys if layers else keys[:OPERATORS]:
            yield from _differences(key, a.get(key), b.get(key), layers=layers)


def _added(table: Baselines, phases: set[str], *, layers: bool) -> dict[tuple[str, str], _Added]:
    out: dict[tuple[str, str], _Added] = {}
    for i, (name, phase) in enumerate(zip(table.name, table.phase, strict=True)):
        calls = float(table.calls[i])
        if phase not in phases or np.isnan(calls):
            continue
        ns = calls * float(table.median[i])
        error = ns * MEDIAN_ERROR * float(table.spread[i]) / np.sqrt(max(int(table.count[i]), 1))
        layer = int(table.layer[i])
        key = (Layer(layer).name.lower() if layers else name, phase)
        old = out.get(key, _Added(0.0, 0.0, 0.0, 0, layer))
        out[key] = _Added(
            old.ns + ns,
            float(np.hypot(old.error, error)),
            old.calls + calls,
            old.seen + int(table.count[i]),
            layer,
        )
    return out


def _differences(key: tuple[str, str], a: _Added | None, b: _Added | None, *, layers: bool) -> Iterator[Difference]:
    name, phase = key
    where = f"a {phase} step" if phase else "a step"
    what = f"own time of the {name} layer in {where}" if layers else f"{shorten(name)} in {where}"
    some = a or b
    if some is None:
        return
    ratio = b.ns / a.ns if a and b and a.ns > 0 else None
    low = high = None
    if a and b and ratio:
        error = float(np.hypot(np.hypot(a.error / a.ns, b.error / b.ns), LEAST_ERROR))
        low, high = ratio * np.exp(-SURE_SPREADS * error), ratio * np.exp(SURE_SPREADS * error)
    enough = a is not None and b is not None and min(a.seen, b.seen) >= ENOUGH
    layer = Layer(some.layer).name.lower()
    sides = None if a is None else a.ns / 1e6, None if b is None else b.ns / 1e6
    yield difference(what, layer, sides, unit="ms", ratio=ratio, bounds=(low, high), enough=enough)
    if not layers and a and b and a.calls > 0 and not 1 / MORE_CALLS < b.calls / a.calls < MORE_CALLS:
        yield Difference(
            what=f"calls of {shorten(name)} in {where}",
            layer=layer,
            before=a.calls,
            after=b.calls,
            unit="calls",
            ratio=round(b.calls / a.calls, 3),
            low=None,
            high=None,
            sure=enough,
        )


def _ns(side: _Added | None) -> float:
    return 0.0 if side is None else side.ns
