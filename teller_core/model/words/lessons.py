"""What the language head is to say of a sheet whose truth is known: lessons for training."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.report import EvidenceItem, Verdict
from teller_core.data.said import PLAIN_NAME
from teller_core.data.sheets import Kind, Sheets
from teller_core.data.table import UNKNOWN, Int32
from teller_core.model.words.lexicon import SIMILAR
from teller_core.model.words.matter import MOST_OTHERS, Fact, of_truth, share_word
from teller_core.model.words.teaching import taught

UNSURE = 0.5
"""Confidence of a cause for which nothing speaks but the truth."""
LOWERED = (0.6, 1.0)
"""An answer is so much less sure than its evidence is direct: other causes may have cost as much."""
SOMETIMES: dict[Verdict, dict[str, float]] = {
    "cause": {
        "over_slo": 0.2,
        "over_work": 0.7,
        "over_load": 0.6,
        "saving": 0.4,
        "other": 0.6,
        "phase": 0.9,
        "half": 0.6,
    },
    "normal": {"over_slo": 0.2, "over_work": 0.9, "over_load": 0.8, "phase": 0.9, "half": 0.7},
    "typical_here": {"over_slo": 0.2, "over_work": 0.9, "over_load": 0.8, "phase": 0.9, "half": 0.7, "missing": 0.9},
    "could_not_tell": {"over_slo": 0.2, "over_work": 0.6, "over_load": 0.5, "phase": 0.8, "half": 0.5, "missing": 0.9},
}
"""How often an answer has what a sheet does not tell: a model must have words for either."""


def lesson(
    sheets: Sheets, sheet: int, verdict: Verdict, key: str = "", rng: np.random.Generator | None = None
) -> Int32:
    """int32 actions, END last: a good answer for a request's sheet of which ``verdict`` is true, and ``key`` its cause. Facts are
    cited by their position in the sheet. Nothing is said of the sheet of a step: answers are for requests.
    """
    if sheets.kind[sheet] != Kind.REQUEST:
        return np.empty(0, np.int32)
    rng = rng or np.random.default_rng(sheet)
    facts = facts_of(sheets, sheet)
    rows = sheets.of("facts", sheet)
    mine = [rows.start + at for at, fact in enumerate(facts) if fact.cause == key]
    also = {name for name, often in SOMETIMES[verdict].items() if rng.random() < often} | {"took"}
    also |= {"against_1"} if "other" in also else set()
    also |= {"against_2"} if "other" in also and rng.random() < 0.5 else set()
    also |= {"saving_low", "saving_high"} if "saving" in also else set()
    also |= _places(sheets, mine)
    sure = max((float(sheets.facts.sure[at]) for at in mine), default=UNSURE)
    others = _others(facts, key) if rng.random() < 0.8 else []
    confidence, cost = sure * rng.uniform(*LOWERED), _cost(sheets, sheet, mine)
    also |= {"cost"} if cost is not None else set()
    matter = of_truth(verdict, key, facts, confidence=confidence, also=also, others=others, cost=cost)
    return taught(matter, rng)


def facts_of(sheets: Sheets, sheet: int) -> list[Fact]:
    """The facts of one sheet, in their order."""
    table, rows = sheets.facts, sheets.of("facts", sheet)
    return [
        Fact(
            table.cause[at],
            EvidenceItem.model_construct(
                kind=table.kind[at],
                scope=table.scope[at],
                span=table.span[at] or None,
                log_line=None,
                step=None,
                name=table.name[at] or None,
                value=None if np.isnan(table.value[at]) else float(table.value[at]),
                normal=None if np.isnan(table.normal[at]) else float(table.normal[at]),
                unit=table.unit[at] or None,
                untrusted_text=None,
            ),
        )
        for at in range(rows.start, rows.stop)
    ]


def _places(sheets: Sheets, mine: Sequence[int]) -> set[str]:
    """The slots that the first fact of the cause fills, and how much of the time it is."""
    if not mine:
        return set()
    table, first = sheets.facts, mine[0]
    found = {"step"} if int(table.step[first]) >= 0 else set[str]()
    found |= {"rank"} if int(table.rank[first]) >= 0 else set()
    found |= {"operator"} if PLAIN_NAME.fullmatch(table.operator[first]) else set()
    found |= share_word(float(table.share[first])) if table.unit[first] == "ms" else set()
    return found | ({"similar"} if any(table.scope[at] == SIMILAR for at in mine) else set())


def _cost(sheets: Sheets, sheet: int, mine: Sequence[int]) -> float | None:
    """ms that the cause cost in all, by its share; None where nothing speaks for it or the stretch is not known."""
    if not mine or int(sheets.span[sheet]) == UNKNOWN:
        return None
    return float(sheets.facts.share[mine[0]]) * int(sheets.span[sheet]) / 1e6


def _others(facts: Sequence[Fact], key: str) -> list[str]:
    firsts = {fact.cause: fact.item for fact in reversed(facts) if fact.cause != key}
    timed = [fact.cause for fact in facts if fact.cause in firsts and firsts[fact.cause].unit == "ms"]
    return list(dict.fromkeys(timed))[:MOST_OTHERS]
