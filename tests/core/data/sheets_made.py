"""Sheets made at random that keep the contract."""

import numpy as np

from teller_core.data.sheet_parts import PARTS, SAID_NUMBERS, Facts, Pieces, Said, Suspects, Together
from teller_core.data.sheets import CLUE, NUMBERS, Sheets, cause_ids, with_rows


def made(count: int, seed: int, vocabulary: str = "made") -> Sheets:
    """``count`` sheets, some of them with nothing in a part and some with all that may be."""
    chance = np.random.default_rng(seed)
    many = {part: chance.integers(0, most + 1, count) * chance.integers(0, 2, count) for part, most in PARTS.items()}
    return Sheets(
        kind=chance.integers(0, 2, count).astype(np.uint8),
        view=chance.integers(0, 2, count).astype(np.uint8),
        tier=chance.integers(0, 5, count).astype(np.uint8),
        position=np.arange(count, dtype=np.int32),
        step=chance.integers(-1, 9, count).astype(np.int32),
        span=chance.integers(0, 10**9, count),
        numbers=_some(chance, (count, len(NUMBERS))),
        clues=_some(chance, (count, len(cause_ids()), len(CLUE))),
        pieces=_pieces(chance, many["pieces"]),
        pieces_at=with_rows(many["pieces"].tolist()),
        suspects=_suspects(chance, many["suspects"], many["pieces"]),
        suspects_at=with_rows(many["suspects"].tolist()),
        said=_said(chance, int(many["said"].sum())),
        said_at=with_rows(many["said"].tolist()),
        facts=_facts(chance, int(many["facts"].sum())),
        facts_at=with_rows(many["facts"].tolist()),
        together=_together(chance, int(many["together"].sum())),
        together_at=with_rows(many["together"].tolist()),
        vocabulary=vocabulary,
    )


def _some(chance: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    value = chance.normal(size=shape).astype(np.float32)
    value[chance.random(shape) < 0.3] = np.nan
    return value


def _whole(chance: np.random.Generator, low: int, high: int, rows: int) -> np.ndarray:
    return chance.integers(low, high, rows).astype(np.int32)


def _names(chance: np.random.Generator, rows: int) -> list[str]:
    return [f"aten::op{at}" for at in chance.integers(0, 9, rows).tolist()]


def _pieces(chance: np.random.Generator, many: np.ndarray) -> Pieces:
    rows = int(many.sum())
    place = np.concatenate([np.arange(each) for each in many] or [np.empty(0, np.int64)])
    return Pieces(
        symbol=_whole(chance, -1, 99, rows),
        run=_whole(chance, 1, 4, rows),
        parent=(chance.random(rows) * (place + 1)).astype(np.int32) - 1,
        depth=_whole(chance, 0, 9, rows),
        layer=_whole(chance, 0, 8, rows).astype(np.uint8),
        rank=_whole(chance, 0, 2, rows),
        row=_whole(chance, 0, 999, rows),
        own=chance.integers(0, 10**7, rows),
        wait=chance.integers(0, 10**7, rows),
        residual=_some(chance, (rows,)),
        share=chance.random(rows).astype(np.float32),
        begin=chance.random(rows).astype(np.float32),
        name=_names(chance, rows),
    )


def _suspects(chance: np.random.Generator, many: np.ndarray, pieces: np.ndarray) -> Suspects:
    rows = int(many.sum())
    return Suspects(
        name=_names(chance, rows),
        layer=_whole(chance, 0, 8, rows).astype(np.uint8),
        rank=_whole(chance, 0, 2, rows),
        row=_whole(chance, -1, 999, rows),
        value=chance.integers(0, 10**7, rows),
        normal=chance.integers(0, 10**7, rows),
        residual=_some(chance, (rows,)),
        share=chance.random(rows).astype(np.float32),
        piece=(chance.random(rows) * (np.repeat(pieces, many) + 1)).astype(np.int32) - 1,
        method=["residual"] * rows,
    )


def _said(chance: np.random.Generator, rows: int) -> Said:
    return Said(
        line=_whole(chance, 0, 999, rows),
        rule=["" if at else "vllm.stats" for at in chance.integers(0, 2, rows).tolist()],
        level=["INFO"] * rows,
        untrusted_text=[f"word{at} took # ms" for at in chance.integers(0, 9, rows).tolist()],
        begin=chance.random(rows).astype(np.float32),
        own=_whole(chance, 0, 2, rows).astype(np.uint8),
        numbers=_some(chance, (rows, SAID_NUMBERS)),
    )


def _facts(chance: np.random.Generator, rows: int) -> Facts:
    causes = cause_ids()
    return Facts(
        cause=[causes[at] for at in chance.integers(0, len(causes), rows).tolist()],
        name=[f"fact {at}" for at in chance.integers(0, 9, rows).tolist()],
        value=chance.random(rows),
        normal=chance.random(rows),
        unit=["ms"] * rows,
        kind=["count"] * rows,
        scope=["this_request"] * rows,
        share=chance.random(rows).astype(np.float32),
        sure=chance.random(rows).astype(np.float32),
        step=_whole(chance, -1, 9, rows),
        rank=_whole(chance, -1, 2, rows),
        operator=_names(chance, rows),
        span=[""] * rows,
        line=_whole(chance, -1, 9, rows),
        horizontal=_whole(chance, 0, 2, rows).astype(np.uint8),
    )


def _together(chance: np.random.Generator, rows: int) -> Together:
    return Together(
        rank=_whole(chance, 0, 16, rows),
        lasted=_some(chance, (rows,)),
        waited=_some(chance, (rows,)),
        waited_for=_some(chance, (rows,)),
        transfer=_some(chance, (rows,)),
        late=_some(chance, (rows,)),
        kept=_some(chance, (rows,)),
        collectives=_whole(chance, 0, 99, rows),
    )
