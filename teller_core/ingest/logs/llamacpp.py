"""Requests of llama.cpp's server: a task runs in a slot from its launch to a block of timings when it is done.

The block says how long the prompt took, how long the tokens after it, and both together; it is written at the end of the
last token. So the times of a request follow from one stamp, to the microsecond, even where the log knows whole seconds.
"""

from dataclasses import dataclass

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_MS
from teller_core.ingest.found import Found
from teller_core.ingest.logs.facts import Line, request_fact
from teller_core.ingest.logs.values import Fields, duration, number

MAX_OPEN = 1 << 14
FIRST = 1_000
"""ns: the zero of a clock made of durations. A time of whole seconds would seem to be known no better."""
FINE = 50_000_000
"""ns: a launch whose stamp is coarser says less than the block at the end."""
MAX_DONE = 200_000
"""Numbers of finished tasks that are remembered, to know a server that was started again: its tasks count from 0."""


@dataclass(slots=True)
class _Task:
    """One that was launched: ``at`` int ns, on the clock of the lines or of their order."""

    name: str
    at: int
    whole: int | None = None
    prompt: int | None = None
    prompt_tokens: int | None = None
    eval: int | None = None
    tokens: int | None = None
    cached: int | None = None


class Tasks:
    """Tasks that are running, by process and number.

    Lines without any stamp are put on a clock of their own, on which a task ends no sooner than it can: durations are
    exact there, what stood between two tasks is not known. Problems: ``times_by_order_of_lines`` (such requests).
    """

    def __init__(self, found: Found) -> None:
        self.found = found
        self.open: dict[tuple[str, str], _Task] = {}
        self.done: set[tuple[str, str]] = set()
        self.started = 0
        self.current: tuple[str, str] | None = None
        self.clock = FIRST

    def tell(self, rule: str, fields: Fields, line: Line) -> None:
        """A line about a task, or one of the block of timings that follows the line which names it."""
        kind = rule.removeprefix("llamacpp.")
        task = fields.get("task", "")
        if task.isdigit():
            self.current = (line.tag, task)
        elif "task" in fields or self.current is None:
            return
        if kind == "launched":
            self._launch(self.current, line)
        elif kind == "prompt":
            self._task(self.current, line).whole = number(fields, "prompt_tokens")
        elif kind == "cached":
            self._task(self.current, line).cached = number(fields, "cached_tokens")
        elif kind == "timing":
            self._time(self._task(self.current, line), fields, line)
        elif kind in ("released", "stopped") and self.current in self.open:
            task_ = self.open[self.current]
            if task_.prompt is not None and task_.eval is not None:
                self._finish(self.current, task_, task_.prompt + task_.eval, line)

    def close(self) -> None:
        """The log ends: what is open stays without an end."""
        self.open.clear()

    def _launch(self, key: tuple[str, str], line: Line) -> None:
        if key in self.done or len(self.done) >= MAX_DONE:
            self.started += key in self.done
            self.done.clear()
        self.open.pop(key, None)
        task = self._task(key, line)
        if line.time != UNKNOWN and UNKNOWN < line.resolution <= FINE:
            request_fact(self.found, line, task.name, "added")

    def _task(self, key: tuple[str, str], line: Line) -> _Task:
        task = self.open.get(key)
        if task is None:
            while len(self.open) >= MAX_OPEN:
                self.open.pop(next(iter(self.open)))
            tag, number_ = key
            name = f"task {number_}" if not tag else f"{tag} task {number_}"
            at = line.time if line.time != UNKNOWN else self.clock
            task = self.open[key] = _Task(name + (f" of start {self.started + 1}" if self.started else ""), at)
        return task

    def _time(self, task: _Task, fields: Fields, line: Line) -> None:
        took = duration(fields.get("ms"), NS_PER_MS)
        if took is None or self.current is None:
            self.found.problems["implausible_duration"] += 1
        elif fields["kind"].startswith("prompt"):
            task.prompt, task.prompt_tokens = took, number(fields, "tokens")
        elif fields["kind"] == "total":
            self._finish(self.current, task, took, line)
        else:
            task.eval, task.tokens = took, number(fields, "tokens")

    def _finish(self, key: tuple[str, str], task: _Task, total: int, line: Line) -> None:
        del self.open[key]
        self.done.add(key)
        end = line.time
        if end == UNKNOWN:
            end = self.clock = max(self.clock, task.at + total)
            self.found.problems["times_by_order_of_lines"] += 1
        elif line.resolution == UNKNOWN:  # borrowed from an earlier line
            end = max(end, task.at + total)
        begin = end - total
        if line.time != UNKNOWN and UNKNOWN < line.resolution <= FINE:
            begin = max(begin, min(task.at, end))
        request_fact(self.found, line, task.name, "scheduled", time=begin)
        if task.eval is not None and task.eval <= total:
            request_fact(self.found, line, task.name, "first_token", time=max(end - task.eval, begin))
        request_fact(self.found, line, task.name, "finished", time=end)
        whole = task.whole if task.whole is not None else task.prompt_tokens
        cached = whole - task.prompt_tokens if whole is not None and task.prompt_tokens is not None else task.cached
        for kind, value in (("prompt_tokens", whole), ("cached_tokens", cached), ("output_tokens", task.tokens)):
            if value is not None and value >= 0:
                request_fact(self.found, line, task.name, kind, value=value)
