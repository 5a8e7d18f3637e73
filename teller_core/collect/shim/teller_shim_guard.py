"""The one place of the recorder that catches everything: the program that it runs in must never feel its mistakes."""

from collections import Counter

problems = Counter()
"""How often a part failed, by (part, type of error). Texts of errors are not kept: they may hold the program's data."""


def guarded(part, function, *args, default=None):
    """``function(*args)``, or ``default`` where it raised, which is counted under ``part``."""
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001  # this function is the exception that the rule names
        failed(part, error)
        return default


def failed(part, error):
    """Count that ``part`` failed."""
    problems[part, type(error).__name__] += 1
