"""Sheets to what the network takes: texts to hashes, times to logarithms, and, for an ablation, some of it left out."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt

from teller_core.data.sheets import Sheets, View, cause_ids
from teller_core.data.table import UNKNOWN, Float32, Float64, Int8, Int32, Int64
from teller_core.model.inputs import Inputs, Part, Wanted
from teller_core.model.laying import without_words
from teller_core.model.options import Parts

BUCKETS = 2048
"""Of hashed words. Two words that share one are told apart by what stands around them."""
FEW = 24
"""Of texts that come from a short list: a localizer, a unit, a level."""
DEEPEST, MOST_RANKS, LAYERS = 24, 16, 12
WORDS_OF_ONE = 24
"""Of a name or a line: what is longer says no more."""
CODES: dict[str, tuple[tuple[str, int], ...]] = {
    "suspects": (("layer", LAYERS), ("rank", MOST_RANKS), ("method", FEW)),
    "pieces": (("depth", DEEPEST), ("layer", LAYERS), ("rank", MOST_RANKS)),
    "said": (("level", FEW), ("own", 2)),
    "together": (("rank", MOST_RANKS),),
    "facts": (
        ("cause", len(cause_ids())),
        ("kind", FEW),
        ("unit", FEW),
        ("scope", FEW),
        ("rank", MOST_RANKS),
        ("horizontal", 2),
    ),
}
"""By part, its columns of codes and how many values each has; behind them, of suspects and pieces, the symbol, and of pieces
the parent's symbol.
"""
CAUSE_CODE = [name for name, _ in CODES["facts"]].index("cause")
"""The column of codes in which a fact has its cause."""
VALUES = {"suspects": 4, "pieces": 7, "said": 5, "together": 7, "facts": 5}
HOLDS = {"tokens": "pieces", "logs": "said", "numbers": "suspects", "rules": "facts", "horizontal": "together"}
"""By option of :class:`Parts`, the ragged part that goes with it."""
WORD = re.compile(r"[A-Za-z]+|[0-9]+|[#*]")
Matrix = npt.NDArray[np.float32]


def prepared(sheets: Sheets, wanted: Wanted | None = None) -> Inputs:
    """``sheets`` as numbers. ``wanted``: what should be said of them, nothing where it is only asked."""
    return Inputs(
        numbers=sheets.numbers,
        clues=sheets.clues,
        head=(2 * sheets.kind + sheets.view).astype(np.int32),
        tier=sheets.tier.astype(np.int32),
        suspects=_suspects(sheets),
        pieces=_pieces(sheets),
        said=_said(sheets),
        together=_together(sheets),
        facts=_facts(sheets),
        wanted=wanted or unjudged(len(sheets)),
    )


def vertical(inputs: Inputs) -> Int64:
    """int64: the sheets that do not look across ranks."""
    return np.flatnonzero(inputs.head % 2 == View.VERTICAL)


def unjudged(count: int) -> Wanted:
    """Of so many sheets nothing is known."""
    none = np.full(count, -1, dtype=np.int32)
    return Wanted(
        abnormal=none.astype(np.int8),
        cause=none,
        offsets=np.zeros(count + 1, dtype=np.int64),
        words=np.empty(0, dtype=np.int32),
        barred=none.copy(),
    )


def lessened(inputs: Inputs, parts: Parts) -> Inputs:
    """``inputs`` without what ``parts`` leaves out; a sheet that looks across ranks stays, for who wants to be told of it.
    Whoever loses facts has nothing to say any more: it might cite them.
    """
    facts = np.diff(inputs.facts.offsets)
    changed = {name: emptied(inputs.parts[name]) for option, name in HOLDS.items() if not getattr(parts, option)}
    inputs = replace(inputs, **changed)
    if not parts.numbers:
        inputs = replace(inputs, numbers=np.full_like(inputs.numbers, np.nan))
    if not parts.rules:
        inputs = replace(inputs, clues=np.full_like(inputs.clues, np.nan))
    if not parts.durations:
        timeless = {name: _nothing_known(inputs.parts[name]) for name in ("pieces", "suspects")}
        inputs = replace(inputs, **timeless)
    if not parts.depth:
        inputs = replace(inputs, pieces=_without_code(inputs.pieces, 0))
    if not parts.parent:
        inputs = replace(inputs, pieces=_without_code(inputs.pieces, -1))
    return without_words(inputs, np.diff(inputs.facts.offsets) == facts)


def emptied(part: Part) -> Part:
    """As many sheets with nothing of this part."""
    return Part(
        np.zeros_like(part.offsets),
        part.codes[:0],
        part.values[:0],
        part.words[:1],
        part.bag[:0],
        part.target[:0],
    )


def _nothing_known(part: Part) -> Part:
    return replace(part, values=np.full_like(part.values, np.nan))


def _without_code(part: Part, column: int) -> Part:
    codes = part.codes.copy()
    codes[:, column] = -1
    return replace(part, codes=codes)


def _suspects(sheets: Sheets) -> Part:
    rows, at = sheets.suspects, sheets.suspects_at.astype(np.int64)
    piece = np.where(rows.piece >= 0, rows.piece + np.repeat(sheets.pieces_at[:-1], np.diff(at)), -1)
    symbol = np.append(sheets.pieces.symbol, -1)[piece]
    codes = [rows.layer, _few(rows.rank, MOST_RANKS), _places(rows.method), symbol]
    values = [_log_ns(rows.value), _over(rows.value, rows.normal), _squashed(rows.residual), rows.share]
    return _part(at, codes, values, rows.name)


def _pieces(sheets: Sheets) -> Part:
    rows, at = sheets.pieces, sheets.pieces_at.astype(np.int64)
    above = np.where(rows.parent >= 0, rows.parent + np.repeat(at[:-1], np.diff(at)), -1)
    parent = np.append(rows.symbol, -1)[above]
    codes = [_few(rows.depth, DEEPEST), rows.layer, _few(rows.rank, MOST_RANKS), rows.symbol, parent]
    values = [
        _log_ns(rows.own),
        np.log1p(rows.run),
        _log_ns(rows.wait),
        _over(rows.wait, rows.own),
        _squashed(rows.residual),
        rows.share,
        rows.begin,
    ]
    return _part(at, codes, values, rows.name)


def _said(sheets: Sheets) -> Part:
    rows, at = sheets.said, sheets.said_at.astype(np.int64)
    texts = [
        f"{text} rule{rule.replace('.', '')}" if rule else text
        for rule, text in zip(rows.rule, rows.untrusted_text, strict=True)
    ]
    values = [rows.begin, *(rows.numbers[:, column] / 10.0 for column in range(rows.numbers.shape[1]))]
    return _part(at, [_places(rows.level), rows.own], values, texts)


def _together(sheets: Sheets) -> Part:
    rows, at = sheets.together, sheets.together_at.astype(np.int64)
    values = [
        rows.lasted,
        rows.waited,
        rows.waited_for,
        rows.transfer,
        rows.late,
        rows.kept,
        np.log1p(rows.collectives) / 3.0,
    ]
    return _part(at, [_few(rows.rank, MOST_RANKS)], values, [""] * len(rows.rank))


def _facts(sheets: Sheets) -> Part:
    rows, at = sheets.facts, sheets.facts_at.astype(np.int64)
    number = {key: place for place, key in enumerate(cause_ids())}
    codes = [
        np.array([number.get(key, -1) for key in rows.cause], dtype=np.int32),
        _places(rows.kind),
        _places(rows.unit),
        _places(rows.scope),
        _few(rows.rank, MOST_RANKS),
        rows.horizontal,
    ]
    values = [_signed_log(rows.value), _signed_log(rows.normal), _ratio(rows.value, rows.normal), rows.share, rows.sure]
    texts = [f"{name} {operator}" for name, operator in zip(rows.name, rows.operator, strict=True)]
    return _part(at, codes, values, texts)


def _part(
    offsets: Int64,
    codes: Sequence[npt.NDArray[np.generic]],
    values: Iterable[npt.NDArray[np.generic]],
    texts: Sequence[str],
) -> Part:
    count = len(texts)
    bags = [hashed(text) for text in texts]
    return Part(
        offsets=offsets,
        codes=np.stack([np.asarray(column, dtype=np.int32) for column in codes], axis=1),
        values=np.stack([np.asarray(column, dtype=np.float32) for column in values], axis=1),
        words=np.cumsum([0, *map(len, bags)], dtype=np.int64),
        bag=np.array([number for bag in bags for number in bag], dtype=np.int32),
        target=np.full(count, -1, dtype=np.int8),
    )


@lru_cache(1 << 14)
def hashed(text: str) -> tuple[int, ...]:
    """The places of its words in a table of BUCKETS; of numbers only how long they are, but for those of one digit."""
    found = WORD.findall(text)[:WORDS_OF_ONE]
    words = (word.lower() if not word.isdigit() or len(word) == 1 else "#" * len(word) for word in found)
    return tuple(crc32(word.encode()) % BUCKETS for word in words)


def _places(texts: Sequence[str]) -> Int32:
    """int32: where short texts stand among FEW, -1 for empty ones."""
    return np.array([_place(text) for text in texts], dtype=np.int32)


@lru_cache(1 << 10)
def _place(text: str) -> int:
    return crc32(text.encode()) % FEW if text else -1


def _few(numbers: Int32, most: int) -> Int32:
    return np.clip(numbers, -1, most - 1)


def _log_ns(ns: Int64) -> Float64:
    """log1p of ns, about 0 to 2.5; NaN for UNKNOWN."""
    return np.where(ns == UNKNOWN, np.nan, np.log1p(np.maximum(ns, 0)) / 10.0)


def _over(value: Int64, normal: Int64) -> Float64:
    known = (value != UNKNOWN) & (normal != UNKNOWN)
    ratio = np.log1p(np.maximum(value, 0)) - np.log1p(np.maximum(normal, 0))
    return np.where(known, np.clip(ratio, -8.0, 8.0), np.nan)


def _ratio(value: Float64, normal: Float64) -> Float64:
    with np.errstate(invalid="ignore"):
        return np.clip(_signed_log(value) - _signed_log(normal), -2.0, 2.0)


def _signed_log(value: Float64) -> Float64:
    with np.errstate(invalid="ignore"):
        return np.sign(value) * np.log1p(np.abs(value)) / 10.0


def _squashed(value: Float32) -> Float64:
    """Robust deviations have no bound: a logarithm of what lies on either side of 0."""
    with np.errstate(invalid="ignore"):
        return np.sign(value) * np.log1p(np.abs(value.astype(np.float64)))


def marked(part: Part, target: Int8) -> Part:
    """``part`` with what a pointer should find in it."""
    return replace(part, target=target)
