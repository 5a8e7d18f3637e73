"""Which baseline of a store stands for a capture: that of its own service, or the one that somebody names."""

from collections.abc import Mapping, Sequence

from teller_core.data.capture import Capture
from teller_core.data.learned import READABLE, Learned
from teller_core.data.service import SHOWN_AT_START, service_of, unlike, vouched
from teller_core.errors import InputError
from teller_core.store.learned import DAMAGED, LearnedRow, broken
from teller_core.store.store import Store

MOST_TOLD = 3
"""Baselines of which an answer says why they are not used: a store may have one a version and a week."""


def stored_service(store: Store, capture: str) -> dict[str, str]:
    """The facts of a stored capture's service, without the rest of it."""
    return service_of(store.report(capture).engine or "", store.lines_of(capture, SHOWN_AT_START), store.ranks(capture))


def capture_service(capture: Capture) -> dict[str, str]:
    """Those of a capture at hand."""
    return service_of(capture.engine, capture.lines, capture.ranks)


def usual_for(store: Store, service: Mapping[str, str], against: str | None = None) -> Learned | None:
    """The baseline of ``service``, the newest of several, None for none; or the one called ``against``, whose model, or its path,
    may not be the same by what was recorded.

    Raises UnknownName where there is none of that name, StoreError where another version learned it or one is damaged,
    InputError where it is of another service.
    """
    return rows_and_usual(store, service, against)[1]


def rows_and_usual(
    store: Store, service: Mapping[str, str], against: str | None = None
) -> tuple[list[LearnedRow], Learned | None]:
    """All that was learned, and :func:`usual_for`, of one moment: somebody may forget or learn meanwhile."""
    return store.learned_chosen(lambda rows: _named(rows, service, against))


def _named(rows: Sequence[LearnedRow], service: Mapping[str, str], against: str | None) -> str | None:
    if against is None:
        fits = fitting(rows, service)
        return None if fits is None else fits.name
    mine = next((row for row in rows if row.name == against), None)
    if mine is not None and mine.format == DAMAGED:
        raise broken(against)
    if mine is not None and (facts := unlike(service, mine.service, said=True)):
        other = f"it is of another service: its {' and '.join(facts)} {'is' if len(facts) == 1 else 'are'} not the same"
        raise InputError(f"the baseline {against}", other, "Learn one of this service, with `learn`")
    return against


def fitting(rows: Sequence[LearnedRow], service: Mapping[str, str]) -> LearnedRow | None:
    """The newest of ``rows`` that is of ``service`` by what was recorded, None for none. Raises StoreError for a damaged one."""
    if (bad := next((row for row in rows if row.format == DAMAGED), None)) is not None:
        raise broken(bad.name)
    fits = [row for row in rows if row.format in READABLE and vouched(service, row.service)]
    fits = [row for row in fits if not unlike(service, row.service)]
    return max(fits, key=lambda row: row.learned_at, default=None)


def at_import(store: Store, capture: str) -> str:
    """What the verdicts that were made at import were held against, and what stands for the capture now; empty: itself, still."""
    rows, judged = store.learned_rows(), store.report(capture).reference
    now = fitting(rows, stored_service(store, capture)) if rows else None
    called = "" if now is None else now.called
    if called == judged:
        return f"Verdicts and ratios are held against {judged}." if judged else ""
    then = f"{judged}, which is gone or replaced" if judged else "the capture itself"
    return (
        f"Verdicts and ratios here were made at import, held against {then}; `why` holds each request against "
        f"{called or 'the capture itself'}."
    )


def not_used(rows: Sequence[LearnedRow], service: Mapping[str, str]) -> list[str]:
    """Why baselines that may be of ``service`` are not held against it, in words: the newest by name, the others by how many."""
    said: list[str] = []
    for row in sorted(rows, key=lambda row: row.learned_at, reverse=True):
        facts = unlike(service, row.service)
        if facts and {"engine", "model"} & set(facts):
            continue  # of something else
        if row.format not in READABLE:
            said.append(f"the baseline {row.name} is not used: another version of TELLER learned it")
        elif facts:
            said.append(f"the baseline {row.name} is not used: its {' and '.join(facts)} is not the same")
        elif not vouched(service, row.service):
            said.append(f"the baseline {row.name} is not used: whether it is of this model was not recorded")
    left = len(said) - MOST_TOLD
    return [*said[:MOST_TOLD], f"{left} older baselines are not used either"] if left > 1 else said
