"""Where requests came back after an eviction, and what of their texts was still cached then."""

from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int32, Int64, Mask

LEAST_BLOCK = 16
"""Tokens of a KV block, at least: what is still cached of an evicted text is whole blocks."""


class Rows(NamedTuple):
    """Rows by request, then by step: ``at`` (the step), ``request``, ``tokens``, ``again``: of these, those that had been
    computed.
    """

    at: Int64
    request: Int32
    tokens: Int64
    again: Int64


class Evictions(NamedTuple):
    """``back`` bool a row: its request had been evicted before it; ``kept`` int64 a row: tokens that were still cached then."""

    back: Mask
    kept: Int64


def evictions(rows: Rows, cached: Int64, preemptions: Int64, gone: Int64) -> Evictions:
    """``cached`` tokens before the first row and ``preemptions``, a request of the capture each; ``gone``: evictions up to each
    step.

    A request came back where more of its tokens had been computed before than what it had in the cache explains; or as many,
    and it was left out while somebody was evicted. One that found all of it still cached computes nothing again: then it was
    left out and goes on after whole blocks, as often as its preemptions say.
    """
    found = Evictions(np.zeros(len(rows.at), dtype=np.bool_), np.zeros(len(rows.at), dtype=np.int64))
    if not len(rows.at):
        return found
    apart = np.append(False, (rows.request[1:] == rows.request[:-1]) & (rows.at[1:] > rows.at[:-1] + 1))
    left_out = apart & (gone[rows.at] > gone[np.append(rows.at[:1], rows.at[:-1])])
    for one in np.unique(rows.request[left_out | (rows.again > 0)]).tolist():
        low, high = np.searchsorted(rows.request, [one, one + 1]).tolist()
        part = slice(low, high)
        mine = Rows(rows.at[part], rows.request[part], rows.tokens[part], rows.again[part])
        here = Evictions(found.back[part], found.kept[part])
        more = int(preemptions[one]) - _again(mine, left_out[part], int(cached[one]), here)
        if more > 0:
            _whole(mine, left_out[part] & ~here.back, int(cached[one]), more, here)
    return found


def _again(rows: Rows, left_out: Mask, held: int, found: Evictions) -> int:
    """Those that computed something again; how many times."""
    lost = times = 0
    for row, (count, told) in enumerate(zip(rows.tokens.tolist(), rows.again.tolist(), strict=True)):
        explained = max(min(held + count, lost) - held, 0)
        if told > explained or (told and left_out[row] and told == min(count, lost)):
            lost, times = max(lost, held), times + 1
            held = max(lost - _stretch(rows.again, row), 0)
            found.back[row], found.kept[row] = True, held
        held += count
    return times


def _stretch(again: Int64, row: int) -> int:
    """Tokens computed again from ``row`` on until the first row without."""
    rest = again[row:]
    stop = int(np.argmax(rest == 0)) if (rest == 0).any() else len(rest)
    return int(rest[:stop].sum())


def _whole(rows: Rows, left_out: Mask, cached: int, times: int, found: Evictions) -> None:
    """Those that found all of their text cached, the longest away first."""
    held = cached + np.cumsum(rows.tokens) - rows.tokens
    away = np.append(0, np.diff(rows.at))
    able = np.flatnonzero(left_out & (rows.again == 0) & (held % LEAST_BLOCK == 0))
    for row in able[np.argsort(-away[able], kind="stable")][:times].tolist():
        found.back[row], found.kept[row] = True, int(held[row])
