"""Lines of logs. There are millions, most of them alike: they are kept in columns, their text compressed."""

import json
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar, overload

from teller_core.data.process import Process
from teller_core.data.texts import Texts

Value = TypeVar("Value", bound=Hashable)
_TEXT = json.encoder.encode_basestring_ascii


class _Table(Generic[Value]):
    """Values that repeat, each with a small number."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._codes: dict[Value, int] = {}

    def code(self, value: Value) -> int:
        """The number of ``value``."""
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self.values)
            self.values.append(value)
        return code

    def codes(self, other: "_Table[Value]", column: Iterable[int]) -> Iterator[int]:
        """The numbers here of what ``column`` numbers in ``other``."""
        mine = [self.code(value) for value in other.values]
        return (mine[code] for code in column)


class LogLine(NamedTuple):
    """One line of a log, redacted and cleaned."""

    process: Process
    time: int
    resolution: int
    """ns: what the clock of the line cannot tell apart. UNKNOWN with a time borrowed from the line before."""
    level: str
    rule: str
    """The id of the pattern that knows the line, empty where none does."""
    fields: Mapping[str, str]
    untrusted_text: str
    file: int
    """Position in ``Recording.files``."""
    number: int
    """Line number in the file, from 1."""


class Kind(NamedTuple):
    """What many lines have in common."""

    process: Process
    level: str
    rule: str


def as_json(fields: Mapping[str, str]) -> str:
    """``fields`` as a JSON object. Their names are plain words."""
    return "{" + ",".join([f'"{name}":{_TEXT(value)}' for name, value in fields.items()]) + "}" if fields else "{}"


class LogLines(Sequence[LogLine]):
    """Lines in columns, by position: ``time`` and ``resolution`` int64 ns, ``file`` and ``number`` int32, ``fields`` as JSON
    objects, ``untrusted_text``. A :class:`LogLine` is made when it is asked for: where one column will do, ask for that.
    """

    def __init__(self, lines: Iterable[LogLine] = ()) -> None:
        self.time = array("q")
        self.resolution = array("q")
        self.file = array("i")
        self.number = array("i")
        self.fields = Texts()
        self.untrusted_text = Texts()
        self._kind, self._kinds = array("i"), _Table[Kind]()
        self.extend(lines)

    def append(self, line: LogLine) -> None:
        """Add one line."""
        process, time, resolution, level, rule, fields, untrusted_text, file, number = line
        kind = self.code(Kind(process, level, rule))
        self.put(kind, time, resolution, fields=as_json(fields), text=untrusted_text, file=file, number=number)

    def code(self, kind: Kind) -> int:
        """The number of ``kind`` here, for :meth:`put`."""
        return self._kinds.code(kind)

    def put(self, kind: int, time: int, resolution: int, *, fields: str, text: str, file: int, number: int) -> None:
        """Add a line whose kind has a number and whose ``fields`` are JSON already."""
        self._kind.append(kind)
        self.time.append(time)
        self.resolution.append(resolution)
        self.fields.append(fields)
        self.untrusted_text.append(text)
        self.file.append(file)
        self.number.append(number)

    def extend(self, lines: Iterable[LogLine]) -> None:
        """Add lines."""
        if not isinstance(lines, LogLines):
            for line in lines:
                self.append(line)
            return
        for mine, its in ((self.time, lines.time), (self.resolution, lines.resolution)):
            mine.extend(its)
        self.file.extend(lines.file)
        self.number.extend(lines.number)
        self.fields.extend(lines.fields)
        self.untrusted_text.extend(lines.untrusted_text)
        self._kind.extend(self._kinds.codes(lines._kinds, lines._kind))

    def __len__(self) -> int:
        return len(self.time)

    @overload
    def __getitem__(self, index: int) -> LogLine: ...
    @overload
    def __getitem__(self, index: slice) -> list[LogLine]: ...
    def __getitem__(self, index: int | slice) -> LogLine | list[LogLine]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return LogLine(
            self.kind(index).process,
            self.time[index],
            self.resolution[index],
            self.kind(index).level,
            self.kind(index).rule,
            json.loads(self.fields[index]),
            self.untrusted_text[index],
            self.file[index],
            self.number[index],
        )

    def __repr__(self) -> str:
        return f"LogLines({list(self)!r})"

    def kind(self, index: int) -> Kind:
        """Who wrote the line at ``index``, at which level, and the rule that knows it."""
        return self._kinds.values[self._kind[index]]

    def processes(self) -> set[Process]:
        """Everybody who wrote a line."""
        return {kind.process for kind in self._kinds.values}

    def writers(self) -> set[tuple[int, Process]]:
        """Who wrote a line into which file."""
        return {(file, self._kinds.values[kind].process) for file, kind in set(zip(self.file, self._kind, strict=True))}

    def rewrite(self, better: Callable[[Process], Process]) -> None:
        """Put ``better(process)`` in the place of every process."""
        old, self._kinds = self._kinds, _Table[Kind]()
        codes = [self._kinds.code(kind._replace(process=better(kind.process))) for kind in old.values]
        self._kind = array("i", (codes[code] for code in self._kind))

    def since(self, first: int) -> "LogLines":
        """The lines from position ``first`` on."""
        later = LogLines()
        later._kinds, later._kind = self._kinds, self._kind[first:]
        later.time, later.resolution = self.time[first:], self.resolution[first:]
        later.file, later.number = self.file[first:], self.number[first:]
        later.fields.extend(islice(self.fields, first, None))
        later.untrusted_text.extend(islice(self.untrusted_text, first, None))
        return later

    def at(self, times: Iterable[int]) -> "LogLines":
        """The same lines with other times, one a line; all other columns are shared."""
        moved = LogLines()
        moved.__dict__.update(self.__dict__)
        moved.time = array("q", times)
        return moved
