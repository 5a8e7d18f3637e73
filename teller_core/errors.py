"""Everything TELLER refuses, in one tree.

    TellerError
    +-- InputError        a file, path or argument that cannot be used
    |   +-- FormatError   a file whose content is not what it should be
    |   +-- UnknownName   a capture, request, step or operator that is not there
    +-- StoreError        a database that cannot be used
    +-- LimitError        an answer or an input over a stated bound
    +-- OutOfRoom         memory, disk, files or processes that the machine has no more of: no fault of any input
    +-- MissingExtra      an optional part that is not installed

A message names the thing, the reason and the next step, in one line. It is safe to show: it never holds text that came
out of a trace or a log. ``str(error)`` is ``WHAT: WHY. NEXT.``
"""

LONGEST = 300
"""Characters of a part of a message: a name of a file may have as many, an argument any number."""


def _shown(text: str) -> str:
    """``text`` on one line, without what commands a terminal or has no encoding: files may have such names."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return cut if cut.isprintable() else "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in cut)


class TellerError(Exception):
    """A refusal with its reason and what to do next."""

    kind = "error"

    def __init__(self, what: str, why: str, next_step: str) -> None:
        self.what = _shown(what)
        self.why = _shown(why)
        self.next_step = next_step
        super().__init__(f"{self.what}: {self.why}. {next_step}.")

    def __reduce__(self) -> tuple[type["TellerError"], tuple[str, str, str]]:
        """A refusal comes out of another process as it went in."""
        return type(self), (self.what, self.why, self.next_step)


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


class OutOfRoom(TellerError):
    """Something that the machine has no more of. It says nothing about the file that was being read."""

    kind = "room"


class MissingExtra(TellerError):
    """An optional part of TELLER that is not installed."""

    kind = "missing"
