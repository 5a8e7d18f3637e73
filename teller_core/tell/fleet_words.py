"""What explains the tail of a fleet, in sentences: every number is one of the answer's own."""

from collections.abc import Sequence

from teller_core.data.report import Cell
from teller_core.data.report_fleet import Cohort, TailPart
from teller_core.tell.fleet_rows import COLUMNS, REPLICA_COLUMNS, Kind, kind_rows
from teller_core.tell.layout import many, milliseconds

MOST = 3
"""Of each kind that a sentence names."""
ORDER = ("cause", "rank", "host", "service", "prompt", "output", "ended by")
"""Kinds that a sentence names; replicas have one of their own."""
SAID = {
    "cause": "the cause {}",
    "rank": "{}, which is named for it",
    "host": "the host {}",
    "service": "the service {}",
    "prompt": "prompts of {}",
    "output": "answers of {}",
    "ended by": "the end by {}",
}


def explanation(
    quantile: float,
    cohorts: tuple[Cohort, Cohort],
    parts: Sequence[TailPart],
    kinds: Sequence[Kind],
    outliers: Sequence[Sequence[Cell]],
) -> str:
    """What the tail is, which phases it is made of, and who has more of it than of the middle."""
    (tail, middle), name = cohorts, f"p{100 * quantile:.0f}"
    said = [
        f"The slowest {many(tail.requests, 'request')}, from {name} ({milliseconds(tail.from_ms)}) on, took "
        f"{milliseconds(tail.mean_ms)} on average, the {middle.requests:,} in the middle {milliseconds(middle.mean_ms)}."
    ]
    named = sorted((part for part in parts if part.named), key=lambda part: -(part.share or 0.0))
    if named:
        told = [f"{100 * (part.share or 0.0):.0f} % are {part.part.replace('_', ' ')}" for part in named[:MOST]]
        said.append(f"Of the {milliseconds(tail.mean_ms - middle.mean_ms)} between them {', '.join(told)}.")
    else:
        said.append("No phase alone explains a tenth of what is between them.")
    said += [_outlier(row, name) for row in outliers[:MOST]]
    by = {kind.of: kind for kind in kinds}
    groups = [sentence for of in ORDER if of in by for sentence in _groups(by[of])]
    said += groups
    if not outliers and not groups:
        said.append("No replica and no kind of request has clearly more of the tail than of the middle.")
    return " ".join(said)


def _outlier(row: Sequence[Cell], name: str) -> str:
    told = dict(zip(REPLICA_COLUMNS, row, strict=True))
    without = told["without_ms"]
    ends = f": without it {name} would be {milliseconds(float(without))}" if isinstance(without, float) else ""
    shares = f"{_share(told['tail_share'])} of the tail and {_share(told['share'])} of all requests"
    return f"Replica {told['replica']} has {shares}{ends}."


def _groups(kind: Kind) -> list[str]:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in kind_rows(kind)]
    return [
        f"{_sentence_case(SAID[kind.of].format(row['what']))}: {_share(row['tail_share'])} of the tail, "
        f"{_share(row['middle_share'])} of the middle."
        for row in [row for row in rows if row["named"]][:MOST]
    ]


def _share(value: Cell) -> str:
    percent = 100 * float(value or 0)
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"


def _sentence_case(text: str) -> str:
    return text[0].upper() + text[1:]
