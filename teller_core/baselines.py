"""Which baseline of a store stands for a capture: that of its own service, or the one that somebody names."""

from collections.abc import Mapping, Sequence

from teller_core.data.capture import Capture
from teller_core.data.learned import FORMAT, Learned
from teller_core.data.service import SHOWN_AT_START, service_of, unlike, vouched
from teller_core.errors import InputError
from teller_core.store.learned import LearnedRow
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
    """The baseline of ``service``, the newest of several, None for none; or the one called ``against``, whose model may not be
    known.

    Raises UnknownName where there is none of that name, StoreError where another version learned it, InputError where it is of
    another service.
    """
    rows = store.learned_rows()
    if against is not None:
        mine = next((row for row in rows if row.name == against), None)
        if mine is not None and (facts := unlike(service, mine.service)):
            other = (
                f"it is of another service: its {' and '.join(facts)} {'is' if len(facts) == 1 else 'are'} not the same"
            )
            raise InputError(f"the baseline {against}", other, "Learn one of this service, with `learn`")
        return store.learned(against)
    fits = [row for row in rows if row.format == FORMAT and vouched(service, row.service)]
    fits = [row for row in fits if not unlike(service, row.service)]
    return store.learned(max(fits, key=lambda row: row.learned_at).name) if fits else None


def not_used(rows: Sequence[LearnedRow], service: Mapping[str, str]) -> list[str]:
    """Why baselines that may be of ``service`` are not held against it, in words: the newest by name, the others by how many."""
    said: list[str] = []
    for row in sorted(rows, key=lambda row: row.learned_at, reverse=True):
        facts = unlike(service, row.service)
        if facts and {"engine", "model"} & set(facts):
            continue  # of something else
        if row.format != FORMAT:
            said.append(f"the baseline {row.name} is not used: another version of TELLER learned it")
        elif facts:
            said.append(f"the baseline {row.name} is not used: its {' and '.join(facts)} is not the same")
        elif not vouched(service, row.service):
            said.append(f"the baseline {row.name} is not used: whether it is of this model was not recorded")
    left = len(said) - MOST_TOLD
    return [*said[:MOST_TOLD], f"{left} older baselines are not used either"] if left > 1 else said
