"""Results of ``vllm bench serve`` (JSON) and of SGLang's ``bench_serving`` (one JSON object a run), detailed or not.

A run's object holds its settings, its totals, and, where details were asked for (``--save-detailed``,
``--output-details``), columns with a place for every request: ``input_lens`` and ``output_lens`` in tokens, ``ttfts`` in
seconds from sending to the first piece of the answer, ``itls`` the gaps between pieces in seconds, ``errors``, and, from
vLLM since 2025, ``start_times`` in seconds of a clock with an unknown zero. The gaps of a request add up to its last
piece, so it ended then; a failed one has neither, and its end is not known.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import cast

from teller_core.data.records import ClientRecord, Metric
from teller_core.data.table import UNKNOWN
from teller_core.errors import LimitError
from teller_core.ingest.decimals import LARGEST, few
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.json_stream import Stream, json_stream
from teller_core.ingest.jsonl import text_of

NAME = "bench_results"
LENGTHS = ("input_lens", "output_lens")
TIMES = ("ttfts", "start_times")
COLUMNS = frozenset({*LENGTHS, *TIMES, "itls", "errors"})
MAX_REQUESTS = 5_000_000
"""Requests of one file: their columns alone are some 200 MB."""
NONE = -1
"""A number that is not there, in a column."""


def sniff(head: bytes) -> bool:
    """Whether it begins as a run's object does: with its settings or its totals."""
    start = head.lstrip()
    vllm = b'"num_prompts"' in start and b'"model_id"' in start
    sglang = b'"dataset_name"' in start and (b'"random_input_len"' in start or b'"sharegpt_output_len"' in start)
    return start.startswith(b"{") and (vllm or sglang)


@dataclass
class _Run:
    """The columns of one run as far as they were read; ``gaps``: ns of each request, None where they are no numbers."""

    input_lens: "array[int]" = field(default_factory=lambda: array("q"))
    output_lens: "array[int]" = field(default_factory=lambda: array("q"))
    ttfts: "array[int]" = field(default_factory=lambda: array("q"))
    start_times: "array[int]" = field(default_factory=lambda: array("q"))
    itls: "list[array[int] | None]" = field(default_factory=list["array[int] | None"])
    errors: "array[int]" = field(default_factory=lambda: array("b"))
    numbers: dict[str, float] = field(default_factory=dict[str, float])
    backend: str = ""
    sglang: bool = False

    def count(self) -> int:
        """Requests: the length of the longest column."""
        return max(len(getattr(self, name)) for name in COLUMNS)


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """What the caller measured of each request, and the totals of each run as metrics named ``vllm_bench:...``.

    Without start times every request begins at 0. The answers' texts are passed over. Problems: ``cut_record``: a
    request that stands in some columns only; ``bad_record``: one whose times are no times. Errors: FormatError, LimitError.
    """
    found = Found(clock="local")
    with json_stream(path) as stream:
        for number, _ in enumerate(stream.documents()):
            run = _Run()
            for key in stream.members():
                _take(stream, key, run, found)
                if progress is not None:
                    progress(stream.on_disk)
            _keep(run, number, found)
    return found


def _take(stream: Stream, key: str, run: _Run, found: Found) -> None:
    """One member of a run's object."""
    if key in LENGTHS:
        column: array[int] = getattr(run, key)
        column.extend(_token_counts(stream))
    elif key in TIMES:
        column = getattr(run, key)
        column.extend(_seconds(stream))
    elif key == "itls":
        run.itls.extend(_gaps(stream))
    elif key == "errors":
        run.errors.extend(bool(stream.value()) for _ in _bounded(stream))
    elif key != "generated_texts":
        _setting(stream, key, run, found)


def _setting(stream: Stream, key: str, run: _Run, found: Found) -> None:
    """A total, or something about the run: its numbers are kept."""
    found.events += 1
    if key == "server_info":
        found.other["setting"] += 1
        return
    value = stream.value()
    run.sglang |= key == "dataset_name"
    if key in ("backend", "endpoint_type") and isinstance(value, str):
        run.backend = value
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and -LARGEST < value < LARGEST:
        name = text_of(key, 128)
        if name in run.numbers:  # the last of several counts
            found.other["setting"] += 1
        run.numbers[name] = float(value)
    else:
        found.other["setting"] += 1


def _bounded(stream: Stream) -> Iterator[None]:
    for number, _ in enumerate(stream.elements()):
        if number >= MAX_REQUESTS:
            raise LimitError(stream.name, f"it holds over {MAX_REQUESTS:,} requests", "Record a shorter run")
        yield


def _token_counts(stream: Stream) -> Iterator[int]:
    for _ in _bounded(stream):
        number = few(stream.value())
        yield NONE if number is None else number


def _seconds(stream: Stream) -> Iterator[int]:
    for _ in _bounded(stream):
        ns = stream.value(seconds=True)
        yield ns if type(ns) is int and ns >= 0 else NONE


def _gaps(stream: Stream) -> Iterator["array[int] | None"]:
    for _ in _bounded(stream):
        gaps = stream.value(seconds=True)
        whole = isinstance(gaps, list) and all(type(gap) is int and gap >= 0 for gap in cast("list[object]", gaps))
        yield array("q", cast("list[int]", gaps)) if whole else None


def _keep(run: _Run, number: int, found: Found) -> None:
    """Make a run's columns records."""
    tool = "sglang" if run.sglang else "vllm"
    found.engine = found.engine or next((name for name in ("vllm", "sglang") if run.backend.startswith(name)), "")
    found.kept += len(run.numbers)
    found.metrics += [Metric(UNKNOWN, f"{tool}_bench:{name}", {}, value) for name, value in run.numbers.items()]
    count = run.count()
    found.events += count
    shortest = min((len(getattr(run, name)) for name in COLUMNS if len(getattr(run, name))), default=0)
    for at in range(count):
        record = _record(run, number, at) if at < shortest else None
        if at < len(run.itls):
            run.itls[at] = None  # its times stand in the record now
        if record is not None:
            found.kept += 1
            found.clients.append(record)
        else:
            found.problems["bad_record" if at < shortest else "cut_record"] += 1


def _record(run: _Run, number: int, at: int) -> ClientRecord | None:
    """The request in place ``at``; None where its times are none."""
    start = run.start_times[at] if run.start_times else 0
    first = run.ttfts[at] if run.ttfts else NONE
    gaps = run.itls[at] if run.itls else array("q")
    failed = bool(run.errors[at]) if run.errors else False
    if start == NONE or gaps is None or (run.ttfts and first == NONE):
        return None
    if start + max(first, 0) + sum(gaps) >= LARGEST:
        return None
    times = array("q", accumulate(gaps, initial=start + first)) if first > 0 else ()
    return ClientRecord(
        f"run{number}-{at}",
        start,
        times[-1] if times else UNKNOWN,
        token_times=times,
        prompt_tokens=_known(run.input_lens, at),
        output_tokens=None if failed else _known(run.output_lens, at),
        error=failed,
        clock="local" if run.start_times else "own",
    )


def _known(column: "array[int]", at: int) -> int | None:
    return column[at] if column and column[at] != NONE else None
