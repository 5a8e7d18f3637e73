"""Numbers in the fields of a log line. Patterns take any digits and dots: what is no number, or larger than any that is meant, is
not there.
"""

import re
from collections.abc import Mapping
from typing import Any

_WHOLE = re.compile(r"[0-9]{1,15}")
_DECIMAL = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})\.?")


def whole_in(fields: Mapping[str, Any], name: str) -> int | None:
    """int: the count in the field; None where there is none."""
    text = fields.get(name)
    return int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else None


def decimal_in(fields: Mapping[str, Any], name: str) -> float | None:
    """float: the number in the field; None where there is none. A full stop behind it ends a sentence."""
    text = fields.get(name)
    found = _DECIMAL.fullmatch(text) if isinstance(text, str) else None
    return None if found is None else float(found[1])
