"""What facts are called in sentences. Only names written in ``facts.txt`` are said: text of a trace or a log is none of them."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from teller_core.data.report import EvidenceItem
from teller_core.data.said import COUNTED, PLAIN_NAME, number

SILENT = frozenset({*COUNTED, "adapters", "calls", "errors", "gaps", "groups", "kernels", "launches"})
"""Units that the name of what is counted says already."""
UNITS = SILENT | {"ms", "%", "MB", "C", "(Xid)"}
"""Units that facts have. A unit that is none of these is not said, nor is its fact."""
DIGITS = re.compile(r"\d+(?:\.\d+)?")
RANKS = re.compile(r"\d+(?:[-,]\d+)*")
HANDLE = re.compile(r"\d+:\d+")
SIMILAR = "similar_steps"


def clause(item: EvidenceItem) -> str | None:
    """The fact as a clause, None for one that may not stand in a sentence."""
    if item.unit is not None and item.unit not in UNITS:
        return None
    if any(value is not None and not sayable(value) for value in (item.value, item.normal)):
        return None
    said = _span(item) if item.kind == "span" and item.span else _named(item)
    return f"{said}, in similar steps" if said and item.scope == SIMILAR else said


def amount(item: EvidenceItem, value: float) -> str:
    """``value`` with the unit of the fact, where its name does not say it."""
    return number(value) if item.unit is None or item.unit in SILENT else f"{number(value)} {item.unit}"


def sayable(value: float) -> bool:
    """Whether the number is written with digits and a point alone."""
    return abs(value) < 1e15 and bool(DIGITS.fullmatch(number(value)))


def _span(item: EvidenceItem) -> str | None:
    """A span is called by its handle, and by its own name only where that looks like one."""
    if not HANDLE.fullmatch(item.span or ""):
        return None
    called = (
        f"`{item.name}` (span `{item.span}`)" if PLAIN_NAME.fullmatch(item.name or "") else f"the span `{item.span}`"
    )
    return f"for example {called}" if item.value is None else f"{called} took {amount(item, item.value)}"


def _named(item: EvidenceItem) -> str | None:
    form = _form(item.name or "")
    if form is None:
        return None
    if item.value is not None:
        form = form if "{v}" in form or "{n}" in form else f"{form}: {{v}}"
        return form.replace("{v}", amount(item, item.value)).replace("{n}", number(item.value))
    if "{v}" in form or "{n}" in form:
        return None
    return f"{form} (`{item.log_line}`)" if PLAIN_NAME.fullmatch(item.log_line or "") else form


def _form(name: str) -> str | None:
    """How a fact of this name is said; None where the name is unknown, or holds something that is neither a number nor a name."""
    forms = _forms()
    if "{x}" not in name and name in forms:
        return forms[name]
    for pattern, form in _patterns():
        if match := pattern.fullmatch(name):
            held = match[1]
            return form.replace("{x}", held) if PLAIN_NAME.fullmatch(held) or RANKS.fullmatch(held) else None
    return None


@cache
def _forms() -> Mapping[str, str]:
    text = files("teller_core.model.words").joinpath("facts.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = [line.partition(" = ") for line in lines]
    return {name: form or name for name, _, form in pairs}


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(re.escape(name).replace(r"\{x\}", r"(\S+)")), form)
        for name, form in _forms().items()
        if "{x}" in name
    ]
