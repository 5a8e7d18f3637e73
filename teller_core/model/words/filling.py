"""From actions to text: words with their slots filled from the answer, facts as clauses. Nothing else gets into a sentence."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from teller_core.data.causes import cause
from teller_core.data.report import WhyReport
from teller_core.data.said import capital, cost_of, number
from teller_core.model.words.grammar import END, SLOT, grammar
from teller_core.model.words.lexicon import amount, clause
from teller_core.model.words.matter import FIRST, WHOLE, Fact, Matter, slots

STOP = ". "
"""How the last word of a sentence ends."""


@dataclass(frozen=True)
class Claim:
    """One sentence, and the positions of the facts that it cites."""

    text: str
    facts: tuple[int, ...]


@dataclass(frozen=True)
class Spoken:
    """What was said, sentence by sentence."""

    claims: tuple[Claim, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return " ".join(claim.text for claim in self.claims)

    @property
    def facts(self) -> tuple[int, ...]:
        """The facts cited, each once, in their order."""
        return tuple(dict.fromkeys(fact for claim in self.claims for fact in claim.facts))


def filled(actions: Iterable[int], matter: Matter, report: WhyReport) -> Spoken:
    """The text of ``actions``, which the grammar allows of ``matter``. Raises ValueError where a slot has nothing to fill it."""
    words, given = grammar().words, slots(report)
    claims: list[Claim] = []
    text, cited, last = "", list[int](), None
    for action in map(int, actions):
        if action == END:
            break
        if action >= len(words):
            last = action - len(words)
            cited.append(last)
            text += _fact(matter, last, report)
        else:
            cited += [at for at, kinds in enumerate(matter.kinds) if FIRST in kinds and "{cost}" in words[action]]
            text += _word(words[action], given, None if last is None else matter.facts[last])
        if text.endswith(STOP):
            claims.append(Claim(capital(text.strip()), tuple(cited)))
            text, cited, last = "", [], None
    return Spoken(tuple(claims))


def _fact(matter: Matter, at: int, report: WhyReport) -> str:
    fact = matter.facts[at]
    if "beside" in matter.kinds[at]:
        costs = [cost_of(finding) for finding in report.findings if finding.cause == fact.cause]
        return f"{cause(fact.cause).called} ({number(next(each for each in costs if each is not None))} ms)"
    said = clause(fact.item)
    if said is None or not matter.kinds[at] - {FIRST, WHOLE}:
        raise ValueError("a fact is cited that may not be said")
    return said


def _word(word: str, given: dict[str, str], last: Fact | None) -> str:
    if "{normal}" in word:
        if last is None or last.item.normal is None:
            raise ValueError("a fact is compared with what is usual, and nothing says what that is")
        given = {**given, "normal": amount(last.item, last.item.normal)}
    missing = [name for name in SLOT.findall(word) if name not in given]
    if missing:
        raise ValueError(f"a word needs what this answer has not: {missing}")
    return SLOT.sub(lambda match: given[match[1]], word)


def sentences(text: str) -> list[str]:
    """The sentences of ``text``."""
    return [part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z`\d])", text.strip()) if part]
