"""What must hold of any bytes given to any reader, for the tests with hypothesis and for the runs with atheris."""

from collections import Counter
from pathlib import Path

from teller_core.data.table import UNKNOWN
from teller_core.errors import TellerError
from teller_core.ingest.formats import FORMATS
from teller_core.ingest.found import Found, Place
from teller_core.rebuild.nest import nest

DATA = Path(__file__).parents[1] / "data"
NEAR = 1_795_961_987_000_000_000
READERS = {name: read for name, _, read in FORMATS}
INT64, INT32 = 2**63, 2**31

NOTES = frozenset(
    {
        "bad_stamp",
        "bad_token_count",
        "clock_jump",
        "cupti_blinded",
        "cupti_disk",
        "cupti_layout_unreadable",
        "cupti_no_cupti",
        "cupti_no_layout",
        "cupti_no_thread",
        "cupti_other_client",
        "cupti_too_many_windows",
        "cupti_unknown",
        "cupti_unknown_version",
        "cut_file",
        "cut_iteration_line",
        "cut_records",
        "dropped_records",
        "first_tokens_ambiguous",
        "implausible_duration",
        "line_of_unknown_zone",
        "no_kernels",
        "overwritten_before_dump",
        "recorder_error",
        "recorder_lost",
        "recording_lost",
        "recording_open",
        "requests_without_id",
        "ring_dropped",
        "segments_dropped",
        "status_of_unknown_group",
        "times_by_order_of_lines",
        "unknown_line_over_limit",
        "untested_engine_version",
    }
)
"""Problems told beside a record that is accounted for, or of what is no record of the file."""


def samples(name: str) -> list[bytes]:
    """Every case of the format ``name``, as bytes."""
    return [path.read_bytes() for case in sorted((DATA / name).glob("*")) for path in sorted(case.glob("input*"))]


def sniff_all(data: bytes) -> None:
    """Ask every format whether it is its own: on any bytes that is an answer."""
    for _, sniff, _ in FORMATS:
        assert type(sniff(data[: 1 << 16])) is bool


def read_bytes(name: str, data: bytes, folder: Path) -> Found | None:
    """What the reader ``name`` finds in a file of ``data``; None where it refuses it, on one line that shows."""
    path = folder / "input"
    path.write_bytes(data)
    return read_file(name, path)


def read_file(name: str, path: Path) -> Found | None:
    """As :func:`read_bytes`, of the file at ``path``."""
    try:
        return READERS[name](path, Place(near=NEAR, salt=b"s"), None)
    except TellerError as error:
        assert str(error).isprintable()
        return None


def check(found: Found | None) -> None:
    """Fail unless records are accounted for, positions are within, numbers fit their columns, and traces nest."""
    if found is None:
        return
    notes = sum(n for problem, n in found.problems.items() if problem in NOTES)
    counts = (found.events, found.kept, *found.other.values(), *found.problems.values())
    assert all(type(count) is int and 0 <= count < INT64 for count in counts), counts
    told = found.kept + sum(found.other.values()) + sum(found.problems.values()) - notes
    assert found.events == told, (found.events, found.kept, found.other, found.problems)
    for facts in (found.iterations, found.requests):
        assert all(fact.line is None or 0 <= fact.line < len(found.lines) for fact in facts)
    assert all(line.untrusted_text.isprintable() for line in found.lines)
    _check_times(found)
    _check_counts(found)
    for trace in found.traces:
        trace.check()
        assert all(start + dur < INT64 for start, dur in zip(trace.start.tolist(), trace.dur.tolist(), strict=True))
        assert all(_is_text(text) for table in (trace.names, trace.categories, trace.args) for text in table)
        tree = nest(trace)
        tree.check()
        own = tree.self_time()
        assert not len(own) or int(own.min()) >= 0


def _check_times(found: Found) -> None:
    times: Counter[int] = Counter()
    for line in found.lines:
        times[line.time] += 1
    for kind in (found.decisions, found.executions, found.pauses):
        for row in kind:
            assert row.dur >= 0
            times.update((row.start, row.dur))
    for row in (*found.iterations, *found.requests, *found.samples, *found.metrics, *found.collectives):
        times[row.time] += 1
    for row in found.clients:
        times.update((row.start, row.end, *row.token_times, *row.durations.values()))
    for row in found.spans:
        times.update((row.start, row.end, *row.durations.values(), *row.points.values()))
    for row in found.operators:
        times.update((row.start, row.dur))
    assert all(type(time) is int and -INT64 <= time < INT64 for time in times), times
    assert all(-(2**62) <= time <= 2**62 for time in times if time != UNKNOWN), times


def _check_counts(found: Found) -> None:
    counts: list[int | None] = []
    for row in found.clients:
        counts += [row.prompt_tokens, row.output_tokens]
    for row in found.decisions:
        counts += [
            *row.tokens.values(),
            *row.prompt.values(),
            *row.computed.values(),
            *row.cached.values(),
            row.waiting,
        ]
    for row in found.iterations:
        counts += [row.context_requests, row.context_tokens, row.generation_requests, row.generation_tokens]
    assert all(count is None or -1 <= count < INT32 for count in counts), counts


def _is_text(text: str) -> bool:
    """Whether ``text`` can be written anywhere: no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
