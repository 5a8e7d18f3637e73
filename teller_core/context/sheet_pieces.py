"""The spans of a step as a part of its sheet: the tokens that took most, and all that they hang below."""

from collections.abc import Mapping, Sequence

import numpy as np

from teller_core.context.tpe.codings import Coding
from teller_core.data.assessment import Baselines
from teller_core.data.linked import StepSpans
from teller_core.data.plain_names import plain_name
from teller_core.data.sheet_parts import PARTS, Pieces, joined_rows, no_rows
from teller_core.data.table import UNKNOWN, Float32, Int32, Int64, take
from teller_core.data.tokens import Tokens

FLOOR = 1_000.0
"""ns: two spans below a microsecond are alike."""
LEAST_CALLS = 8
"""A baseline of fewer calls says nothing of what is usual."""
Usual = Mapping[tuple[str, int], float]
"""By plain name and layer: log ns of own time."""


def usual_of(baselines: Baselines) -> Usual:
    """What spans of a name take, over all of their places, each place by its calls."""
    total: dict[tuple[str, int], tuple[float, int]] = {}
    log = np.log(baselines.median + FLOOR)
    rows = zip(baselines.name, baselines.layer.tolist(), log.tolist(), baselines.count.tolist(), strict=True)
    for name, layer, value, count in rows:
        before, calls = total.get((name, layer), (0.0, 0))
        total[name, layer] = before + count * value, calls + count
    return {key: value / calls for key, (value, calls) in total.items() if calls >= LEAST_CALLS}


def pieces_of(
    parts: Sequence[StepSpans],
    suspects: Mapping[int, Int32],
    usual: Usual,
    coding: Coding,
    *,
    begin: int,
    took: int,
) -> Pieces:
    """The pieces of one step, which began at ``begin`` and took ``took`` ns on the capture's clock. ``parts``: its rows on each
    rank with a profile; ``suspects``: by rank, rows of its tree that stay pieces of their own.
    """
    none = np.empty(0, np.int32)
    each: list[Pieces] = []
    for spans in parts:
        if len(spans.tree):
            tokens = coding.tokens(spans, suspects.get(spans.rank, none))
            each.append(_pieces(spans, tokens, usual, begin, max(took, 1)))
    if not each:
        return no_rows(Pieces)
    before = np.cumsum([0, *(len(table.symbol) for table in each)])
    whole = joined_rows(each)
    below = np.repeat(before[:-1], np.diff(before))
    parent = np.where(whole.parent >= 0, whole.parent + below, -1)
    kept = heaviest(parent, whole.own, PARTS["pieces"])
    place = np.full(len(parent) + 1, -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    out = take(whole, kept)
    out.parent[:] = place[parent[kept]]
    return out


def heaviest(parent: Int64, own: Int64, most: int) -> Int64:
    """int64, ascending: the rows that took most, each with all it hangs below (``parent``, -1 for none), ``most`` in all."""
    if len(parent) <= most:
        return np.arange(len(parent))
    above: list[int] = parent.tolist()
    heavy: list[int] = np.argsort(-own, kind="stable").tolist()
    kept: set[int] = set()
    for row in heavy:
        chain: list[int] = []
        at = row
        while at >= 0 and at not in kept:
            chain.append(at)
            at = above[at]
        if len(kept) + len(chain) <= most:
            kept.update(chain)
        if len(kept) == most:
            break
    return np.array(sorted(kept), np.int64)


def _pieces(spans: StepSpans, tokens: Tokens, usual: Usual, begin: int, took: int) -> Pieces:
    trace, where = spans.tree.trace, tokens.where
    since = int(trace.start[0]) + spans.shift - begin
    name = [trace.names[int(at)] for at in trace.name[where]]
    return Pieces(
        symbol=tokens.symbol,
        run=tokens.run,
        parent=tokens.parent,
        depth=tokens.depth,
        layer=trace.layer[where],
        rank=np.full(len(where), spans.rank, np.int32),
        row=(where + spans.first).astype(np.int32),
        own=tokens.own,
        wait=np.full(len(where), UNKNOWN, np.int64),
        residual=_residual(name, trace.layer[where].tolist(), tokens.largest, usual),
        share=np.clip(tokens.own / took, 0.0, 1.0).astype(np.float32),
        begin=np.clip((tokens.start + since) / took, 0.0, 1.0).astype(np.float32),
        name=name,
    )


def _residual(name: Sequence[str], layer: Sequence[int], own: Int64, usual: Usual) -> Float32:
    """float32: the log of each span's own time over what is usual for its name, NaN where that is not known."""
    normal = [usual.get((plain_name(one, at), at), np.nan) for one, at in zip(name, layer, strict=True)]
    return (np.log(own.clip(0) + FLOOR) - np.array(normal, np.float64)).astype(np.float32)
