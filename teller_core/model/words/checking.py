"""What was said, held against the answer: sentences that it does not bear out are dropped, and counted by what is wrong.

It knows nothing of the grammar: what it is given may come from anywhere.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from teller_core.data.causes import causes
from teller_core.data.report import EvidenceItem, Verdict, WhyReport
from teller_core.data.said import NUMBER, QUOTED, Band, band, number, supported
from teller_core.model.words.filling import sentences
from teller_core.model.words.lexicon import clause
from teller_core.model.words.matter import share_of

COMPARED = re.compile(r"\b(more than ten times|more than twice|more than|less than|about) the usual (\d+(?:\.\d+)?)")
TRUE_OF: Mapping[str, Callable[[float, float], bool]] = {
    "more than ten times": lambda value, normal: value > 10 * normal,
    "more than twice": lambda value, normal: value > 2 * normal,
    "more than": lambda value, normal: value > normal,
    "less than": lambda value, normal: value < normal,
    "about": lambda value, normal: 0.9 * normal <= value <= 1.1 * normal,
}
UP = re.compile(
    r"(?<!no )\b(?:longer|slower|higher|larger|bigger|more than (?:usual|normal)|twice|doubled?|grew|rose)\b", re.I
)
DOWN = re.compile(r"\b(?:shorter|faster|lower|smaller|less than (?:usual|normal)|half as|halved|shrank|fell)\b", re.I)
HEDGED: Mapping[Band, re.Pattern[str]] = {
    "sure": re.compile(r"\b(?:certainly|clearly|definitely|surely|undoubtedly|without (?:much |any )?doubt)\b", re.I),
    "likely": re.compile(r"\b(?:most likely|likely|probably)\b", re.I),
    "maybe": re.compile(r"\b(?:perhaps|possibly|it may be|might|maybe|could be)\b", re.I),
}
AGAINST = re.compile(r"\b(?:does not look like|is not|was not|speaks against|rather than|unlike)\b", re.I)
BESIDE = re.compile(r"^(?:beside it|besides|at the same time|in addition|also)\b", re.I)
VERDICTS: Mapping[Verdict, re.Pattern[str]] = {
    "normal": re.compile(r"\breference says\b", re.I),
    "typical_here": re.compile(r"\bno slower than its peers\b|\btypical\b", re.I),
    "could_not_tell": re.compile(r"\bcannot be told\b|\bcannot tell\b|\bcould not (?:be told|tell)\b", re.I),
}
SHARE: Mapping[str, re.Pattern[str]] = {
    "most_of_it": re.compile(r"\bmost of (?:its|the) time\b(?! (?:went|was))", re.I),
    "half_of_it": re.compile(r"\bhalf of (?:its|the) time\b(?! (?:went|was))", re.I),
    "some_of_it": re.compile(r"\bsmaller part of (?:its|the) time\b(?! (?:went|was))", re.I),
}
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
"""A text keeps its length, which lower() does not grant."""
SHINGLE = 4
"""Words in a row that are taken for a quotation."""


@dataclass(frozen=True)
class Checked:
    """``kept``: the sentences that the answer bears out. ``dropped``: how many did not pass, by the first thing that is wrong."""

    kept: tuple[str, ...]
    dropped: Mapping[str, int]

    @property
    def text(self) -> str:
        """What may leave."""
        return " ".join(self.kept)


@dataclass(frozen=True)
class _Answer:
    """``own``: texts of this answer alone; ``literals``: those, and what causes are called in plain words; ``known``: those, and
    the facts; ``unquoted``: all of them without what is quoted in them. Lower case, longest first.
    """

    report: WhyReport
    numbers: frozenset[str]
    names: frozenset[str]
    own: tuple[str, ...]
    literals: tuple[str, ...]
    known: tuple[str, ...]
    unquoted: tuple[str, ...]
    facts: tuple[EvidenceItem, ...]


def checked(said: str | Sequence[str], report: WhyReport) -> Checked:
    """The sentences of ``said`` that ``report`` bears out: every number and name is in it, the cause in words is its cause,
    comparisons are true, hedges fit its confidence, and nothing is a quotation of a trace or a log.
    """
    answer = _answer(report)
    kept: list[str] = []
    dropped = Counter[str]()
    for sentence in sentences(said) if isinstance(said, str) else said:
        wrong = next((name for name, check in CHECKS.items() if not check(sentence, answer)), None)
        if wrong is None:
            kept.append(sentence)
        else:
            dropped[wrong] += 1
    return Checked(tuple(kept), dict(dropped))


def _answer(report: WhyReport) -> _Answer:
    numbers, names = supported(report)
    facts = [item for finding in report.findings for item in finding.evidence]
    clauses = [said for item in facts if (said := clause(item)) is not None]
    numbers |= {found for said in clauses for found in NUMBER.findall(QUOTED.sub(" ", said))}
    clauses += [item.name for item in facts if item.name and item.kind != "span" and clause(item) is not None]
    own = [report.reason.rstrip("."), *(check.rstrip(".") for check in report.next_checks)]
    for finding in report.findings:
        about = causes().get(finding.cause)
        own += [finding.fix.rstrip("."), *(line.partition(": ")[2] for line in finding.against)]
        own += [about.fix.rstrip("."), about.next_check.rstrip(".")] if about else []
    literals = [*own, *(cause.plain for cause in causes().values())]
    return _Answer(
        report=report,
        numbers=frozenset(numbers),
        names=frozenset(names),
        own=_lowered(own),
        literals=_lowered(literals),
        known=_lowered([*literals, *clauses]),
        unquoted=_lowered(QUOTED.sub(" ", text) for text in [*literals, *clauses]),
        facts=tuple(facts),
    )


def _without(sentence: str, texts: Sequence[str]) -> str:
    """What is left of a sentence without ``texts``, which are lower case, longest first."""
    low = sentence.translate(LOWER)
    for text in texts:
        while (at := low.find(text)) >= 0:
            sentence = f"{sentence[:at]} {sentence[at + len(text) :]}"
            low = sentence.translate(LOWER)
    return sentence


def _lowered(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({text.translate(LOWER) for text in texts if text.strip()}, key=len, reverse=True))


def _numbers_stand(sentence: str, answer: _Answer) -> bool:
    left = QUOTED.sub(" ", _without(sentence, answer.literals))
    return set(NUMBER.findall(left)) <= answer.numbers


def _names_stand(sentence: str, answer: _Answer) -> bool:
    return set(QUOTED.findall(_without(sentence, answer.literals))) <= answer.names


def _cause_stands(sentence: str, answer: _Answer) -> bool:
    findings = answer.report.findings
    named = set(_mentioned(_without(sentence, answer.own)))
    if not named:
        return True
    if not findings:
        return False
    if AGAINST.search(sentence):
        return named <= {line.partition(": ")[0] for line in findings[0].against} - {findings[0].cause}
    if BESIDE.search(sentence):
        return named <= {finding.cause for finding in findings[1:]}
    return named == {findings[0].cause}


def _hedges_fit(sentence: str, answer: _Answer) -> bool:
    if not answer.report.findings:
        return True
    sure = band(answer.report.findings[0].confidence)
    left = _without(sentence, answer.known)
    used = {name for name, pattern in HEDGED.items() if pattern.search(left)}
    bare = not (AGAINST.search(left) or BESIDE.search(left)) and bool(set(_mentioned(_without(sentence, answer.own))))
    return used <= {sure} and not (bare and sure != "sure" and not used)


def _comparisons_hold(sentence: str, answer: _Answer) -> bool:
    unquoted = QUOTED.sub(" ", sentence)
    for match in COMPARED.finditer(unquoted):
        before = NUMBER.findall(unquoted[: match.start()])
        holds = TRUE_OF[match[1].lower()]
        if not before or not any(
            number(value) == before[-1] and number(normal) == match[2] and holds(value, normal)
            for value, normal in _pairs(answer)
        ):
            return False
    left = _without(unquoted, answer.unquoted)
    for pattern in (COMPARED, *SHARE.values()):
        left = pattern.sub(" ", left)
    found = set(NUMBER.findall(unquoted))
    higher = any(number(value) in found and value > normal for value, normal in _pairs(answer))
    lower = any(number(value) in found and value < normal for value, normal in _pairs(answer))
    return (higher or not UP.search(left)) and (lower or not DOWN.search(left))


def _shares_hold(sentence: str, answer: _Answer) -> bool:
    told = {name for name, pattern in SHARE.items() if pattern.search(sentence)}
    return not told or (bool(answer.report.findings) and told == share_of(answer.report))


def _pairs(answer: _Answer) -> Iterator[tuple[float, float]]:
    """Each value that has something usual beside it, and that."""
    for item in answer.facts:
        if item.value is not None and item.normal is not None:
            yield item.value, item.normal


def _verdict_stands(sentence: str, answer: _Answer) -> bool:
    left = _without(sentence, answer.literals)
    return all(verdict == answer.report.verdict for verdict, told in VERDICTS.items() if told.search(left))


def _quotes_nothing(sentence: str, answer: _Answer) -> bool:
    words = _words(_without(sentence, answer.known))
    said = {tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1)}
    for item in answer.facts:
        text = _words(item.untrusted_text or "")
        if any(tuple(text[at : at + SHINGLE]) in said for at in range(len(text) - SHINGLE + 1)):
            return False
    return True


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _mentioned(sentence: str) -> Iterator[str]:
    """The causes that a sentence names, in any of the ways in which they are called."""
    low = sentence.translate(LOWER)
    for text, key, pattern in _ways():
        if text in low and pattern.search(low):
            low = pattern.sub(" ", low)
            yield key


@cache
def _ways() -> list[tuple[str, str, re.Pattern[str]]]:
    """Longest first: some are part of others."""
    ways = [
        (text.translate(LOWER), key, re.compile(rf"(?<!\w){re.escape(text.translate(LOWER))}(?!\w)"))
        for key, cause in causes().items()
        for text in (cause.called, cause.plain, cause.title, key)
    ]
    return sorted(ways, key=lambda way: -len(way[0]))


CHECKS: Mapping[str, Callable[[str, _Answer], bool]] = {
    "number": _numbers_stand,
    "name": _names_stand,
    "cause": _cause_stands,
    "comparison": _comparisons_hold,
    "share": _shares_hold,
    "confidence": _hedges_fit,
    "verdict": _verdict_stands,
    "quotation": _quotes_nothing,
}
"""By what is wrong with a sentence that does not pass."""
