"""What the command line says: answers on standard output, everything else on standard error."""

import argparse
import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from teller_core.calls.arguments import option
from teller_core.errors import InputError

if TYPE_CHECKING:
    from teller_core.data.report import Model
    from teller_core.tell.layout import Style


def show(given: argparse.Namespace, report: "Model") -> None:
    """Print ``report``: as JSON where that was asked for, else as a page."""
    if option(given, "json"):
        say(report.model_dump_json())
        return
    from teller_core.tell.text import page

    say(page(report, style()))


def style() -> "Style":
    """How pages look on this standard output."""
    import shutil

    from teller_core.tell.layout import Style

    screen = sys.stdout.isatty()
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return Style(
        width=min(120, shutil.get_terminal_size((100, 24)).columns),
        color=screen and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        unicode=encoding.startswith("utf"),
    )


def say(text: str) -> None:
    """Print an answer. Raises InputError where it finds no room, BrokenPipeError where nobody reads."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        give_up_stdout()
        why = f"it cannot be written ({error.strerror})"
        raise InputError("the answer", why, "Send it where there is room for it") from None


def give_up_stdout() -> None:
    """The interpreter flushes once more at exit: let it go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(line: str) -> None:
    """Say it to whoever listens: that nobody can hear it changes no exit code."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def spoken(text: str) -> str:
    """A refusal on one line, with our names of verbs: the core leaves them in backquotes, as the server has others."""
    return re.sub(r"`([a-z-]+)`", r"`teller \1`", " ".join(text.split()))
