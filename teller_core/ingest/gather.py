"""What the files of one capture hold, gathered into one :class:`Recording`."""

from collections import Counter
from dataclasses import dataclass, field, replace

from teller_core.data.records import FileRead, Process, Recording
from teller_core.data.table import UNKNOWN
from teller_core.ingest.found import Found
from teller_core.ingest.roles import with_roles


@dataclass
class Gathered:
    """A recording to be, and what its files tell besides records."""

    recording: Recording
    processes: list[Process] = field(default_factory=list[Process])
    engines: Counter[str] = field(default_factory=Counter[str])
    redactions: int = 0
    times: list[int] = field(default_factory=list[int])
    """Unix ns: one of each file that has any."""

    def add(self, file: FileRead, found: Found) -> None:
        """Append ``found``, which was read from ``file``. Positions of lines move by those of the files before."""
        recording, first_line = self.recording, len(self.recording.lines)
        position = len(recording.files)
        recording.files.append(file)
        if found.trace is not None:
            recording.traces.append((position, found.trace))
        recording.decisions.extend(found.decisions)
        recording.executions.extend(found.executions)
        recording.iterations.extend(
            fact if fact.line is None else fact._replace(line=fact.line + first_line) for fact in found.iterations
        )
        recording.requests.extend(
            fact if fact.line is None else fact._replace(line=fact.line + first_line) for fact in found.requests
        )
        recording.clients.extend(found.clients)
        recording.spans.extend(found.spans)
        recording.pauses.extend(found.pauses)
        recording.samples.extend(found.samples)
        recording.metrics.extend(found.metrics)
        recording.lines.extend(found.lines)
        recording.collectives.extend(found.collectives)
        self.processes += found.processes
        self.redactions += found.redactions
        if found.engine:
            self.engines[found.engine] += 1
        self._note_time(found)

    def middle(self) -> int:
        """Unix ns in the middle of what was read so far by that clock; 0 where nothing was."""
        return sorted(self.times)[len(self.times) // 2] if self.times else 0

    def finish(self) -> Recording:
        """The recording, with one role for every process."""
        with_roles(self.recording, self.processes)
        engine = self.engines.most_common(1)[0][0] if self.engines else ""
        return replace(self.recording, engine=engine, redactions=self.redactions)

    def _note_time(self, found: Found) -> None:
        if found.clock != "unix":
            return
        starts = [record.start for record in (*found.decisions[:1], *found.clients[:1], *found.pauses[:1])]
        starts += [span.start for span in found.spans[:1]]
        starts += [record.time for record in (*found.samples[:1], *found.collectives[:1])]
        starts += [line.time for line in found.lines[:1]]
        if found.trace is not None and found.trace.origin.clock == "unix" and len(found.trace):
            starts.append(int(found.trace.start[0]))
        known = [start for start in starts if start != UNKNOWN]
        self.times += known[:1]
