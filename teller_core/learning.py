"""What people teach: which of their captures are of a service in health, and what that says is usual for it."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import get_args

import numpy as np

from teller_core.baselines import stored_service
from teller_core.data.learned import READABLE, Learned
from teller_core.data.report import Metric
from teller_core.data.report_learned import HealthyClaim, LearnedReport, LearnReport
from teller_core.data.service import short_name, unlike, vouched
from teller_core.data.table import UNKNOWN
from teller_core.errors import InputError, StoreError, UnknownName
from teller_core.judge.learned import held_against
from teller_core.judge.learning import (
    LEAST_REQUESTS,
    SICK,
    Claimed,
    Healthy,
    claims_on,
    folds,
    learned_from,
    with_claims,
)
from teller_core.judge.prepare import prepare
from teller_core.sheets import with_profiles
from teller_core.store.learned import DAMAGED, LearnedRow, broken
from teller_core.store.store import Store
from teller_core.tell.progress import Told, nobody

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LEARNED_BY: tuple[Metric, ...] = tuple(each for each in get_args(Metric) if each != "slo")
"""Metrics by which it is learned what is claimed; a promise is about the time from end to end."""
NUMBERED = 60
"""Characters of a name that gets a number: with it, it still is one."""
SHOWN = 8
"""Requests that a refusal names."""


def learn(
    store: Store, named: Sequence[str], *, name: str | None = None, healthy: bool = False, progress: Told = nobody
) -> LearnReport:
    """Learn what is usual from the captures that are ``named`` (ids, or ``last``): a baseline for each service among them, in
    place of those of the same name. ``healthy``: whoever asks says that all was well, whatever was found.

    Raises UnknownName, and InputError where the captures are too small together, where too many of their requests have a cause,
    where they are of several services and one ``name`` was given, or where nobody says whether they are of one: no model was
    recorded of them, and no ``name`` was given.
    """
    _check_name(name)
    ids = list(dict.fromkeys(store.resolve(None if each == "last" else each) for each in named))
    groups = _by_service(store, ids)
    if name is not None and len(groups) > 1:
        raise InputError(
            "learn",
            f"the captures are of {len(groups)} services: {'; '.join(_listed(mine) for _, mine in groups)}",
            "Learn one service at a time, or leave --as away",
        )
    for service, mine in groups:
        if name is None and len(mine) > 1 and not vouched(service, service):
            raise InputError(
                f"learn: {_listed(mine)}",
                "whether they are of one service was not recorded: no model is named in them",
                "Say what that service is called, with --as, or learn them one at a time",
            )
        _check_enough(store, mine)
        if not healthy:
            _check_healthy(store, mine)
    at = datetime.now(UTC).isoformat(timespec="milliseconds")  # who learns twice in a second has two baselines
    called = [name or short_name(service) for service, _ in groups]
    if len(set(called)) < len(called):  # what tells these services apart is in no name
        called = [f"{each[:NUMBERED]}-{number}" for number, each in enumerate(called, 1)]

    def check(rows: Sequence[LearnedRow]) -> None:
        for (service, _), each in zip(groups, called, strict=True):
            _check_free(rows, service, each, said=name is not None)
            _check_same(before, rows, each)

    before = store.learned_rows()
    check(before)  # at once; and again when it is kept, as others learn meanwhile
    made = [
        _learned(store, mine, service, each, at, progress=progress)
        for (service, mine), each in zip(groups, called, strict=True)
    ]
    store.keep_learned(*made, unless=check)
    return LearnReport(learned=[_report(one) for one in made])


def learned(store: Store) -> LearnReport:
    """What was learned, by name."""
    known = [_known(store, row) for row in store.learned_rows()]
    return LearnReport(learned=[one for one in known if one is not None])


def forget(store: Store, name: str) -> LearnReport:
    """Forget a baseline, and say which are left. Raises UnknownName where there is none of that name."""
    store.forget_learned(name)
    return learned(store)


def _check_name(name: str | None) -> None:
    if name is not None and not NAME.fullmatch(name):
        raise InputError(
            "--as", "it is no name of a baseline", "Use letters, digits, dots and dashes, 64 of them at most"
        )


def _by_service(store: Store, ids: Sequence[str]) -> list[tuple[dict[str, str], list[str]]]:
    """The captures of each service: two are of one where they recorded that, or recorded the same of it."""
    groups: list[tuple[dict[str, str], list[str]]] = []
    for each in ids:
        service = stored_service(store, each)
        mine = next((group for group in groups if _same(group[0], service)), None)
        if mine is None:
            groups.append((service, [each]))
        else:
            mine[0].update(service)
            mine[1].append(each)
    return groups


def _same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return one == other or (vouched(one, other) and not unlike(one, other))


def _check_enough(store: Store, ids: Sequence[str]) -> None:
    measured = sum(int((store.values(each) != UNKNOWN).sum()) for each in ids)
    if measured < LEAST_REQUESTS:
        raise InputError(
            f"learn: {_listed(ids)}",
            f"{measured} of the requests in it have both a begin and an end, and it takes {LEAST_REQUESTS}",
            "Record the service for longer, or name several captures of it",
        )


def _check_healthy(store: Store, ids: Sequence[str]) -> None:
    for each in ids:
        struck, failed = store.claimed(each), np.flatnonzero(store.requests(each).failed) + 1
        sick = sorted({*struck, *failed.tolist()})
        if len(sick) <= SICK * len(store.values(each)):
            continue
        causes = [struck.get(number, "failed") for number in sick]
        most = max(sorted(set(causes)), key=causes.count)
        shown = ", ".join(map(str, sick[:SHOWN])) + (" ..." if len(sick) > SHOWN else "")
        raise InputError(
            f"learn: the capture {each[:12]}",
            f"it does not look healthy: {len(sick)} of its {len(store.values(each))} requests failed or have a cause, most often "
            f"{most} (requests {shown})",
            "Name one in which all was well; where this is how the service always is, say so with --healthy",
        )


def _check_free(rows: Sequence[LearnedRow], service: Mapping[str, str], called: str, *, said: bool) -> None:
    """Raise InputError where that name is another service's, or may be and nobody ``said`` that it is this one's."""
    other = next((row for row in rows if row.name == called), None)
    if other is None:
        return
    if other.format == DAMAGED:
        raise broken(called)
    if facts := unlike(service, other.service):
        raise InputError(
            f"the baseline {called}",
            f"there is one of another service, whose {' and '.join(facts)} is not the same",
            f"Choose another name with --as, or forget that one, with --forget {called}",
        )
    if not said and not vouched(service, other.service):
        raise InputError(
            f"the baseline {called}",
            "there is one, and whether it is of this service was not recorded: no model is named",
            f"Say that it is, with --as {called}, or choose another name",
        )


def _check_same(before: Sequence[LearnedRow], rows: Sequence[LearnedRow], called: str) -> None:
    """Raise InputError where the baseline of that name is no longer the one that was there ``before``: somebody else learned it
    meanwhile, from captures that this one may lack.
    """
    now = next((row for row in rows if row.name == called), None)
    if now is not None and now not in before:
        raise InputError(
            f"the baseline {called}",
            f"somebody else learned it meanwhile, and theirs stands: that of {now.learned_at}",
            "Look at it with --list; to put yours in its place, learn again",
        )


def _learned(
    store: Store, ids: Sequence[str], service: dict[str, str], name: str, at: str, *, progress: Told
) -> Learned:
    several: list[Healthy] = []
    for done, each in enumerate(ids):
        progress("learn", done, 2 * len(ids))
        several.append(_on_its_own(store, each))
    plain = learned_from(several, name, service, at)
    claims: list[Claimed] = []
    for number, one in enumerate(several):
        progress("learn", len(ids) + number, 2 * len(ids))
        whole = with_profiles(store, one.capture)
        for taught, mine in folds(several, number, plain):
            case = prepare(whole, held_against(whole, one.numbers, taught))
            claims += [claims_on(case, mine, metric) for metric in LEARNED_BY]
    return with_claims(plain, claims)


def _on_its_own(store: Store, identity: str) -> Healthy:
    """A capture without its trees, and its numbers held against nothing but itself."""
    capture, numbers = store.capture(identity), store.assessment(identity)
    whole = (
        with_profiles(store, capture) if numbers.reference else capture
    )  # its operators were held against others, too
    return Healthy(capture, held_against(whole, numbers, None))


def _known(store: Store, row: LearnedRow) -> LearnedReport | None:
    """A baseline of the list, None where somebody has forgotten it meanwhile."""
    if row.format not in (*READABLE, DAMAGED):
        return _stale(row, "another version of TELLER learned it: learn it again")
    try:
        if row.format != DAMAGED:
            return _report(store.learned(row.name))
    except UnknownName:
        return None
    except StoreError as error:
        if error.what != broken(row.name).what:
            raise  # of the store as a whole
    return _stale(row, "what the store has of it is damaged: forget it, and learn it again")


def _stale(row: LearnedRow, why: str) -> LearnedReport:
    return LearnedReport(
        name=row.name,
        service=dict(row.service),
        learned_at=row.learned_at,
        captures=[],
        requests=None,
        steps=None,
        operators=None,
        levels=None,
        claims=[],
        stale=why,
    )


def _report(one: Learned) -> LearnedReport:
    claims = [
        HealthyClaim(metric=metric, cause=cause, rate=round(rate, 4), costs=round(share, 4))
        for metric, cause, rate, share in zip(
            one.claims.metric, one.claims.cause, one.claims.rate.tolist(), one.claims.share.tolist(), strict=True
        )
    ]
    return LearnedReport(
        name=one.name,
        service=dict(one.service),
        learned_at=one.learned_at,
        captures=[each[:12] for each in one.captures],
        requests=one.requests,
        steps=one.steps,
        operators=len(one.operators.count),
        levels=len(one.levels),
        claims=sorted(claims, key=lambda claim: (claim.metric != "e2e", -claim.rate)),
        stale="",
    )


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(each[:12] for each in ids)
