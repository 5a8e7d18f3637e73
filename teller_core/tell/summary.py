"""What a capture holds, in numbers: the report that ``import`` and ``captures`` answer with."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.capture import Balance, Capture, Joined, Rank
from teller_core.data.losses import problems_of
from teller_core.data.report import (
    CaptureReport,
    FileReport,
    Finding,
    IdentityReport,
    JoinReport,
    MappingWord,
    RankReport,
)
from teller_core.data.steps import Mapping as Known
from teller_core.data.table import UNKNOWN


def capture_report(
    capture: Capture, *, already_known: bool, imported_at: str, findings: Sequence[Finding] = (), reference: str = ""
) -> CaptureReport:
    """The report of ``capture``. ``imported_at`` is an ISO 8601 time in UTC; ``findings``: what it tells without any request;
    ``reference``: the baseline that it was held against.
    """
    return CaptureReport(
        id=capture.id,
        name=capture.name,
        engine=capture.engine or None,
        files=[_file_report(capture, position) for position in range(len(capture.files))],
        ranks=[_rank_report(capture, rank) for rank in capture.ranks],
        steps=len(capture.steps.engine),
        requests=len(capture.requests.number),
        log_lines=len(capture.lines.time),
        kernels=sum(rank.kernels for rank in capture.ranks),
        kernel_time_ns=sum(rank.kernel_time for rank in capture.ranks),
        clock_error_ns=_clock_error(capture),
        mapping=mapping_of(capture),
        steps_with_requests=len(np.unique(capture.participation.step)),
        identity=_identity_report(capture.balance),
        tier=capture.tier,
        problems=problems_of(capture),
        joined=[_join_report(one) for one in capture.joined],
        redactions=capture.redactions,
        findings=list(findings),
        reference=reference,
        already_known=already_known,
        imported_at=imported_at,
    )


def mapping_of(capture: Capture) -> MappingWord:
    """``recorded``, ``inferred`` or ``unknown``: the weakest way in which the capture's steps got their requests."""
    kinds = capture.participation.mapping
    if len(kinds) == 0:
        return "unknown"
    words: dict[Known, MappingWord] = {Known.RECORDED: "recorded", Known.INFERRED: "inferred", Known.UNKNOWN: "unknown"}
    return words[Known(int(np.min(kinds)))]


def _identity_report(balance: Balance) -> IdentityReport | None:
    if not balance.checked and not balance.unchecked:
        return None
    return IdentityReport(
        checked=balance.checked,
        holds=balance.holds,
        terms=dict(balance.terms),
        unchecked=dict(balance.unchecked),
    )


def _file_report(capture: Capture, position: int) -> FileReport:
    read = capture.files[position]
    ranks = [rank for rank in capture.ranks if rank.file == position]
    return FileReport(
        name=read.name,
        format=read.format,
        clock=read.clock,
        events_in_file=read.events_in_file,
        events_kept=read.events_kept,
        events_other=dict(read.events_other),
        problems=dict(read.problems),
        kernels=sum(rank.kernels for rank in ranks),
        kernel_time_ns=sum(rank.kernel_time for rank in ranks),
    )


def _join_report(one: Joined) -> JoinReport:
    return JoinReport(
        kind="graph" if one.kind == "graph" else "execution_trace",
        name=one.name,
        rank=one.rank if one.rank >= 0 else None,
        matched=one.matched,
        of=one.total,
        used=one.used,
        launches=one.launches,
        by_name=one.by_name,
    )


def _rank_report(capture: Capture, rank: Rank) -> RankReport:
    start, stop = _recorded(capture, rank)
    return RankReport(
        rank=rank.rank,
        host=rank.host,
        pid=rank.pid,
        role=rank.role,
        spans=0 if rank.tree is None else len(rank.tree),
        kernels=rank.kernels,
        kernel_time_ns=rank.kernel_time,
        clock_error_ns=None if rank.clock_error == UNKNOWN else rank.clock_error,
        problems=dict(rank.problems),
        start=start,
        stop=stop,
    )


def _recorded(capture: Capture, rank: Rank) -> tuple[int | None, int | None]:
    """Unix ns: from when to when a trace of ``rank`` was recorded; None where there is none, or its clock is another one."""
    trace = None if rank.tree is None else rank.tree.trace
    if trace is None or not len(trace) or capture.files[rank.file].clock != "unix":
        return None, None
    return int(trace.start.min()), int(trace.end.max())


def _clock_error(capture: Capture) -> int | None:
    """The largest clock error over the ranks, None where one of them has no bound or there is no rank."""
    errors = [rank.clock_error for rank in capture.ranks]
    return None if not errors or UNKNOWN in errors else max(errors)
