"""The paper on one page: what happens to a capture, from its files to its answers.

    read      files -> recording: traces, log lines, records                   ingest
    nest      trace -> call-chain tree, by whichever process read the trace     rebuild
    rebuild   recording + trees -> capture: ranks, steps, requests, log lines   rebuild
    assess    capture + what was learned of its service, if anything was
              -> baselines, residuals, candidates                               judge
    look      capture -> ranks that did not come, calls that do not fit         judge
    diagnose  capture + numbers + request -> verdict with evidence and savings  judge, context
    explain   verdict -> words, every name and number from its evidence         tell
    keep      all of it -> rows and column chunks                               store

What is asked afterwards is answered from what was kept: in ``slices.py`` what bears on a step (context) and its tokens, in
``answers.py`` the rest. A stage is swapped with ``replace(STAGES, assess=mine)``. Stages that compile code are imported when they
first run, so that an answer from the store never pays for reading.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from teller_core.baselines import capture_service, usual_for
from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.learned import Learned
from teller_core.data.means import within_means
from teller_core.data.records import Recording
from teller_core.data.report import CaptureReport, Finding, ImportReport, WhyReport
from teller_core.data.trace import Trace
from teller_core.data.tree import Tree
from teller_core.store.store import Store
from teller_core.tell.explain import explain
from teller_core.tell.progress import Told, nobody, part_of, staged
from teller_core.tell.summary import capture_report

if TYPE_CHECKING:
    from teller_core.ingest.reading import Group, How, Reading

Nest = Callable[[Trace], Tree]


def _read(group: "Group", nest: Nest, progress: Told, how: "How") -> "Reading":
    from teller_core.ingest.reading import read_trees

    with _compiling(progress):
        return read_trees(group, nest, progress, how)


def _compiling(progress: Told) -> AbstractContextManager[None]:
    """Where somebody looks, say when the reader has to be compiled: that happens once, and looks like nothing happens."""
    if progress is nobody:
        return nullcontext()
    from teller_core.data.compiled import announce_compiling

    return announce_compiling(lambda: progress("compiling the reader, once on this machine: up to a minute", 0, 0))


def _nest(trace: Trace) -> Tree:
    from teller_core.rebuild.nest import nest

    given = [trace]
    del trace  # nesting lets the columns go as it moves them, unless somebody else holds them
    return nest(given.pop())


def _rebuild(recording: Recording, trees: Sequence[Tree], capture_id: str, name: str) -> Capture:
    from teller_core.rebuild.capture import rebuild

    return rebuild(recording, trees, capture_id=capture_id, name=name)


def _assess(capture: Capture, learned: Learned | None) -> Assessment:
    from teller_core.judge.assess import assess

    return assess(capture, learned)


def _look(capture: Capture) -> list[Finding]:
    from teller_core.judge.absences import findings

    return findings(capture)


def _diagnose(capture: Capture, assessment: Assessment) -> Iterable[WhyReport]:
    from teller_core.context.linking import step_linked
    from teller_core.judge.diagnose import diagnose_each

    return diagnose_each(capture, assessment, partial(step_linked, capture))


@dataclass(frozen=True)
class Stages:
    """The stages of an import, in their order."""

    read: Callable[["Group", Nest, Told, "How"], "Reading"] = _read
    nest: Nest = _nest
    rebuild: Callable[[Recording, Sequence[Tree], str, str], Capture] = _rebuild
    assess: Callable[[Capture, Learned | None], Assessment] = _assess
    look: Callable[[Capture], list[Finding]] = _look
    diagnose: Callable[[Capture, Assessment], Iterable[WhyReport]] = _diagnose
    explain: Callable[[WhyReport], WhyReport] = explain


STAGES = Stages()


def import_paths(
    paths: Sequence[Path],
    store: Store,
    *,
    together: bool | None = None,
    keep_prompts: bool = False,
    jobs: int | None = None,
    only_below: Sequence[Path] = (),
    progress: Told = nobody,
    stages: Stages = STAGES,
) -> ImportReport:
    """Read ``paths`` into ``store``: files, folders, archives and patterns. ``together``: join all paths into one capture
    (True), split every file (False), or take the files of one folder as recorded together (None). ``jobs``: files read at
    once, by default as many as pay. ``only_below``: folders (resolved) out of which nothing is read, whatever is put in the
    place of ``paths`` meanwhile. Raises TellerError; a capture is stored whole or not at all.
    """
    from teller_core.ingest.files.opening import within
    from teller_core.ingest.reading import How, apart, bytes_of, plan

    how = How(store.path.parent, jobs, keep_prompts)
    listing = staged("list", progress)
    reports: list[CaptureReport] = []
    with within(only_below):
        groups = apart(paths, listing) if together is False else plan(paths, together is True, listing)
        sizes = [bytes_of(group) for group in groups]
        for at, group in enumerate(groups):
            told = part_of(progress, sum(sizes[:at]), sum(sizes))
            with within_means(group.name):
                reports.append(import_group(group, store, how=how, progress=told, stages=stages))
    return ImportReport(captures=reports)


def import_group(
    group: "Group", store: Store, *, how: "How", progress: Told = nobody, stages: Stages = STAGES
) -> CaptureReport:
    """Read the files of one capture into ``store`` and say what was found."""
    from teller_core.ingest.reading import content_id, hashed

    group = hashed(group, staged("check", progress))
    capture_id = content_id(group)
    if store.knows(capture_id):
        return store.report(capture_id).model_copy(update={"already_known": True})
    recording, trees = stages.read(group, stages.nest, progress, how)
    progress("rebuild", 0, 0)
    capture = stages.rebuild(recording, trees, capture_id, group.name)
    progress("judge", 0, 0)
    learned = usual_for(store, capture_service(capture))
    assessment = stages.assess(capture, learned)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    report = capture_report(
        capture, already_known=False, imported_at=now, findings=stages.look(capture), reference=assessment.reference
    )
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
