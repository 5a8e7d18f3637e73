"""What calls are made of: a parser whose refusals read like all others, and the kinds of values that arguments have."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from teller_core.errors import InputError

Add = Callable[..., "Parser"]
"""Adds a verb, or an action of one, from its name and what it does."""


class Parser(argparse.ArgumentParser):
    """A parser whose refusals read like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError."""
        raise InputError("the call" if self.prog == "teller" else self.prog, message, f"See {self.prog} --help")


def path(text: str) -> Path:
    """A path that was really named: an empty one, as an unset variable of a shell gives, would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: is a variable of your shell not set?")
    return Path(text)


# argparse says the names of these two where they raise ValueError.
def number(text: str) -> float:
    """A number over 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"it has to be over 0, not {text}")
    return value


def count(text: str) -> int:
    """A whole number from 1 on."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"it has to be at least 1, not {text}")
    return value


def lives(text: str) -> tuple[int, int]:
    """The first and the last of some numbers from 1 on: ``3-7``, or ``3`` alone."""
    first, dash, last = text.partition("-")
    low = count(first)
    high = count(last) if dash else low
    if high < low:
        raise argparse.ArgumentTypeError(f"the last comes before the first in {text}")
    return low, high


def option(given: argparse.Namespace, name: str) -> Any:
    """An option that may stand before or after the verb."""
    return getattr(given, name, None)


def actions_of(verb: Parser, common: Parser) -> Callable[[str, str], Parser]:
    """What adds an action to ``verb``, from its name and what it does."""
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)

    def add(name: str, text: str) -> Parser:
        return actions.add_parser(name, parents=[common], help=text, description=f"{text[0].upper()}{text[1:]}.")

    return add
