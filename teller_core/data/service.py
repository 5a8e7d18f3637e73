"""Which service a capture is of, by what it recorded of itself: baselines of another one say nothing about it."""

import json
from collections.abc import Mapping, Sequence

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


def service_of(engine: str, lines: Lines, ranks: Sequence[Rank]) -> dict[str, str]:
    """The facts of CALLED that were recorded. ``lines``: at least those of SHOWN_AT_START."""
    found: dict[str, str] = {"engine": engine} if engine else {}
    for row, rule in enumerate(lines.rule):
        if rule in SHOWN_AT_START:
            fields = json.loads(lines.fields[row] or "{}")
            found |= {name: _short(str(fields[name])) for name in SHOWN_AT_START[rule] if fields.get(name)}
    number = {rank.rank for rank in ranks if rank.rank >= 0 and rank.role not in ("frontend", "")}
    if number:
        found["ranks"] = str(len(number))
    return {name: found[name] for name in CALLED if name in found}


def _short(text: str) -> str:
    """A model without the folder that it lies in, a number format without its module."""
    last = text.rstrip("/").rpartition("/")[2]
    return last.removeprefix("torch.")[:64]


def unlike(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """In which facts two services differ: what people call them. What one of them did not record tells nothing."""
    return [CALLED[name] for name in CALLED if name in here and name in there and here[name] != there[name]]


def vouched(here: Mapping[str, str], there: Mapping[str, str]) -> bool:
    """Whether what must be known of both was recorded."""
    return all(name in here and name in there for name in VOUCHED)


def told(service: Mapping[str, str]) -> str:
    """A service in words."""
    facts = [f"{CALLED[name]} {value}" for name, value in service.items() if name not in ("engine", "version", "model")]
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
