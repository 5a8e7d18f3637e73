"""The name of a kernel taken apart: whose it is, and what its maker wrote into it. What the name does not say is None.

The forms in which libraries write names stand in ``kernel_names.toml``. Names come from traces: what is given here is made of the
words of that file, of digits and of letters that a form allows.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from teller_core.data.report_operators import KernelName
from teller_core.tell.names import INPUT, template_arguments

ARCHITECTURES = {"maxwell", "pascal", "volta", "turing", "ampere", "hopper"}
AMD = re.compile(r"9[04][0-9a-f]|9[05]\d|1[0-2]\d\d")
"""What AMD's instruction sets are called by behind ``gfx``; NVIDIA's numbers stand behind ``sm``."""
SIGNATURE = re.compile(r"(?<!lambda)\([^()]*\)")
"""Parameters of the host function that a functor stands in: they say nothing of the kernel's. Those of a lambda are elements."""
ACTIVATIONS = ("swiglu", "geglu", "relu2", "gelu", "silu", "hardswish", "leakyrelu", "relu", "sigmoid", "tanh")


class _Form(NamedTuple):
    """One way to write a name. ``parts``: patterns searched for besides; ``templates``: types stand in template arguments."""

    library: str
    name: re.Pattern[str]
    parts: Sequence[re.Pattern[str]]
    precision: str | None
    templates: bool


class _Words(NamedTuple):
    """The table. ``types``: each spelling of an element type and what it is; ``inside`` finds one within other letters,
    ``alone`` one that stands by itself.
    """

    forms: Sequence[_Form]
    types: Mapping[str, str]
    letters: Mapping[str, str]
    layouts: Mapping[str, str]
    inside: re.Pattern[str]
    alone: re.Pattern[str]


@lru_cache(maxsize=4096)
def kernel_name(name: str) -> KernelName | None:
    """What the kernel's raw ``name`` says, None for one that no form knows."""
    raw, words = name[:INPUT], _words()
    for form in words.forms:
        found = form.name.search(raw)
        if found:
            return _said(form, found, raw, words)
    return None


def kernel_named(names: Iterable[str]) -> KernelName | None:
    """What all of these raw names say alike: kernels that differ in their template arguments go by one short name."""
    said = [kernel_name(name) for name in dict.fromkeys(names)]
    known = [one for one in said if one is not None]
    if not known or len(known) < len(said) or len({one.library for one in known}) > 1:
        return None
    told = [one.model_dump(exclude={"library"}) for one in known]
    alike = {key: value if all(one[key] == value for one in told) else None for key, value in told[0].items()}
    return known[0].model_copy(update=alike)


def _said(form: _Form, found: re.Match[str], raw: str, words: _Words) -> KernelName:
    groups = {key: value for key, value in found.groupdict().items() if value}
    for part in form.parts:
        more = part.search(raw)
        for key, value in (more.groupdict() if more else {}).items():
            if value:
                groups.setdefault(key, value)
    sizes = [groups[side] for side in "mnk" if side in groups]
    stages, layout = groups.get("stages"), groups.get("layout")
    return KernelName(
        library=form.library,
        precision="/".join(dict.fromkeys(_types(form, groups, raw, words))) or form.precision,
        tile=groups.get("tile") or ("x".join(sizes) or None),
        stages=int(stages) if stages else None,
        architecture=_architecture(groups.get("arch"), form.library),
        layout=words.layouts.get(layout, layout.upper()) if layout else None,
        activation=_activation(groups.get("activation")),
    )


def _types(form: _Form, groups: Mapping[str, str], raw: str, words: _Words) -> Iterator[str]:
    """The element types that a name tells, inputs first."""
    if "letter" in groups and groups["letter"] in words.letters:
        yield words.letters[groups["letter"]]
    for key in ("types", "types_b", "types_c"):
        for spelled in words.inside.findall(groups.get(key, "")):
            yield words.types[spelled]
    if form.templates and not groups.keys() & {"types", "letter"}:
        for spelled in words.alone.findall(SIGNATURE.sub("", template_arguments(raw))):
            yield words.types[spelled]


def _architecture(said: str | None, library: str) -> str | None:
    if said is None or said in ARCHITECTURES:
        return said
    return f"gfx{said}" if "Tensile" in library and AMD.fullmatch(said) else f"sm{said}"


def _activation(said: str | None) -> str | None:
    return None if said is None else next((one for one in ACTIVATIONS if one in said.lower()), None)


@cache
def _words() -> _Words:
    text = files("teller_core.tell").joinpath("kernel_names.toml").read_text("utf-8")
    table: dict[str, Any] = tomllib.loads(text)
    types = {spelled: meant for meant, spellings in table["types"].items() for spelled in spellings}
    any_of = "|".join(re.escape(spelled) for spelled in sorted(types, key=len, reverse=True))
    forms = [
        _Form(
            form["library"],
            re.compile(form["name"]),
            [re.compile(part) for part in form.get("parts", ())],
            form.get("precision"),
            form.get("templates", False),
        )
        for form in table["form"]
    ]
    return _Words(
        forms,
        types,
        table["letters"],
        table["layouts"],
        re.compile(any_of),
        re.compile(rf"(?<![\w:])(?:{any_of})(?!\w)"),
    )
