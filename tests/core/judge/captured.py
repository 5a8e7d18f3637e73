"""Real captures, read and rebuilt once a test run: the trimmed ones beside the tests, the whole ones where they are at hand."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.report import WhyReport
from teller_core.ingest.reading import plan, read_group
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import diagnose_all
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.nest import nest
from teller_core.tell.explain import explain

ROOT = Path(__file__).parents[3]
TRIMMED = ROOT / "tests" / "data" / "captures"
WHOLE = ROOT.parent / "shared" / "captures"


@cache
def rebuilt(folder: Path) -> tuple[Capture, Assessment]:
    """The capture in ``folder`` and its numbers."""
    (group,) = plan([folder], False)
    recording = read_group(group, lambda *_: None)
    trees = [nest(trace) for _, trace in recording.traces]
    ordered = [(file, tree.trace) for (file, _), tree in zip(recording.traces, trees, strict=True)]
    recording = replace(recording, traces=ordered)
    capture = rebuild(recording, trees, capture_id=group.name, name=group.name)
    return capture, assess(capture)


@cache
def answers(folder: Path) -> list[WhyReport]:
    """The explained answer for every request of the capture in ``folder``."""
    return [explain(report) for report in diagnose_all(*rebuilt(folder))]
