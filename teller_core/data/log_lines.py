"""Lines of logs. There are millions, most of them alike: they are kept in columns, their text compressed."""

import json
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

from teller_core.data.process import Process
from teller_core.data.texts import Texts

Value = TypeVar("Value", bound=Hashable)
_JSON = json.JSONEncoder(separators=(",", ":")).encode


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
        self._process, self._processes = array("i"), _Table[Process]()
        self._level, self._levels = array("i"), _Table[str]()
        self._rule, self._rules = array("i"), _Table[str]()
        self.extend(lines)

    def append(self, line: LogLine) -> None:
        """Add one line."""
        process, time, resolution, level, rule, fields, untrusted_text, file, number = line
        self._process.append(self._processes.code(process))
        self.time.append(time)
        self.resolution.append(resolution)
        self._level.append(self._levels.code(level))
        self._rule.append(self._rules.code(rule))
        self.fields.append(_JSON(fields) if fields else "{}")
        self.untrusted_text.append(untrusted_text)
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
        self._process.extend(self._processes.codes(lines._processes, lines._process))
        self._level.extend(self._levels.codes(lines._levels, lines._level))
        self._rule.extend(self._rules.codes(lines._rules, lines._rule))

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
            self.process(index),
            self.time[index],
            self.resolution[index],
            self.level(index),
            self.rule(index),
            json.loads(self.fields[index]),
            self.untrusted_text[index],
            self.file[index],
            self.number[index],
        )

    def __repr__(self) -> str:
        return f"LogLines({list(self)!r})"

    def process(self, index: int) -> Process:
        """Who wrote the line at ``index``."""
        return self._processes.values[self._process[index]]

    def level(self, index: int) -> str:
        """The level of the line at ``index``."""
        return self._levels.values[self._level[index]]

    def rule(self, index: int) -> str:
        """The rule of the line at ``index``."""
        return self._rules.values[self._rule[index]]

    def processes(self) -> Iterator[Process]:
        """Everybody who wrote a line, once."""
        return iter(self._processes.values)

    def rewrite(self, better: Callable[[Process], Process]) -> None:
        """Put ``better(process)`` in the place of every process."""
        old = self._processes
        self._processes = _Table[Process]()
        codes = [self._processes.code(better(process)) for process in old.values]
        self._process = array("i", (codes[code] for code in self._process))

    def at(self, times: Iterable[int]) -> "LogLines":
        """The same lines with other times, one a line; all other columns are shared."""
        moved = LogLines()
        moved.__dict__.update(self.__dict__)
        moved.time = array("q", times)
        return moved
