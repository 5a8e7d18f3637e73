"""Which service a capture is of, by what it recorded of itself: baselines of another one say nothing about it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from posixpath import normpath

from teller_core.data.capture import Rank
from teller_core.data.steps import Lines

SHOWN_AT_START = {
    "vllm.version": ("version", "model"),
    "vllm.api_version": ("version",),
    "vllm.engine_config": (
        "version",
        "model",
        "dtype",
        "quantization",
        "tensor_parallel",
        "pipeline_parallel",
        "data_parallel",
        "eager",
    ),
    "vllm.kv_size": ("device",),
}
"""The lines in which an engine says what it is, and what of them tells services apart."""
CALLED = {
    "engine": "engine",
    "version": "version of the engine",
    "model": "model",
    "path": "path of the model",
    "dtype": "number format",
    "quantization": "quantization",
    "tensor_parallel": "tensor parallelism",
    "pipeline_parallel": "pipeline parallelism",
    "data_parallel": "data parallelism",
    "eager": "graphs switched off",
    "device": "device",
    "ranks": "number of ranks",
}
"""All facts, in the order in which they are told, and what people call them."""
VOUCHED = ("engine", "model")
"""Without these on both sides nobody knows that two services are one, unless somebody says so."""
LONGEST = 64
"""Characters of a fact."""


def service_of(engine: str, lines: Lines, ranks: Sequence[Rank]) -> dict[str, str]:
    """The facts of CALLED that were recorded. ``lines``: at least those of SHOWN_AT_START."""
    said = ((rule, lines.fields[row]) for row, rule in enumerate(lines.rule) if rule in SHOWN_AT_START)
    return facts_of(engine, said, ((rank.rank, rank.role) for rank in ranks))


def facts_of(engine: str, said: Iterable[tuple[str, str]], ranks: Iterable[tuple[int, str]]) -> dict[str, str]:
    """:func:`service_of` by the rules and fields (JSON) of the lines in SHOWN_AT_START, and numbers and roles of the ranks."""
    found: dict[str, str] = {"engine": engine} if engine else {}
    for rule, fields in said:
        given = json.loads(fields or "{}")
        shown = {name: str(given[name]) for name in SHOWN_AT_START[rule] if given.get(name)}
        found |= {name: short for name, text in shown.items() if (short := _short(text))}
        found |= {"path": _path(shown["model"])} if "model" in shown and _short(shown["model"]) else {}
    number = {rank for rank, role in ranks if rank >= 0 and role not in ("frontend", "")}
    if number:
        found["ranks"] = str(len(number))
    return {name: found[name] for name in CALLED if name in found}


def _short(text: str) -> str:
    """A model without the folder that it lies in, a number format without its module."""
    last = text.rstrip("/").rpartition("/")[2].strip()
    return last.removeprefix("torch.")[:LONGEST]


def _path(text: str) -> str:
    """What the model is called in full: two of one name in different folders, or of different makers, are two."""
    whole = normpath(text)
    if len(whole) <= LONGEST:
        return whole
    return f"{whole[: LONGEST - 17]}~{sha256(whole.encode('utf-8', 'backslashreplace')).hexdigest()[:16]}"


def unlike(here: Mapping[str, str], there: Mapping[str, str], *, said: bool = False) -> list[str]:
    """In which facts two services differ: what people call them. What one of them did not record tells nothing; nor does the
    path of a baseline that was learned before paths were kept. ``said``: somebody says that they are one, and a model may lie
    elsewhere.
    """
    names = [name for name in CALLED if name in here and name in there and here[name] != there[name]]
    return [CALLED[name] for name in names if name != "path" or not (said or "model" in names)]


def vouched(here: Mapping[str, str], there: Mapping[str, str]) -> bool:
    """Whether what must be known of both was recorded."""
    return all(name in here and name in there for name in VOUCHED)


def told(service: Mapping[str, str]) -> str:
    """A service in words."""
    shown = {"engine", "version", "model", *(["path"] if service.get("path") == service.get("model") else [])}
    facts = [f"{CALLED[name]} {value}" for name, value in service.items() if name not in shown]
    head = " ".join(filter(None, [service.get("engine", "an unknown engine"), service.get("version", "")]))
    return ", ".join(filter(None, [head, service.get("model", ""), *facts]))


def short_name(service: Mapping[str, str]) -> str:
    """What a baseline of it is called where nobody names it: letters, digits, dots and dashes."""
    words = [service.get(name, "") for name in ("engine", "version", "model")]
    if int(service.get("tensor_parallel", "1") or 1) > 1:
        words.append(f"tp{service['tensor_parallel']}")
    text = "-".join(filter(None, words)) or "service"
    kept = [letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in text]
    return "".join(kept).strip("-.")[:64] or "service"
