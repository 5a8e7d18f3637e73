"""Names of operators and kernels, cleaned and shortened for people. They come from traces: text, never trusted."""

import re
from collections.abc import Iterator
from functools import lru_cache

from teller_core.data.plain_names import MODULE
from teller_core.tell.visible import visible

LONGEST = 80
INPUT = 4096
"""Characters of a raw name that are looked at: real kernel names reach a few thousand."""
RETURNS = re.compile(r"^(?:void|int|float|double|bool|auto|char|long|unsigned|static|std::[\w:]+)\s+")
TEMPLATED = re.compile(r"[A-Za-z_]\w*(?:::|<)")
"""What makes a name C++: an identifier followed by a scope or template arguments."""
ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N_\w*::")
MANGLED_LENGTH = re.compile(r"\d+")
OPERATOR = re.compile(r"operator\s*(?:<<=?|<=>?|<|>>=?|>=|->\*?|>|\(\))")
"""Operators whose own signs would be taken for template arguments or parameters."""


@lru_cache(maxsize=4096)
def shorten(name: str, longest: int = LONGEST) -> str:
    """``name`` on one line, C++ brought to its function without template arguments and parameters, at most ``longest``
    characters, the end kept where it tells more. Never raises; an empty name is ``(no name)``.
    """
    clean = visible(name[:INPUT]).strip()
    if clean.startswith(("_Z", "__Z")):
        clean = demangled(clean)
    if TEMPLATED.search(clean) and not clean.startswith(MODULE):
        clean = _function(ANONYMOUS.sub("", clean))
    if not clean:
        return "(no name)"
    return clean if len(clean) <= longest else _cut(clean, longest)


def demangled(name: str) -> str:
    """The scopes and the function of an Itanium-mangled C++ name, without template arguments and parameters; ``name`` itself
    where it is not of that form.
    """
    parts = list(_identifiers(name[name.index("_Z") + 2 :]))
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N")) or name


def _identifiers(body: str) -> Iterator[str]:
    """The length-prefixed identifiers of the name itself: up to where its template arguments or parameters begin."""
    nested = body.startswith("N")
    at = 1 if nested else 0
    while at < len(body) and body[at] in "rVKSt":
        at += 1
    while at < len(body) and (found := MANGLED_LENGTH.match(body, at)):
        low = found.end()
        high = low + int(found.group())
        if high > len(body):
            return
        yield body[low:high]
        at = high
        if not nested:
            return


def template_arguments(name: str) -> str:
    """What stands in angle brackets of a demangled name before its parameters; empty where nothing does."""
    return _taken_apart(ANONYMOUS.sub("", name[:INPUT]))[1]


def _function(name: str) -> str:
    """A demangled C++ signature without return type, template arguments and parameters."""
    return RETURNS.sub("", _taken_apart(name)[0].strip()) or name


def _taken_apart(name: str) -> tuple[str, str]:
    """What of a signature stands outside of angle brackets before its parameters, and what stands within."""
    kept: list[str] = []
    within: list[str] = []
    depth = at = 0
    while at < len(name):
        symbol = OPERATOR.match(name, at)
        text = symbol.group() if symbol and not depth else name[at]
        at += len(text)
        if text == "<":
            depth += 1
            within.append(text)
        elif text == ">" and depth and name[at - 2] != "-":
            depth -= 1
            within.append(text)
        elif depth:
            within.append(text)
        elif text == "(" and kept:
            break
        else:
            kept.append(text)
    return "".join(kept), "".join(within)


def _cut(name: str, longest: int) -> str:
    """The beginning of a plain name; the function and its nearest scopes of a scoped one."""
    if "::" not in name:
        return name[: longest - 1] + "…"
    return "…" + name[-(longest - 1) :]
