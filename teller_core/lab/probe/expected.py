"""What a fault rightly writes or changes, and so may be known by: a recording without it would be none."""

import re
from typing import NamedTuple


class Expected(NamedTuple):
    """Features of ``view`` whose whole name ``pattern`` matches, and the ``reason``."""

    view: str
    pattern: re.Pattern[str]
    reason: str


EXPECTED: tuple[Expected, ...] = ()


def expected(view: str, feature: str) -> Expected | None:
    """Why ``feature`` tells nothing that it should not, None where it must not tell anything."""
    return next((one for one in EXPECTED if one.view == view and one.pattern.fullmatch(feature)), None)
