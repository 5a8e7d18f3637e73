"""JSON documents of any size, walked in order in bounded memory: what the walker passes over is not kept."""

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path

from teller_core.errors import FormatError, LimitError
from teller_core.ingest.decimals import LARGEST, NS_PER_S
from teller_core.ingest.files.source import Source, open_source

BLOCK = 1 << 18
MAX_VALUE = 1 << 24
"""Characters of a value that is taken whole: some 800,000 gaps between tokens."""
MAX_NUMBER = 60
"""Characters of a number; longer ones say nothing that fits a column."""
_SPACE = re.compile(r"[ \t\r\n]*")
_MARK = re.compile(r'["{}\[\]]')
_TEXT_MARK = re.compile(r'["\\]')
_SCALAR_END = re.compile(r"[ \t\r\n,\]}]")
_ENDS = frozenset(' \t\r\n,:]}{["')
"""What may stand behind a value: without one of these its end may not have been read yet."""


class Stream:
    """A place in the JSON text of a file. ``members`` and ``elements`` walk into the value at the place, ``value`` takes it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._text = ""
        self._at = 0
        self._passed = 0
        self._ended = False

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._source.path.name

    @property
    def on_disk(self) -> int:
        """Bytes of the file consumed so far."""
        return self._source.on_disk

    def documents(self) -> Iterator[None]:
        """Once for each of the values that the file holds one after the other, with the place at it."""
        while self._peek():
            before = self._place
            yield
            self._pass(before)

    def members(self) -> Iterator[str]:
        """The keys of the object at the place, each with the place at its value. Of another value: none."""
        if self._peek() != "{":
            self.skip()
            return
        self._at += 1
        while self._peek() != "}":
            key = self.value()
            if not isinstance(key, str) or self._peek() != ":":
                raise self._broken()
            self._at += 1
            before = self._place
            yield key
            self._pass(before)
            self._next("}")
        self._at += 1

    def elements(self) -> Iterator[None]:
        """Once for each element of the array at the place, with the place at it. Of another value: never."""
        if self._peek() != "[":
            self.skip()
            return
        self._at += 1
        while self._peek() != "]":
            before = self._place
            yield
            self._pass(before)
            self._next("]")
        self._at += 1

    @property
    def _place(self) -> int:
        return self._passed + self._at

    def _pass(self, before: int) -> None:
        """Pass over the value that began at ``before`` where nobody took it."""
        if self._place == before:
            self.skip()

    def value(self, *, seconds: bool = False) -> object:
        """The value at the place, its fractions as Decimal, NaN and infinities None; with ``seconds`` every number in it as int
        ns. Errors: FormatError where the JSON is broken or ends, LimitError for a value over MAX_VALUE.
        """
        decoder = _SECONDS if seconds else _EXACT
        self._peek()
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise self._broken() from None
            except ValueError:
                value, end = None, -1
            if end >= 0 and (self._ended or self._text[end : end + 1] in _ENDS):
                self._at = end
                return value
            if len(self._text) - self._at > MAX_VALUE:
                raise LimitError(self.name, "one of its values is too long", "Record a shorter run")
            if not self._more():
                raise self._broken()

    def skip(self) -> None:
        """Pass over the value at the place, however large or deep."""
        first = self._peek()
        if first not in ("{", "[", '"'):
            if not first or first in ",:}]":
                raise self._broken()
            while self._found(_SCALAR_END) is None and self._more():
                pass
            return
        depth = 0
        while True:
            mark = self._mark(_MARK)
            if mark == '"':
                while self._mark(_TEXT_MARK) == "\\":
                    self._character()
            else:
                depth += 1 if mark in "{[" else -1
            if depth <= 0:
                return

    def _mark(self, marks: re.Pattern[str]) -> str:
        """The next of ``marks``, with the place behind it."""
        while (found := self._found(marks)) is None:
            if not self._more():
                raise self._broken()
        self._at += 1
        return found

    def _found(self, marks: re.Pattern[str]) -> str | None:
        match = marks.search(self._text, self._at)
        self._at = match.start() if match else len(self._text)
        return match[0] if match else None

    def _character(self) -> None:
        if self._at == len(self._text) and not self._more():
            raise self._broken()
        self._at += 1

    def _next(self, close: str) -> None:
        """Pass the comma before the next member; what closes the container stays."""
        mark = self._peek()
        if mark == ",":
            self._at += 1
            if self._peek() == close:
                raise self._broken()
        elif mark != close:
            raise self._broken()

    def _peek(self) -> str:
        """The next character that is no white space, with the place at it; empty at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _more(self) -> bool:
        """Read on, as much again as is held; what lies before the place is let go. False at the end of the file."""
        if self._ended:
            return False
        room = bytearray(max(BLOCK, len(self._text) - self._at))
        got = self._source.fill(memoryview(room))
        self._ended = got < len(room)
        self._passed += self._at
        self._text = self._text[self._at :] + self._decode(memoryview(room)[:got], self._ended)
        self._at = 0
        return True

    def _broken(self) -> FormatError:
        return FormatError(self.name, "the JSON ends early or is broken", "Copy or record the file again")


@contextmanager
def json_stream(path: Path) -> Generator[Stream]:
    """The beginning of the JSON text of ``path``. Errors: those of :func:`source.open_source`."""
    with open_source(path) as source:
        yield Stream(source)


def _nothing(constant: str) -> None:
    """NaN and infinities, which Python writes though no JSON has them."""


def _fraction(text: str) -> Decimal | None:
    try:
        return Decimal(text) if len(text) <= MAX_NUMBER else None
    except InvalidOperation:  # an exponent beyond what decimal holds
        return None


def _integer(text: str) -> int | None:
    return int(text) if len(text) <= MAX_NUMBER else None


def _whole_seconds(text: str) -> int | None:
    ns = int(text) * NS_PER_S if len(text) <= 11 else LARGEST
    return ns if -LARGEST < ns < LARGEST else None


def _seconds(text: str) -> int | None:
    """int ns of seconds, rounded half to even; None for what no column holds."""
    whole, _, rest = text.partition(".")
    if len(text) <= MAX_NUMBER and len(whole) <= 9 and whole.isdecimal() and rest.isdecimal():
        return _plain_seconds(whole, rest)
    exact = _fraction(text)
    if exact is None or exact.adjusted() > 9:
        return None
    ns = int((exact * NS_PER_S).to_integral_value())
    return ns if -LARGEST < ns < LARGEST else None


def _plain_seconds(whole: str, rest: str) -> int:
    """What :func:`_seconds` says of digits before and behind a point: five times as fast as through Decimal."""
    digits = rest[:9]
    ns = int(whole + digits) * 10 ** (9 - len(digits))
    behind = rest[9:10]
    if behind > "5" or (behind == "5" and (ns & 1 or rest[10:].strip("0"))):
        ns += 1
    return ns


_EXACT = json.JSONDecoder(parse_float=_fraction, parse_int=_integer, parse_constant=_nothing)
_SECONDS = json.JSONDecoder(parse_float=_seconds, parse_int=_whole_seconds, parse_constant=_nothing)
