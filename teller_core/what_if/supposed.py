"""What is taken to have been otherwise, as people write it: ``step 17=10ms``, ``0:1234=1ms``, ``aten::mm=1ms``,
``steps=usual``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from teller_core.errors import InputError
from teller_core.tell.next_calls import is_span

NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*(ns|us|ms|s)?")
STEP = re.compile(r"step\s+(\d{1,9})")
USUAL = "usual"
MOST = 64
LONGEST_NS = 3600 * NS["s"]
"""No call and no step takes longer: thousands of such calls still fit an int64."""
HOW = "Write TARGET=DURATION as in 'step 17=10ms', '0:1234=1ms', 'aten::mm=1ms', or 'steps=usual'"


@dataclass(frozen=True)
class Supposed:
    """``kind``: a step by its position, a span by its handle, all calls of an ``operator`` in the request's steps, or all
    ``steps`` that took longer than their work predicts. ``ns``: what it takes instead, None: what its work predicts.
    """

    kind: Literal["step", "span", "operator", "steps"]
    target: str
    ns: int | None
    text: str


def supposed(texts: Sequence[str]) -> list[Supposed]:
    """What ``texts`` say. Raises InputError for one that says nothing, and for two about the same."""
    if not 0 < len(texts) <= MOST:
        raise InputError("what is supposed", f"it is nothing, or more than {MOST} things at once", HOW)
    found = [_one(text) for text in texts]
    if len({(one.kind, one.target) for one in found}) < len(found):
        raise InputError("what is supposed", "one thing cannot have taken two times", "Name each target once")
    return found


def _one(text: str) -> Supposed:
    target, equals, duration = (part.strip() for part in text.rpartition("="))
    if not equals or not target:
        raise InputError("what is supposed", "it does not say what took what instead", HOW)
    if step := STEP.fullmatch(target):
        return Supposed("step", str(int(step[1])), _ns(duration, usual=True), _said(f"step {int(step[1])}", duration))
    if target == "steps":
        if duration != USUAL:
            raise InputError("what is supposed", "all steps together can only be as usual", HOW)
        return Supposed("steps", target, None, "each step of its engine had taken at most what its work predicts")
    kind = "span" if is_span(target) else "operator"
    if kind == "span":
        target = ":".join(str(int(part)) for part in target.split(":"))
    return Supposed(kind, target, _ns(duration, usual=False), _said(target, duration))


def _ns(duration: str, *, usual: bool) -> int | None:
    if usual and duration == USUAL:
        return None
    if not (number := DURATION.fullmatch(duration)):
        raise InputError("what is supposed", "its duration cannot be read", HOW)
    ns = round(float(number[1]) * NS[number[2] or "ms"])
    if ns > LONGEST_NS:
        raise InputError("what is supposed", "it takes longer than an hour", HOW)
    return ns


def _said(target: str, duration: str) -> str:
    return f"{target} had taken {'what its work predicts' if duration == USUAL else duration}"
