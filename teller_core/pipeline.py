"""The paper on one page: what happens to a capture, from its files to its answers.

    read      files -> recording: traces, log lines, records                   ingest
    nest      trace -> call-chain tree                                          rebuild
    rebuild   recording + trees -> capture: ranks, steps, requests, log lines   rebuild
    assess    capture -> baselines, residuals, candidates                       judge
    look      capture -> ranks that did not come, calls that do not fit         judge
    diagnose  capture + numbers + request -> verdict with evidence              judge
    explain   verdict -> words, every name and number from its evidence         tell
    keep      all of it -> rows and column chunks                               store

A stage is swapped with ``replace(STAGES, assess=mine)``. Stages that compile code are imported when they first run, so that
an answer from the store never pays for reading.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.records import Recording
from teller_core.data.report import CaptureReport, Finding, ImportReport, WhyReport
from teller_core.data.trace import Trace
from teller_core.data.tree import Tree
from teller_core.store.store import Store
from teller_core.tell.explain import explain
from teller_core.tell.progress import Told, nobody
from teller_core.tell.summary import capture_report

if TYPE_CHECKING:
    from teller_core.ingest.reading import Group


def _read(group: "Group", progress: Told) -> Recording:
    from teller_core.ingest.reading import read_group

    return read_group(group, progress)


def _nest(trace: Trace) -> Tree:
    from teller_core.rebuild.nest import nest

    return nest(trace)


def _rebuild(recording: Recording, trees: Sequence[Tree], capture_id: str, name: str) -> Capture:
    from teller_core.rebuild.capture import rebuild

    return rebuild(recording, trees, capture_id=capture_id, name=name)


def _assess(capture: Capture) -> Assessment:
    from teller_core.judge.assess import assess

    return assess(capture)


def _look(capture: Capture) -> list[Finding]:
    from teller_core.judge.absences import findings

    return findings(capture)


def _diagnose(capture: Capture, assessment: Assessment) -> Iterable[WhyReport]:
    from teller_core.judge.diagnose import diagnose_each

    return diagnose_each(capture, assessment)


@dataclass(frozen=True)
class Stages:
    """The stages of an import, in their order."""

    read: Callable[["Group", Told], Recording] = _read
    nest: Callable[[Trace], Tree] = _nest
    rebuild: Callable[[Recording, Sequence[Tree], str, str], Capture] = _rebuild
    assess: Callable[[Capture], Assessment] = _assess
    look: Callable[[Capture], list[Finding]] = _look
    diagnose: Callable[[Capture, Assessment], Iterable[WhyReport]] = _diagnose
    explain: Callable[[WhyReport], WhyReport] = explain


STAGES = Stages()


def import_paths(
    paths: Sequence[Path],
    store: Store,
    *,
    together: bool | None = None,
    progress: Told = nobody,
    stages: Stages = STAGES,
) -> ImportReport:
    """Read ``paths`` into ``store``. ``together``: join all paths into one capture (True), split every file (False), or
    take the files of one folder as recorded together (None). Raises TellerError; a capture is stored whole or not at all.
    """
    from teller_core.ingest.reading import apart, plan

    groups = apart(paths) if together is False else plan(paths, together is True)
    return ImportReport(captures=[import_group(group, store, progress=progress, stages=stages) for group in groups])


def import_group(group: "Group", store: Store, *, progress: Told = nobody, stages: Stages = STAGES) -> CaptureReport:
    """Read the files of one capture into ``store`` and say what was found."""
    from teller_core.ingest.reading import content_id, hashed

    group = hashed(group, progress)
    capture_id = content_id(group)
    if store.knows(capture_id):
        return store.report(capture_id).model_copy(update={"already_known": True})
    recording = stages.read(group, progress)
    progress("rebuild", 0, 0)
    trees = [stages.nest(trace) for _, trace in recording.traces]
    recording = replace(
        recording, traces=[(file, tree.trace) for (file, _), tree in zip(recording.traces, trees, strict=True)]
    )
    capture = stages.rebuild(recording, trees, capture_id, group.name)
    progress("judge", 0, 0)
    assessment = stages.assess(capture)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    report = capture_report(capture, already_known=False, imported_at=now, findings=stages.look(capture))
    if store.save(capture, assessment, _answered(capture, assessment, stages, progress), report):
        return report
    # Another process stored the same content meanwhile: what it said stays.
    return store.report(capture_id).model_copy(update={"already_known": True})


def _answered(capture: Capture, assessment: Assessment, stages: Stages, progress: Told) -> Iterator[WhyReport]:
    """The answers one by one, as they are put aside: a hundred thousand of them would not fit beside the capture."""
    total = len(capture.requests.number)
    for done, answer in enumerate(stages.diagnose(capture, assessment), 1):
        yield stages.explain(answer)
        progress("judge", done, total)
    progress("store", 0, 0)
