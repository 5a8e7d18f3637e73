"""Hiding what was recorded: by chance, so that the network learns to answer from what is left; and what a cause is told by, so
that it learns to answer that it cannot be told.
"""

from dataclasses import replace

import numpy as np

from teller_core.data.sheets import CLUE, GROUPS
from teller_core.data.table import Int64, Mask
from teller_core.model.classes import FIRST, UNTOLD
from teller_core.model.inputs import NAMES, Inputs, Part, kept, owners
from teller_core.model.laying import GROUP_OF, without_words
from teller_core.model.options import Masks
from teller_core.model.preparing import CAUSE_CODE


def masked(inputs: Inputs, masks: Masks, random: np.random.Generator) -> Inputs:
    """``inputs`` with parts hidden by chance. A sheet that lost facts has nothing to say any more: it might cite them."""
    count, facts = len(inputs), np.diff(inputs.facts.offsets)
    drawn = random.random(count)
    struck = inputs.wanted.cause >= FIRST
    inputs = told_nothing(inputs, told(inputs) & (drawn < masks.cited))
    inputs = other_gone(inputs, struck & (drawn >= masks.cited) & (drawn < masks.cited + masks.other), random)
    inputs = unseen(inputs, struck & (drawn >= 1.0 - masks.barred))
    hidden = np.array([masks.service if name == "service" else masks.group for name in GROUPS])
    groups = random.random((count, len(GROUPS))) < hidden
    numbers = np.where(groups[:, GROUP_OF], np.float32(np.nan), inputs.numbers)
    silent = random.random(inputs.clues.shape[:2]) < masks.clue
    clues = np.where(silent[..., None], np.float32(np.nan), inputs.clues)
    gone = random.random((count, len(NAMES))) < masks.part
    parts = {name: kept(part, ~gone[owners(part), at]) for at, (name, part) in enumerate(inputs.parts.items())}
    shown = replace(inputs, numbers=numbers, clues=clues, **parts)
    return without_words(shown, np.diff(shown.facts.offsets) == facts)


def told(inputs: Inputs) -> Mask:
    """bool: sheets of a known cause whose rule saw something, or has a fact: what is deleted there was there before."""
    cause = inputs.wanted.cause.astype(np.int64) - FIRST
    with np.errstate(invalid="ignore"):
        cost = inputs.clues[np.arange(len(inputs)), np.maximum(cause, 0), CLUE.index("cost")] > 0.0
    facts = inputs.facts
    owner = owners(facts)
    cited = np.zeros(len(inputs), dtype=np.bool_)
    cited[owner[facts.codes[:, CAUSE_CODE] == cause[owner]]] = True
    return (cause >= 0) & (cost | cited)


def told_nothing(inputs: Inputs, rows: Mask) -> Inputs:
    """``inputs`` where the sheets ``rows`` have lost all that their own cause is told by; what they want is UNTOLD."""
    if not rows.any():
        return inputs
    bare = without(inputs, rows, np.where(rows, inputs.wanted.cause, -1).astype(np.int64))
    cause = np.where(rows, UNTOLD, inputs.wanted.cause).astype(np.int32)
    return without_words(replace(bare, wanted=replace(inputs.wanted, cause=cause)), ~rows)


def unseen(inputs: Inputs, rows: Mask) -> Inputs:
    """``inputs`` where the cause of the sheets ``rows`` is taken for one that was never seen: what they want is UNTOLD, and their
    cause may not be said. The network learns what to say of faults that are not among its classes.
    """
    old = inputs.wanted
    cause, barred = (
        np.where(rows, new, whole).astype(np.int32) for new, whole in ((UNTOLD, old.cause), (old.cause, old.barred))
    )
    return without_words(replace(inputs, wanted=replace(old, cause=cause, barred=barred)), ~rows)


def without(inputs: Inputs, rows: Mask, cause: Int64) -> Inputs:
    """``inputs`` where the sheets ``rows`` lack what tells ``cause`` (int64 classes, one a sheet): its clue, its facts, and the
    items that a pointer should find.
    """
    clues = inputs.clues.copy()
    where = np.flatnonzero(rows & (cause >= FIRST))
    clues[where, cause[where] - FIRST] = np.nan
    own = owners(inputs.facts)
    facts = kept(inputs.facts, ~(rows[own] & (inputs.facts.codes[:, CAUSE_CODE] == cause[own] - FIRST)))
    right = {name: _not_right(inputs.parts[name], rows) for name in ("suspects", "pieces", "together")}
    return replace(inputs, clues=clues, facts=facts, **right)


def _not_right(part: Part, rows: Mask) -> Part:
    return kept(part, ~(rows[owners(part)] & (part.target == 1)))


def other_gone(inputs: Inputs, rows: Mask, random: np.random.Generator) -> Inputs:
    """``inputs`` where the sheets ``rows`` lack the clue of a cause that is not theirs, and half of the facts of such causes."""
    if not rows.any():
        return inputs
    count, causes = inputs.clues.shape[:2]
    other = random.integers(0, causes - 1, count)
    own = inputs.wanted.cause.astype(np.int64) - FIRST
    other = other + (other >= own) + FIRST
    facts = inputs.facts
    owner = owners(facts)
    some: Mask = (facts.codes[:, CAUSE_CODE] != own[owner]) & (random.random(len(facts)) < 0.5)
    clues = inputs.clues.copy()
    where = np.flatnonzero(rows)
    clues[where, other[where] - FIRST] = np.nan
    return replace(inputs, clues=clues, facts=kept(facts, ~(rows[owner] & some)))
