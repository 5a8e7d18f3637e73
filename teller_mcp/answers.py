"""The reports of the core as tool answers: with the next calls that make sense, and cut to what a model can read."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeVar, cast

from pydantic import Field

from teller_core.data.report import (
    CaptureReport,
    Cell,
    CompareReport,
    ImportReport,
    Model,
    SliceReport,
    SlowReport,
    WhyReport,
)
from teller_core.data.report_fleet import FleetReport
from teller_core.data.report_operators import OperatorReport
from teller_core.data.report_recording import JobsReport
from teller_core.data.report_search import SearchReport
from teller_core.data.report_what_if import WhatIfReport
from teller_core.tell.visible import visible

Detail = Literal["concise", "normal", "full"]
CHARACTERS: dict[Detail, int] = {"concise": 2_500, "normal": 6_000, "full": 19_000}
"""The longest answer at each detail. Hosts reject results over 25,000 tokens; rows of numbers take 2 characters a token."""


def room(detail: Detail, max_chars: int | None) -> int:
    """How many characters an answer may have: what was asked for, else what its ``detail`` takes."""
    return CHARACTERS[detail] if max_chars is None else max_chars


class NextCall(Model):
    """A call that makes sense now, ready to be made."""

    tool: str
    arguments: dict[str, Cell | list[str]]
    why: str


class Answer(Model):
    """What every tool adds to its report. ``KEYS``: the fields that a client is told of beforehand."""

    KEYS: ClassVar[tuple[str, ...]] = ()

    next: list[NextCall] = Field(description="calls that make sense now")
    left_out: dict[str, int] = Field(default_factory=dict, description="entries cut to fit, by list")


class ImportAnswer(Answer, ImportReport):
    """What was read."""

    KEYS = ("captures",)


class CaptureLine(Model):
    """One capture of the store, in short."""

    id: str
    name: str
    engine: str | None
    tier: int
    steps: int
    requests: int

    @staticmethod
    def of(report: CaptureReport) -> "CaptureLine":
        """The line of ``report``."""
        return CaptureLine(
            id=short(report.id),
            name=report.name,
            engine=report.engine,
            tier=report.tier,
            steps=report.steps,
            requests=report.requests,
        )


class SlowAnswer(Answer, SlowReport):
    """The slowest requests, and the captures there are; or in ``fleet`` what explains the tail of many captures, with its groups
    in ``rows``.
    """

    KEYS = ("columns", "rows", "next_cursor")
    captures: list[CaptureLine] = Field(default_factory=list[CaptureLine], description="all captures, newest first")
    fleet: FleetReport | None = None


class SearchAnswer(Answer, SearchReport):
    """Where a text stands."""

    KEYS = ("columns", "rows", "counts", "next_cursor")


class WhyAnswer(Answer, WhyReport):
    """Why a request was slow."""

    KEYS = ("verdict", "confidence", "reason", "findings", "explanation", "not_seen")
    what_if: WhatIfReport | None = Field(default=None, description="what it would have gained, where that was asked")


class SliceAnswer(Answer, SliceReport):
    """What bears on a step."""

    KEYS = ("lines", "cut")


class OperatorAnswer(Answer, OperatorReport):
    """What an operator is and does here."""

    KEYS = ("what_it_is", "places")


class CompareAnswer(Answer, CompareReport):
    """What differs."""

    KEYS = ("differences", "explanation")


class JobsAnswer(Answer, JobsReport):
    """A recording of this server's, and what may be recorded."""

    KEYS = ("job", "profiles")


A = TypeVar("A", bound=Answer)
WORD = re.compile(r"(?<!\S)[^\W\d_]+[,.!?]?(?!\S)")
PLAIN = re.compile(r"[\w…:.,<>()\[\]{}*&~#/@+ -]{1,120}")
"""The signs that names of operators, kernels and frames have: no quotes, no markup, nothing that ends a command."""
SENTENCE = 3
"""Words of letters alone that make a sentence. Operators are called by one or two, with signs, digits and underscores."""


def short(capture: str) -> str:
    """The first 12 digits of a capture's id: unique enough to pass on, short enough to read."""
    return capture[:12]


def then(tool: str, why: str, **arguments: Cell | list[str]) -> NextCall:
    """A suggestion to call ``tool``; arguments that are None are left out."""
    given: dict[str, Cell | list[str]] = {key: value for key, value in arguments.items() if value is not None}
    return NextCall(tool=tool, arguments=given, why=why)


def is_plain(name: str) -> bool:
    """Whether ``name`` may stand in a suggested call: short, printable and no sentence. Names come out of traces, and somebody
    may have written one for the model that reads this.
    """
    return PLAIN.fullmatch(name) is not None and "//" not in name and len(WORD.findall(name)) < SENTENCE


def content_of(answer: Model) -> dict[str, Any]:
    """What goes over the wire: ``answer`` with nothing hidden in its texts. Reading cleans names already; what a reader forgets
    ends here.
    """
    return {key: _shown(value) for key, value in answer.model_dump(mode="json").items()}


def to_text(content: dict[str, Any]) -> str:
    """``content`` as compact JSON."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [_shown(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in cast(dict[str, Any], value).items()}
    return value


def fit(answer: A, limit: int, cuts: Sequence[tuple[str, int]]) -> A:
    """``answer`` in at most ``limit`` characters, if cutting its lists suffices.

    ``cuts`` names lists as paths (``findings.evidence`` is the evidence of every finding) with the fewest entries each
    keeps, the least important first. Entries go from the end; how many went is said in ``left_out``.
    """
    data = answer.model_dump(mode="json")
    dropped: dict[str, int] = {}
    for path, fewest in cuts:
        while _size(data, dropped) > limit:
            longest = max(_lists(data, path.split(".")), key=len, default=list[Any]())
            if len(longest) <= fewest:
                break
            keep = max(fewest, len(longest) // 2)
            dropped[path] = dropped.get(path, 0) + len(longest) - keep
            del longest[keep:]
    return answer if not dropped else type(answer).model_validate({**data, "left_out": dropped})


def _size(data: dict[str, Any], dropped: dict[str, int]) -> int:
    return len(to_text({**data, "left_out": dropped}))


def _lists(data: Any, path: Sequence[str]) -> Iterator[list[Any]]:
    """Every list that ``path`` leads to, through the lists and objects on its way."""
    head, *rest = path
    found = data[head]
    if found is None:
        return
    if not rest:
        yield found
        return
    for item in cast(list[Any], found if isinstance(found, list) else [found]):
        yield from _lists(item, rest)
