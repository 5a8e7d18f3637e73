"""What a fault rightly writes or changes, and so may be known by: a recording without it would be none."""

import re
from typing import NamedTuple


class Expected(NamedTuple):
    """Features of ``view`` whose whole name ``pattern`` matches, and the ``reason``."""

    view: str
    pattern: re.Pattern[str]
    reason: str


def _of(view: str, pattern: str, reason: str) -> Expected:
    return Expected(view, re.compile(pattern), reason)


EXPECTED: tuple[Expected, ...] = (
    _of(
        "processes",
        r"pauses of .*",
        "a pause is written down where something stood still, and what struck made it stand still",
    ),
    _of(
        "lines", r"line vllm\.stats", "written every ten seconds: what is slow takes longer, and more of them are in it"
    ),
    _of(
        "operators",
        r"operator (detach|aten::(as_strided|detach|resolve_conj|resolve_neg|slice|to)) without steps",
        "the mask of a grammar is laid on by the process that schedules, with these operators; it runs none otherwise",
    ),
    _of(
        "operators",
        r"operator aten::full",
        "an answer that must obey a grammar is sampled with a mask over its words, which the process that computes fills",
    ),
    _of(
        "operators",
        r"operator aten::argmax",
        "a step of one request runs it, one of several in three of ten: which steps are profiled is up to the batches",
    ),
    _of(
        "sizes",
        r"(rows of|names in) profiles",
        "a step of other batches runs other operators, and an operator that computes many times over runs them many times",
    ),
    _of(
        "sizes",
        r"traces without steps",
        "the mask of a grammar is laid on by the process that schedules, which runs no operators otherwise",
    ),
    _of(
        "sizes",
        r"rows of (steps|work|participation|lines|collectives|meetings)",
        "a slow service serves the same requests in other batches, and every step has its rows",
    ),
    _of(
        "sizes",
        r"rows of (samples|readings|buckets)",
        "a counter is written down where it grew: that is what is measured",
    ),
    _of(
        "sizes",
        r"requests|rows of requests|tokens",
        "some faults are requests: bursts, long answers, long prompts of others",
    ),
)


def expected(view: str, feature: str) -> Expected | None:
    """Why ``feature`` tells nothing that it should not, None where it must not tell anything."""
    return next((one for one in EXPECTED if one.view == view and one.pattern.fullmatch(feature)), None)
