"""An answer of numbers and rules made better by the model, where there is one: with the same evidence, and kept as others are.

Whoever asks before the model is there pays for nothing of it: what it needs is imported when it is asked.
"""

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from teller_core.data.report import WhyReport
from teller_core.data.said import TIERS
from teller_core.errors import FormatError, StoreError
from teller_core.store.store import Store

if TYPE_CHECKING:
    from teller_core.data.sheets import Sheets
    from teller_core.judge.prepare import Case
    from teller_core.model.judging import Model
    from teller_core.model.loading import Loader

WORDS: Literal["templates", "plain", "model"] = "plain"
"""Whose words such an answer has: the templates of answers by rules alone, the plain words of the grammar of claims, or what the
model chooses of it. The plain ones say most of what is wanted, and one reader preferred them (tests/bench/RESULTS.md).
"""
END_TO_END = "asked about the time from end to end alone"
BUSY = "busy with another request: ask again in some seconds"
CHANGED = "what was learned of the service has changed meanwhile: ask again"
UNTAUGHT = "not asked: it learned from no request of which as little is recorded (tier T{tier}: {what})"
WAIT_S = 5.0
"""How long it is waited for. Who waits in a server has a deadline, and keeps others from its few threads."""
LIKE_END_TO_END = ("e2e", "slo")
"""Metrics of which the model knows sheets."""
MOST_ROWS, KEPT_ROWS = 4_000_000, 1_000_000
"""Spans of a capture, of all its ranks, that are read for the model, and that may stay in memory until the next question. Of a
larger one the model is shown what tables say: an answer has its time and its memory.
"""


def refine(
    store: Store, report: WhyReport, loader: "Loader", *, slo_ms: float | None = None, against: str | None = None
) -> WhyReport:
    """``report``, which ``why`` gave for a request of ``store`` with the same ``slo_ms`` and ``against``, by numbers, rules and
    the model of ``loader``; as it is, with the reason in ``model``, where that has no part in it. What was refined without a
    promise to keep is stored, and found again.

    Raises TellerError.
    """
    if report.metric not in LIKE_END_TO_END:
        return report.model_copy(update={"model": END_TO_END})
    kept = report.metric == "e2e" and slo_ms is None and bool(loader.identity)
    known = store.refined(report.capture, report.request, report.metric, loader.identity) if kept else None
    if known is not None and known.reference == report.reference:
        return known.model_copy(update={"not_seen": report.not_seen})
    model = _taught(loader.ask(), report.tier)
    if isinstance(model, str):
        return report.model_copy(update={"model": model})
    if not loader.turn.acquire(timeout=WAIT_S):
        return report.model_copy(update={"model": BUSY})
    try:
        said = _asked(store, report, model, None if slo_ms is None else round(slo_ms * 1e6), against)
    except FormatError as error:  # tokens of another vocabulary: rules have read none
        return report.model_copy(update={"model": f"not used: {error}"})
    finally:
        loader.turn.release()
    if kept and said.model != CHANGED:
        _keep(store.path, said, loader.identity)
    return said


def _taught(model: "Model | str", tier: int) -> "Model | str":
    """``model``, or why it is not asked about a request of which no more than at ``tier`` is recorded."""
    if isinstance(model, str) or model.card.learned_at(tier):
        return model
    return UNTAUGHT.format(tier=tier, what=TIERS[tier])


def _asked(store: Store, report: WhyReport, model: "Model", slo_ns: int | None, against: str | None) -> WhyReport:
    import numpy as np

    from teller_core.context.linking import step_linked
    from teller_core.judge.fusing import refined
    from teller_core.model.judging import opinions
    from teller_core.sheets import request_sheets
    from teller_core.tell.explain import explain

    case, request = _case(store, report.capture), report.request - 1
    # The model learned from captures held against themselves, whatever the rules hold this one against.
    sheets = request_sheets(case, np.array([request], dtype=np.int64))
    [opinion] = opinions(model, sheets)
    held = case if not report.reference else _held(store, case, against, report.reference)
    if held is None:
        return report.model_copy(update={"model": CHANGED})
    linked = partial(step_linked, case.capture, rows=partial(store.tree_rows, report.capture))
    # What is measured with these rows at hand ends with this question.
    said = refined(replace(held, link=linked, measured=dict(held.measured)), request, report, opinion, slo_ns)
    return _worded(explain(said), model, sheets)


def _worded(report: WhyReport, model: "Model", sheets: "Sheets") -> WhyReport:
    """``report`` in the words of whom WORDS names; the templates' stay where not one sentence of the others holds."""
    if WORDS == "templates":
        return report
    from teller_core.model.judging import spoken
    from teller_core.model.words.saying import said

    found = said(report) if WORDS == "plain" else spoken(model, sheets, 0, report)
    return report.model_copy(update={"explanation": found.text or report.explanation, "unsaid": dict(found.dropped)})


def _keep(path: Path, said: WhyReport, model: str) -> None:
    # A store that is being written to, or cannot be: the answer is as good, and is made again when somebody asks again.
    with suppress(StoreError), Store.open(path) as store:
        store.keep_refined(said, model)


def _case(store: Store, capture: str) -> "Case":
    """The capture made ready for sheets, held against itself: that of the last question stays, unless it is large."""
    spans = sum(rank.spans for rank in store.report(capture).ranks)
    return _ready(store.path, capture) if spans <= KEPT_ROWS else _prepared(store, capture, whole=spans <= MOST_ROWS)


@lru_cache(1)
def _ready(path: Path, capture: str) -> "Case":
    with Store.open(path, read_only=True) as store:
        return _prepared(store, capture, whole=True)


def _prepared(store: Store, capture: str, *, whole: bool) -> "Case":
    from teller_core.judge.prepare import prepare
    from teller_core.sheets import held, with_profiles

    tables = store.capture(capture)
    numbers = held(store, tables, None)
    return prepare(with_profiles(store, tables) if whole else tables, numbers)


def _held(store: Store, case: "Case", against: str | None, reference: str) -> "Case | None":
    """``case`` held against what was learned of its service, as ``why`` does; None where that is no longer the ``reference``."""
    from teller_core.baselines import stored_service, usual_for
    from teller_core.judge.prepare import prepare
    from teller_core.sheets import held

    capture = case.capture
    tables = replace(capture, ranks=[replace(rank, tree=None) for rank in capture.ranks])
    learned = usual_for(store, stored_service(store, capture.id), against)
    if learned is None or learned.called != reference:
        return None
    return prepare(capture, held(store, tables, learned))
