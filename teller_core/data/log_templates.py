"""What lines of a log have in common that differ in their values alone."""

import re

VARIES = re.compile(r"0x[0-9a-fA-F]+|[0-9a-fA-F]{8,}|\d+(?:[.,:]\d+)*|'[^']*'|\"[^\"]*\"")
"""What differs from line to line of one template: numbers, ids, quoted text."""
LONGEST = 120


def template(rule: str, text: str) -> str:
    """What lines that differ in their values alone have in common. The rule that knows a line says it best."""
    return rule or VARIES.sub("*", text)[:LONGEST]
