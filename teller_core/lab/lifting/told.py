"""What ``why`` says that the end of their cause would save struck requests, where nobody tells it what is healthy."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from teller_core.context.linking import step_linked
from teller_core.data.capture import Capture
from teller_core.data.report import Finding, WhyReport
from teller_core.data.table import UNKNOWN
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import diagnose_each
from teller_core.lab.benchmark.chosen import Chosen, of_strike
from teller_core.lab.benchmark.cut import cut
from teller_core.lab.benchmark.labels import STRUCK, labels_of
from teller_core.lab.benchmark.twins import lost
from teller_core.lab.blocks import BlockTruth, healthy_in
from teller_core.lab.lifting.calm import places
from teller_core.lab.lifting.pairs import Sums

MS = 1e6
NOT_NAMED = "its cause is not named"
Answers = Callable[[Capture], Iterable[WhyReport]]


def answered(capture: Capture) -> Iterable[WhyReport]:
    """As an import of ``capture`` answers."""
    return diagnose_each(capture, assess(capture), partial(step_linked, capture))


def of_told(capture: Capture, block: BlockTruth, strike: int, answers: Answers = answered) -> tuple[Sums | None, str]:
    """The struck requests of which ``why`` names the cause and claims a saving, from the block's healthy windows and those of the
    strike alone; and why there is none.
    """
    chosen = of_strike(block, strike, profiled=False)
    part = cut(capture, [one.interval for one in chosen])
    struck = labels_of(part, chosen, lost(capture, chosen)).request == STRUCK
    cause, usual = block.strikes[strike].cause, _usual(capture, block, chosen)
    rows: list[tuple[float, ...]] = []
    why: Counter[str] = Counter()
    for at, report in enumerate(answers(part)):
        name = part.requests.client_id[at]
        if not struck[at] or name not in usual:
            continue
        found = next((finding for finding in report.findings if finding.cause == cause), None)
        if found is None or found.rescheduled_ms is None:
            why[NOT_NAMED if found is None else found.rescheduled_assumes or found.saving_assumes] += 1
        else:
            rows.append(_row(part, at, usual[name], found))
    if not rows:
        return None, max(why, key=lambda one: why[one], default=NOT_NAMED)
    return Sums(len(rows), *np.sum(rows, axis=0).tolist()), ""


def _usual(capture: Capture, block: BlockTruth, chosen: Sequence[Chosen]) -> dict[str, list[int]]:
    """ns that each request of struck windows took in its healthy twins, by name; those without whole twins are left out."""
    table, known = capture.requests, places(capture)
    took = {
        name: int(table.client_end[at] - table.client_start[at])
        for name, at in known.items()
        if not table.failed[at] and UNKNOWN not in (int(table.client_start[at]), int(table.client_end[at]))
    }
    found: dict[str, list[int]] = {}
    for window in (one.window for one in chosen if one.strike is not None):
        healthy = healthy_in(block, window.round)
        for place, name in enumerate(window.requests):
            each = [took.get(twin.requests[place], UNKNOWN) for twin in healthy]
            if each and UNKNOWN not in each:
                found[name] = each
    return found


def _row(capture: Capture, at: int, usual: Sequence[int], found: Finding) -> tuple[float, ...]:
    """Of one request, what :class:`Sums` has behind its size."""
    table, steps, part = capture.requests, capture.steps, capture.participation
    before = int(table.client_end[at] - table.client_start[at])
    own = np.unique(part.step[part.request == at])
    whole = float((steps.end()[own] - steps.begin()[own]).sum())
    own_loss = (found.saving_ms or 0.0) * MS
    scaled = before * min(own_loss / max(whole, 1.0), 1.0)
    apart = (usual[0] - usual[-1]) / 2
    return before, before - float(np.mean(usual)), apart, (found.rescheduled_ms or 0.0) * MS, own_loss, scaled
