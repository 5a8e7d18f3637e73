"""What a reader found, as lines that fit a screen."""

from collections.abc import Iterable, Mapping
from typing import Any

from teller_core.data.records import Process
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Trace
from teller_core.ingest.found import Found


def shown(format_: str, found: Found) -> str:
    """Everything in ``found``, one line a record; fields that nobody recorded are left out."""
    lines = [f"{format_} clock={found.clock} events={found.events} kept={found.kept} engine={found.engine or '-'}"]
    lines[0] += f" redactions={found.redactions}"
    lines += [f"other {name} {count}" for name, count in sorted(found.other.items())]
    lines += [f"problem {name} {count}" for name, count in sorted(found.problems.items())]
    lines += [f"process {_process(process)}" for process in found.processes]
    for kind in (
        "decisions",
        "executions",
        "outcomes",
        "iterations",
        "requests",
        "clients",
        "spans",
        "pauses",
        "samples",
        "metrics",
        "collectives",
        "groups",
        "operators",
        "clocks",
        "zones",
        "lines",
    ):
        lines += [f"{kind.removesuffix('s')} {_record(record)}" for record in getattr(found, kind)]
    for trace in found.traces:
        lines += list(_trace(trace))
    return "\n".join(lines) + "\n"


def _record(record: Any) -> str:
    values = zip(type(record)._fields, record, strict=True)
    return " ".join(f"{name}={_value(value)}" for name, value in values if _told(value))


def _told(value: object) -> bool:
    return value is False or (value not in (None, UNKNOWN, "", (), {}) and value != [])


def _value(value: object) -> str:
    if isinstance(value, Process):
        return _process(value)
    if isinstance(value, Mapping):
        return "{" + " ".join(f"{key}:{item}" for key, item in value.items()) + "}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + " ".join(map(str, value)) + "]"
    return repr(value) if isinstance(value, str) else str(value)


def _process(process: Process) -> str:
    rank = "" if process.rank is None else f"#{process.rank}"
    return f"{process.host}/{process.pid}:{process.role}{rank}"


def _trace(trace: Trace) -> Iterable[str]:
    origin = trace.origin
    yield f"trace {origin.producer} clock={origin.clock} host={origin.host} pid={origin.pid}"
    for i in range(len(trace)):
        lane = trace.lanes[trace.lane[i]]
        said = trace.args[trace.arg[i]] if trace.arg[i] >= 0 else ""
        where = f"{lane.process}/{lane.thread} {trace.categories[trace.category[i]]}"
        yield f"  {trace.start[i]} +{trace.dur[i]} {where} {trace.names[trace.name[i]]!r} {said}".rstrip()
