"""What was lost on the way from files to a capture, in plain words, and which answers it could change.

Everything that is read and not kept as it is is counted by name where it happens: with its file, its rank or its capture.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from teller_core.data.capture import Capture

SPANS, REQUESTS, STEPS, CLOCKS, COUNTERS, FILES, NOTHING = (
    "spans", "requests", "steps", "clocks", "counters", "files", "nothing"
)  # fmt: skip
"""What a loss bears on: which spans there are; what is known of requests, of steps, of clocks, of counters; a file that was not
read at all; or nothing that an answer rests on.
"""
TOLD_AT_ONCE = 4
"""Losses that an answer tells, the most frequent first; it says how many kinds there are besides."""


class Loss(NamedTuple):
    """``words``: what was counted, in the plural. ``bears``: what it bears on."""

    words: str
    bears: str


LOSSES: Mapping[str, Loss] = {
    # files
    "answer_file": Loss("files left out that say what is to be found out", NOTHING),
    "archive_in_archive": Loss("archives inside an archive, not read", FILES),
    "archive_in_folder": Loss("archives in a folder, not read: they have to be named themselves", FILES),
    "broken_file": Loss("files that are damaged or cut short", FILES),
    "broken_link": Loss("links that lead nowhere", FILES),
    "control_file": Loss("files that steer a recorder, left out", NOTHING),
    "empty_file": Loss("empty files", NOTHING),
    "encrypted_member": Loss("encrypted files in an archive, not read", FILES),
    "hidden_file": Loss("hidden files, left out", NOTHING),
    "hidden_folder": Loss("hidden folders, left out", NOTHING),
    "link_in_archive": Loss("links in an archive, not followed", FILES),
    "link_out_of_folder": Loss("links out of the folder, not followed", FILES),
    "no_regular_file": Loss("pipes and devices, not read", NOTHING),
    "sparse_file": Loss("sparse files in an archive, not read", FILES),
    "unfinished_file": Loss("files that a recorder had not finished", FILES),
    "unknown_compression": Loss("files in an archive of an unknown compression, not read", FILES),
    "unknown_file": Loss("files of no known format", NOTHING),
    "unreadable_file": Loss("files that may not be read", FILES),
    "unsafe_path": Loss("files in an archive whose path leads out of it, not read", FILES),
    # events of traces
    "correlation_over_int64": Loss("events with a correlation id that no integer holds, dropped", SPANS),
    "crossing_ranges": Loss(
        "ranges that cross another on their thread: kept, below the range that holds all of them", SPANS
    ),
    "damaged_row": Loss("rows of a damaged database, dropped", SPANS),
    "device_work_without_launch": Loss("device events whose launch was not recorded: kept, without a caller", SPANS),
    "dur_not_a_number": Loss("events whose duration is no number, dropped", SPANS),
    "events_lost_by_profiler": Loss("times the profiler said that it lost events", SPANS),
    "negative_dur": Loss("events that end before they begin, dropped", SPANS),
    "no_dur": Loss("events without a duration, dropped", SPANS),
    "no_ph": Loss("records that do not say what they are, dropped", SPANS),
    "no_process": Loss("events that do not say their process, dropped", SPANS),
    "no_ts": Loss("events without a start, dropped", SPANS),
    "not_an_object": Loss("entries of a trace that are no records, dropped", SPANS),
    "profile_lost": Loss("windows of a profiler whose trace was not written", SPANS),
    "profile_refused": Loss("windows of a profiler that a process refused to open", SPANS),
    "profiler_error": Loss("errors that the profiler told", SPANS),
    "queued_before_the_window": Loss("device events queued before recording began: kept, without a caller", SPANS),
    "record_too_long": Loss("records over the longest that is read, dropped", SPANS),
    "time_over_int64": Loss("events at a time that no integer holds, dropped", SPANS),
    "too_deep": Loss("operators nested too deep, dropped with all below them", SPANS),
    "ts_not_a_number": Loss("events whose start is no number, dropped", SPANS),
    "unmatched_pop": Loss("ends of ranges whose beginning was not recorded, dropped", SPANS),
    "unmatched_push": Loss("ranges that were never closed, dropped", SPANS),
    "unmatched_range": Loss("ranges with one end alone, dropped", SPANS),
    # records of GPUs
    "cupti_blinded": Loss(
        "windows on a GPU refused after one that saw launches and no kernels: CUPTI gives none any more", SPANS
    ),
    "cupti_disk": Loss("windows on a GPU that the disk had no room for", SPANS),
    "cupti_gave_way": Loss("windows on a GPU that ended early, as the program started a profiler of its own", SPANS),
    "cupti_layout_unreadable": Loss(
        "windows on a GPU refused: the description of its records could not be read", SPANS
    ),
    "cupti_no_cupti": Loss("windows on a GPU refused: no CUPTI was found", SPANS),
    "cupti_no_layout": Loss("windows on a GPU refused: nobody said how this CUPTI lays out its records", SPANS),
    "cupti_no_thread": Loss("windows on a GPU refused: the process may have no more threads", SPANS),
    "cupti_other_client": Loss("windows on a GPU refused: another client had CUPTI", SPANS),
    "cupti_too_many_windows": Loss("windows on a GPU refused: the process had as many as are safe", SPANS),
    "cupti_unknown": Loss("windows on a GPU that ended for an unknown reason", SPANS),
    "cupti_unknown_version": Loss("windows on a GPU refused: a version of CUPTI that is not known", SPANS),
    "cut_file": Loss("windows on a GPU cut before their end, as their process ended: kept as far as they go", SPANS),
    "cut_records": Loss("records of a GPU beyond the most that a window may have, dropped", SPANS),
    "dropped_records": Loss("records of a GPU that CUPTI had no room for, dropped", SPANS),
    "no_kernels": Loss("windows on a GPU without a kernel: nothing ran on the GPU, or CUPTI gave nothing", SPANS),
    "unfinished_record": Loss("records of a GPU without an end, dropped", SPANS),
    # operators of execution traces, graphs
    "bad_node": Loss("nodes of an execution trace that cannot be read, dropped", SPANS),
    "operators_of_ambiguous_shapes": Loss("operators of which several shapes are told, so none is taken", SPANS),
    "operators_without_span": Loss("operators of an execution trace that no span fits", SPANS),
    "replayed_kernels_without_operator": Loss("kernels of replayed graphs that no captured operator fits", SPANS),
    "starts_not_recorded": Loss("operators with a duration and no start", SPANS),
    # records and log lines
    "bad_entry": Loss("entries of a flight recorder that cannot be read, dropped", CLOCKS),
    "bad_event": Loss("records of a process that cannot be read, dropped", STEPS),
    "bad_json": Loss("lines that are no JSON, dropped", REQUESTS),
    "bad_line": Loss("lines that do not fit their format, dropped", REQUESTS),
    "bad_reading": Loss("readings of metrics that are no numbers, dropped", COUNTERS),
    "bad_record": Loss("records of requests that cannot be read, dropped", REQUESTS),
    "bad_request": Loss("finished requests that cannot be read, dropped", REQUESTS),
    "bad_row": Loss("rows of a table that cannot be read, dropped", REQUESTS),
    "bad_sample": Loss("samples of counters that cannot be read, dropped", COUNTERS),
    "bad_span": Loss("spans of requests that cannot be read, dropped", REQUESTS),
    "bad_stamp": Loss("log lines with a time that there is not: kept, at the time of the line before", REQUESTS),
    "bad_step": Loss("steps whose counts cannot be read, dropped", STEPS),
    "bad_token_count": Loss("counts of tokens that are none, left out", STEPS),
    "cut_iteration_line": Loss("log lines of a step that are cut off: kept as text", STEPS),
    "cut_record": Loss("records of requests that are cut off, dropped", REQUESTS),
    "failed_query": Loss("queries of metrics that had failed", COUNTERS),
    "implausible_duration": Loss("durations in log lines that cannot be, left out", REQUESTS),
    "line_of_unknown_zone": Loss("log lines without a zone among others with one", CLOCKS),
    "line_too_long": Loss("lines over the longest that is read, dropped", REQUESTS),
    "missing_fields": Loss("kinds of counts that this version of the engine does not have", STEPS),
    "overwritten_before_dump": Loss("collectives that a ring had overwritten before it was written out", CLOCKS),
    "recorder_collectives_disabled": Loss(
        "processes whose calls over Gloo were not recorded, in a version of torch that the hooks were not tested on",
        CLOCKS,
    ),
    "recorder_end_disabled": Loss(
        "servers whose last quarter second may be missing, in a version of uvicorn that the hook was not tested on",
        STEPS,
    ),
    "recorder_hooks_disabled": Loss(
        "hooks that were off, in a version of the engine that they were not tested on", STEPS
    ),
    "recorder_lost": Loss("ranges that their recorder had no room or memory for, dropped", SPANS),
    "requests_without_id": Loss("requests in a log that cannot be told from one another", REQUESTS),
    "recording_lost": Loss("lines of a recording that the disk did not take, dropped", COUNTERS),
    "recorder_ranges_disabled": Loss(
        "processes whose NVTX ranges were not recorded, in a version of nvtx that the hooks were not tested on", SPANS
    ),
    "recording_open": Loss("recordings that nobody closed: their recorder was ended, or still runs", COUNTERS),
    "ring_dropped": Loss("pieces of the recording dropped to keep its bounds in bytes and time", FILES),
    "segments_dropped": Loss("oldest parts of a recording, dropped to keep within its bound", STEPS),
    "status_of_unknown_group": Loss("states of process groups that no entry names", NOTHING),
    "times_by_order_of_lines": Loss("requests in a log without times, placed by the order of its lines", REQUESTS),
    "untested_engine_version": Loss("recorders inside a version of the engine that they were not tested on", NOTHING),
    "unknown_event": Loss("records of a process of an unknown kind, dropped", STEPS),
    "unknown_line_over_limit": Loss("log lines that no rule knows, beyond the number that is kept", REQUESTS),
    # joining
    "ambiguous_annotations": Loss("annotated ranges that fit several steps, so none", STEPS),
    "ambiguous_request_ids": Loss("requests whose ids fit several others, so none", REQUESTS),
    "clock_jump": Loss("jumps of the clock while ranges were recorded", CLOCKS),
    "clocks_contradict_collectives": Loss("collectives that the clocks of the ranks contradict", CLOCKS),
    "collectives_contradict_others": Loss(
        "collectives that others before and after them contradict: no wait is told of them", CLOCKS
    ),
    "collectives_in_doubtful_order": Loss("collectives whose order fits several others, so none", CLOCKS),
    "collectives_of_unknown_rank": Loss("collectives of a process whose rank nobody tells", CLOCKS),
    "collectives_that_cannot_have_met": Loss("collectives that by the clocks cannot be the same", CLOCKS),
    "counters_reset": Loss("counters that began again", COUNTERS),
    "device_clock_apart": Loss(
        "steps whose GPU records lie outside of them by their clocks: moved there by number", CLOCKS
    ),
    "executions_without_engine": Loss("executed steps of a worker whose engine is not known", STEPS),
    "executions_without_step": Loss("executed steps that no decision of the scheduler fits", STEPS),
    "files_of_unknown_zone": Loss("files whose clock could not be laid on that of the others", CLOCKS),
    "first_tokens_ambiguous": Loss("requests that came at once, whose first tokens cannot be told apart", REQUESTS),
    "histograms_out_of_order": Loss("histograms whose counts contradict each other", COUNTERS),
    "iterations_disagree": Loss("steps of which two records say different counts", STEPS),
    "launched_before_scheduled": Loss("steps that ran before they were scheduled, by their clocks", CLOCKS),
    "legs_out_of_order": Loss("legs of requests that begin before they are called, by their clocks", CLOCKS),
    "lines_of_unknown_zone": Loss("log lines whose clock could not be laid on that of the others", CLOCKS),
    "lines_without_step": Loss("log lines about steps that fit no step", STEPS),
    "lost_iteration_lines": Loss("steps whose log line is missing", STEPS),
    "marks_without_step": Loss("steps that GPU records name and no worker ran", STEPS),
    "queue_lines_after_first_step": Loss("log lines that call a request queued after its first step", REQUESTS),
    "ranks_told_twice": Loss("ranks that two processes say they are", CLOCKS),
    "routed_without_engine": Loss("requests of a router that fit none of an engine, or several", REQUESTS),
    "resynced_annotations": Loss("times annotated ranges and steps got out of step and were put right", STEPS),
    "identity_broken": Loss("requests whose scheduled tokens do not add up: a record was lost or is wrong", REQUESTS),
    "resynced_executions": Loss("times decisions and executions got out of step and were put right", STEPS),
    "resynced_iterations": Loss("times log lines and steps got out of step and were put right", STEPS),
    "roles_disagree_with_line": Loss("steps whose log line counts other requests than were recorded", STEPS),
    "span_durations_do_not_fit": Loss("spans of requests whose durations do not fit their ends", REQUESTS),
    "spans_of_several_requests": Loss("spans that fit several requests, so none", REQUESTS),
    "slower_after_window": Loss("windows of a profiler after which steps stayed slower than before", NOTHING),
    "steps_interleaved": Loss("pieces of steps whose launches lie among another's, left out of both", SPANS),
    "steps_with_uneven_collectives": Loss("steps in which the ranks called different numbers of collectives", CLOCKS),
    "too_many_ways_to_tell": Loss("stretches of steps in which too many requests may have run to tell which", STEPS),
}
"""One line a name. A name that a reader makes and that is not here is shown as it is."""

RECORDER = Loss("events that the recorder could not write", STEPS)
"""What a recorder counted of its own losses, whatever it called them: names that begin with ``recorder_``."""


def loss(name: str) -> Loss:
    """The plain words for a problem, and what it bears on: everything, where nobody wrote that down."""
    if name.startswith("recorder_") and name not in LOSSES:
        return RECORDER
    return LOSSES.get(name) or Loss(name.replace("_", " "), FILES)


def problems_of(capture: "Capture") -> dict[str, int]:
    """Every problem of a capture by name, ordered by name: those of joining, of its files and of its ranks, added up."""
    total: Counter[str] = Counter(capture.problems)
    for problems in (*(read.problems for read in capture.files), *(rank.problems for rank in capture.ranks)):
        total.update(problems)
    return {name: int(count) for name, count in sorted(total.items()) if count}


def bearing(problems: Mapping[str, int], on: Collection[str]) -> dict[str, int]:
    """Those of ``problems`` that bear on what an answer rests on; a file that was not read bears on all of it."""
    return {name: count for name, count in problems.items() if loss(name).bears in (*on, FILES)}


def gone(problems: Mapping[str, int]) -> bool:
    """Whether something of what was recorded is not in the capture at all: dropped, or in a file that was not read."""
    return any(loss(name).bears == FILES or "dropped" in loss(name).words for name in problems)


def told(problems: Mapping[str, int]) -> list[str]:
    """``problems`` in words, the most frequent first: as many as an answer has room for."""
    ordered = sorted(problems.items(), key=lambda item: (-item[1], item[0]))
    said = [f"{loss(name).words} ({count:,})" for name, count in ordered[:TOLD_AT_ONCE]]
    more = len(ordered) - len(said)
    return [*said, f"{more} more kinds of losses, which `captures` lists"] if more else said


def note(problems: Mapping[str, int], on: Collection[str], other: str = "") -> str:
    """``other`` and, behind it, what was lost that bears ``on`` an answer, as one text; empty where there is neither."""
    lost = told(bearing(problems, on))
    if not lost:
        return other
    return "; ".join([*filter(None, [other.removesuffix(".")]), f"lost in reading: {', '.join(lost)}"])
