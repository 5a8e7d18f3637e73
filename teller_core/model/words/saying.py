"""An answer in words, from scores to what may leave: decoded, filled, checked; what does not pass is dropped and counted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from teller_core.data.report import WhyReport
from teller_core.data.table import Float32
from teller_core.model.words.checking import checked
from teller_core.model.words.filling import filled
from teller_core.model.words.matter import Fact, of_report
from teller_core.model.words.teaching import decoded, taught


@dataclass(frozen=True)
class Said:
    """``text``: what may leave; ``facts``: the positions of the facts that it cites; ``dropped``: sentences, by what is wrong."""

    text: str
    facts: tuple[int, ...]
    dropped: Mapping[str, int]


def said(
    report: WhyReport,
    score: Callable[[Sequence[int]], Float32] | None = None,
    facts: Sequence[Fact] | None = None,
) -> Said:
    """``report`` in words. ``score``: of each action after those so far, as :func:`decoded` takes it; without it the plain words.
    ``facts``: those that the scores are of, in their order, else those of the report.
    """
    matter = of_report(report, facts)
    actions = taught(matter) if score is None else decoded(matter, score)
    claims = filled(actions, matter, report).claims
    found = checked([claim.text for claim in claims], report)
    cited = tuple(dict.fromkeys(fact for claim in claims if claim.text in found.kept for fact in claim.facts))
    return Said(found.text, cited, found.dropped)
