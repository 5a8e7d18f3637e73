"""Everything TELLER refuses, in one tree.

    TellerError
    +-- InputError        a file, path or argument that cannot be used
    |   +-- FormatError   a file whose content is not what it should be
    |   +-- UnknownName   a capture, request, step or operator that is not there
    +-- StoreError        a database that cannot be used
    +-- LimitError        an answer or an input over a stated bound
    +-- MissingExtra      an optional part that is not installed

A message names the thing, the reason and the next step, in one line. It is safe to show: it never holds text that came
out of a trace or a log. ``str(error)`` is ``WHAT: WHY. NEXT.``
"""


class TellerError(Exception):
    """A refusal with its reason and what to do next."""

    kind = "error"

    def __init__(self, what: str, why: str, next_step: str) -> None:
        self.what = what
        self.why = why
        self.next_step = next_step
        super().__init__(f"{what}: {why}. {next_step}.")


class InputError(TellerError):
    """A file, a path or an argument that cannot be used."""

    kind = "input"


class FormatError(InputError):
    """A file whose content is not what its kind promises."""

    kind = "format"


class UnknownName(InputError):
    """A capture, request, step or operator that does not exist here."""

    kind = "unknown"


class StoreError(TellerError):
    """A database that cannot be opened, read or written."""

    kind = "store"


class LimitError(TellerError):
    """An input or an answer over a stated bound."""

    kind = "limit"


class MissingExtra(TellerError):
    """An optional part of TELLER that is not installed."""

    kind = "missing"
