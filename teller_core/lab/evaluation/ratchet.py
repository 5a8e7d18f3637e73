"""What was once reached stays reached: floors of figures, which only rise.

One line a floor: method, tier, figure, value. A figure of which less is better has a ceiling, which only falls.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from teller_core.errors import FormatError
from teller_core.lab.evaluation.figure import Figure

HEAD = "# Floors (where the last word is most: ceilings) that no change may undo: `teller lab eval` raises them, nobody else."
DECIMALS = 4
SLACK = 10.0**-DECIMALS / 2
"""Tables round to so many decimals."""


class Key(NamedTuple):
    """Which figure of which table."""

    method: str
    tier: int
    figure: str


class Floor(NamedTuple):
    """``better``: 1 for a least value, -1 for a most."""

    value: float
    better: int


def read(text: str) -> dict[Key, Floor]:
    """The floors of a file. Raises FormatError for a line that is none."""
    found: dict[Key, Floor] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match line.split():
            case [method, tier, figure, value, ("least" | "most") as word] if tier[:1] == "T" and tier[1:].isdecimal():
                try:
                    number = float(value)
                except ValueError:
                    raise _broken() from None
                found[Key(method, int(tier[1:]), figure)] = Floor(number, 1 if word == "least" else -1)
            case _:
                raise _broken()
    return found


def written(floors: Mapping[Key, Floor]) -> str:
    """The file of ``floors``."""
    lines = [
        f"{key.method} T{key.tier} {key.figure} {floor.value:.{DECIMALS}f} {'least' if floor.better > 0 else 'most'}"
        for key, floor in sorted(floors.items())
    ]
    return "\n".join([HEAD, *lines]) + "\n"


def undone(floors: Mapping[Key, Floor], values: Mapping[Key, float]) -> list[str]:
    """One line for each floor that ``values`` do not reach, or no longer say."""
    lines: list[str] = []
    for key, floor in sorted(floors.items()):
        value = values.get(key, math.nan)
        if math.isnan(value):
            lines.append(f"{key.method} T{key.tier} {key.figure}: it was {floor.value:.4f} and is not said any more")
        elif (value - floor.value) * floor.better < -SLACK:
            lines.append(f"{key.method} T{key.tier} {key.figure}: it was {floor.value:.4f} and is {value:.4f}")
    return lines


def raised(floors: Mapping[Key, Floor], method: str, tier: int, figures: Iterable[Figure]) -> dict[Key, Floor]:
    """``floors`` with what is better now, and what is said for the first time."""
    found = dict(floors)
    for figure in figures:
        if figure.better and not math.isnan(figure.value):
            key, value = Key(method, tier, figure.key), round(figure.value, DECIMALS)
            known = found.get(key)
            if known is None or (value - known.value) * figure.better > 0:
                found[key] = Floor(value, figure.better)
    return found


def _broken() -> FormatError:
    return FormatError("The ratchet", "a line of it is no floor", "Take the file from the repository again")
