"""Tables of several captures as one, and baselines of their operators as one."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from teller_core.data.assessment import Baselines
from teller_core.data.learned import no_baselines
from teller_core.data.table import Float64, take
from teller_core.judge.baseline import MIN_SPANS
from teller_core.judge.robust import NORMAL_MAD, weighted

MOST_PLACES = 20_000
"""Places of operators that are kept, those first that take most time."""


def joined(tables: Sequence[Any], kind: type[Any]) -> Any:
    """Tables of several captures as one. Requests keep their numbers: nobody is called by them here."""
    made: dict[str, Any] = {}
    for name in (each.name for each in fields(kind)):
        parts = [getattr(table, name) for table in tables]
        texts = not isinstance(parts[0], np.ndarray)
        made[name] = [cell for part in parts for cell in part] if texts else np.concatenate(parts)
    return kind(**made)


def pooled(tables: Sequence[Baselines]) -> Baselines:
    """The baselines of several captures as one: of each place the middle of their middles by their calls, at the tokens of the
    capture with most calls of it. What all captures together called too seldom is left out.
    """
    rows: dict[tuple[str, str, str, int], list[tuple[int, int]]] = {}
    for at, table in enumerate(tables):
        for row, key in enumerate(zip(table.name, table.place, table.phase, table.layer.tolist(), strict=True)):
            rows.setdefault(key, []).append((at, row))
    chosen = [found for found in rows.values() if sum(int(tables[at].count[row]) for at, row in found) >= MIN_SPANS]
    if not chosen:
        return no_baselines()
    made = joined([_one([take(tables[at], np.array([row])) for at, row in found]) for found in chosen], Baselines)
    order = np.argsort(-made.total, kind="stable")[:MOST_PLACES]
    return take(made, np.sort(order))


def _one(several: Sequence[Baselines]) -> Baselines:
    """One place in several captures, a row each, as one row."""
    table = joined(several, Baselines)
    if len(table.count) == 1:
        return table
    weight = table.count.astype(np.float64)
    most = int(np.argmax(table.count))
    level = _at_pivot(table, most)
    middle = weighted(level, weight, 0.5)
    apart = weighted(np.abs(level - middle), weight, 0.5) * NORMAL_MAD
    within = float((table.spread * weight).sum() / weight.sum())
    one = take(table, np.array([most]))
    return replace(
        one,
        count=np.array([table.count.sum()], np.int32),
        median=np.array([round(float(np.exp(middle)))], np.int64),
        spread=np.array([np.hypot(within, apart)]),
        total=np.array([table.total.sum()], np.int64),
    )


def _at_pivot(table: Baselines, most: int) -> Float64:
    """float64 a row: its log median at the tokens of row ``most``, as its own slope has it, else that one's."""
    slope = np.where(np.isnan(table.slope), table.slope[most], table.slope)
    moved = slope * (table.pivot[most] - table.pivot)
    return np.log(np.maximum(table.median, 1)) + np.nan_to_num(moved)
