"""Lives made by chance whose causes can be learned: what tells them stands where a recording would have it."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from teller_core.data.sheets import CLUE, Sheets, cause_ids, place_of
from teller_core.model.classes import FIRST, NONE, class_of
from teller_core.model.inputs import Inputs, owners
from teller_core.model.preparing import marked, prepared, unjudged
from teller_core.model.training import Life
from tests.core.data.sheets_made import made

CAUSES = ("scheduler.queue_saturation", "host.gc_pause", "comm.straggler_rank")
SYMBOLS, VOCABULARY = 128, "made"
GUILTY = 77
"""The symbol of a piece that is to blame."""


def sheets_of(count: int, seed: int) -> tuple[Sheets, np.ndarray]:
    """``count`` sheets, and of each its class: none in half of them."""
    chance = np.random.default_rng([seed, 5])
    plain = made(count, seed, VOCABULARY)
    classes = np.array([class_of(key) for key in CAUSES])
    wanted = np.where(chance.random(count) < 0.5, NONE, classes[chance.integers(0, 3, count)])
    struck = wanted >= FIRST
    numbers = plain.numbers.copy()
    numbers[:, place_of()["over.over"]] = np.where(struck, 1.5, 0.0) + chance.normal(0.0, 0.3, count)
    clues = np.zeros((count, len(cause_ids()), len(CLUE)), dtype=np.float32)
    clues[struck, wanted[struck] - FIRST] = [0.6, 0.9, 1.0]
    symbol = np.where(plain.pieces.symbol == GUILTY, 1, plain.pieces.symbol).astype(np.int32)
    share = plain.pieces.share * np.float32(0.1)
    guilty = np.flatnonzero(struck & (np.diff(plain.pieces_at) > 0))
    at = plain.pieces_at[guilty] + (chance.random(len(guilty)) * np.diff(plain.pieces_at)[guilty]).astype(np.int64)
    symbol[at], share[at] = GUILTY, 0.9
    first = plain.facts_at[:-1][struck & (np.diff(plain.facts_at) > 0)]
    cause = list(plain.facts.cause)
    owner = np.repeat(np.arange(count), np.diff(plain.facts_at))
    for row in first.tolist():
        cause[row] = cause_ids()[wanted[owner[row]] - FIRST]
    late = plain.together.late.copy()
    late[:] = 0.0
    blamed = np.flatnonzero(struck & (np.diff(plain.together_at) > 0))
    late[plain.together_at[blamed]] = 1.0
    return replace(
        plain,
        numbers=numbers,
        clues=clues,
        pieces=replace(plain.pieces, symbol=symbol, share=share),
        facts=replace(plain.facts, cause=cause),
        together=replace(plain.together, late=late),
    ), wanted


def inputs_of(sheets: Sheets, wanted: np.ndarray, words: bool = False) -> Inputs:
    """The sheets with what should be said of them. With ``words``: of a struck one its cause, by a number from 1 on."""
    count = len(sheets)
    spoken = (wanted >= FIRST) & words
    said = [word for cause in wanted[spoken].tolist() for word in (1 + CAUSES.index(cause_ids()[cause - FIRST]), 4, 0)]
    told = replace(
        unjudged(count),
        abnormal=(wanted >= FIRST).astype(np.int8),
        cause=wanted.astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(3 * spoken)]).astype(np.int64),
        words=np.array(said, dtype=np.int32),
    )
    plain = prepared(sheets, told)
    guilty = np.where(plain.pieces.codes[:, 3] == GUILTY, 1, 0) if len(plain.pieces) else np.empty(0)
    pieces = marked(plain.pieces, guilty.astype(np.int8))
    mine = (wanted[owners(plain.facts)] - FIRST) == plain.facts.codes[:, 0]
    facts = marked(plain.facts, mine.astype(np.int8))
    late = plain.together.values[:, 4] == 1.0
    together = marked(plain.together, np.where(late, 1, 0).astype(np.int8))
    suspects = marked(plain.suspects, np.zeros(len(plain.suspects), dtype=np.int8))
    return replace(plain, pieces=pieces, facts=facts, together=together, suspects=suspects)


def decoder(folder: Path, **sizes: int) -> Path:
    """``folder``, with a causal language model of weights by chance in it: a tiny one, but for ``sizes``."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config: dict[str, Any] = {
        "vocab_size": 32,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "max_position_embeddings": 512,
        **sizes,
    }
    torch.manual_seed(0)
    Qwen3ForCausalLM(Qwen3Config(**config)).bfloat16().save_pretrained(folder)
    return folder


def lives_of(count: int, sheets: int, words: bool = False) -> list[Life]:
    """``count`` lives of so many sheets each."""
    found: list[Life] = []
    for seed in range(count):
        given, wanted = sheets_of(sheets, seed)
        name = sha256(f"{seed}".encode()).hexdigest()
        found.append(Life(name[:8], name, replace(inputs_of(given, wanted, words=words))))
    return found
