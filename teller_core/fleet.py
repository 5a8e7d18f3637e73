"""What explains the tail of many captures: which phase, cause, rank, replica or kind of request makes p99 slower than p50."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from teller_core.data.dates import FIRST, date_of
from teller_core.data.report_fleet import Cohort, FleetReport, TailExample
from teller_core.data.service import short_name
from teller_core.data.tails import Bounds, Measured, Sums
from teller_core.errors import InputError, UnknownName
from teller_core.store import fleet as questions
from teller_core.store.fleet import Chosen, Held
from teller_core.store.store import Store
from teller_core.tell.fleet_rows import COLUMNS, REPLICA_COLUMNS, Replica, kind_rows, kinds, replica_rows
from teller_core.tell.fleet_words import explanation
from teller_core.tell.layout import many, plain
from teller_core.tell.tail import FEWEST, QUANTILES, Cut, cohorts, cut, gap, phases

HOUR = 3_600_000_000_000
AGO = re.compile(r"(\d{1,6})(s|min|h|d)")
UNITS = {"s": HOUR // 3600, "min": HOUR // 60, "h": HOUR, "d": 24 * HOUR}
EXAMPLES = 3
"""Requests of the tail that are offered to be asked about."""
LONGEST = 40
SERVICES = 12
"""Services that are told, those of most captures first."""


def fleet(
    store: Store, *, since: str | None = None, until: str | None = None, service: str | None = None
) -> FleetReport:
    """What explains the tail of all requests that began between ``since`` and ``until``: a date, UTC where it has no zone, or how
    long before the last one that is stored (30min, 6h, 2d); by default the last hour of it. ``service``: of one alone, by its
    name in ``services``. Raises InputError, UnknownName, LimitError.
    """
    held = store.ask(questions.held)
    if not held:
        raise UnknownName(
            "the fleet", "no capture here has requests", "Import logs or traces of a service, with `import`"
        )
    low, high = _range(held, since, until)
    inside, left_out = _inside(held, service, low, high)
    report = _nothing(held, inside, left_out, service, (low, high))
    if not inside:
        return report.model_copy(update={"reason": "no request began in that time"})
    chosen = Chosen("e2e", [one.key for one in inside], low, high)
    measured = store.ask(questions.measured, chosen)
    report = report.model_copy(update={"requests": len(measured.value), "replicas": len(measured.replicas)})
    found = cut(measured.value)
    if found is None:
        few = f"{many(len(measured.value), 'request')} measured are too few: of {_fewest()} one in ten is {FEWEST}"
        return report.model_copy(update={"reason": few})
    if found.bounds.tail <= found.bounds.high:
        return report.model_copy(update={"reason": "there is no tail: the slowest requests took as long as the middle"})
    return _explained(store, report, (chosen, inside), measured, found)


def _explained(
    store: Store, report: FleetReport, asked: tuple[Chosen, Sequence[Held]], measured: Measured, found: Cut
) -> FleetReport:
    chosen, inside = asked
    sums = store.ask(questions.sums, chosen, found.bounds)
    replicas = _replicas(measured, inside, store.ask(questions.hosts, chosen.captures))
    parts = phases(sums)
    told = kinds(sums, store.ask(questions.sorts, chosen, found.bounds), replicas)
    outliers = replica_rows(measured, found, replicas)
    named = [row for row in outliers if row[-1]]
    tail, middle = (_cohort(one, found) for one in cohorts(sums))
    stands = bool(named) or any(part.named for part in parts) or any(kind.named for kind in told)
    return report.model_copy(
        update={
            "verdict": "explained" if stands else "nothing_stands_out",
            "reason": "" if stands else "phases, causes, ranks, replicas and kinds are in the tail as in the middle",
            "quantile": found.quantile,
            "p50_ms": _ms(found.p50),
            "quantile_ms": _ms(found.bounds.tail),
            "tail": tail,
            "middle": middle,
            "gap_ns": round(gap(sums)),
            "phases": parts,
            "rows": [row for kind in told for row in kind_rows(kind)],
            "replica_rows": outliers,
            "examples": _examples(store, chosen, found.bounds, inside, _worst(measured, named, replicas)),
            "explanation": explanation(found.quantile, (tail, middle), parts, told, named),
        }
    )


def _range(held: Sequence[Held], since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """From when to before when (ns); None for both where no capture has dates and none was asked for."""
    last = max((one.ended for one in held if one.ended is not None and one.ended >= FIRST), default=None)
    if last is None:
        if since or until:
            raise InputError("since and until", "no capture here has dates", "Ask without them: all is looked at")
        return None, None
    high = last + 1 if until is None else _moment("until", until, last)
    low = high - HOUR if since is None else _moment("since", since, last)
    if low >= high:
        raise InputError("since", "it is not before the end", "Name an earlier one, or a later end")
    return low, high


def _moment(option: str, text: str, last: int) -> int:
    """ns of a date, or of so long before ``last``."""
    if ago := AGO.fullmatch(text.strip()):
        return last + 1 - int(ago[1]) * UNITS[ago[2]]
    try:
        told = datetime.fromisoformat(text.strip())
    except ValueError:
        why, after = "it is no date", 'Write "2026-12-01 05:30", or how long before the last request: 30min, 6h, 2d'
        raise InputError(option, why, after) from None
    told = told if told.tzinfo else told.replace(tzinfo=UTC)
    return round(told.timestamp() * 1_000_000) * 1000


def _inside(
    held: Sequence[Held], service: str | None, low: int | None, high: int | None
) -> tuple[list[Held], dict[str, int]]:
    """The captures that have requests in that time, and how many others there are, by why."""
    mine = [one for one in held if service is None or service.lower() in _names(one)]
    if not mine:
        kinds = many(len({_service(one) for one in held}), "service")
        raise UnknownName(
            "the service", f"no capture is of it, of {kinds} here", "Ask without it: the answer names them"
        )
    dated = [one for one in mine if low is None or (one.began is not None and one.began >= FIRST)]
    inside = [one for one in dated if _overlaps(one, low, high)]
    left_out = {
        "of other services": len(held) - len(mine),
        "without dates": len(mine) - len(dated),
        "of other times": len(dated) - len(inside),
    }
    return inside, {why: count for why, count in left_out.items() if count}


def _overlaps(one: Held, low: int | None, high: int | None) -> bool:
    if low is None or high is None or one.began is None or one.ended is None:
        return low is None
    return one.began < high and one.ended >= low


def _service(one: Held) -> str:
    return short_name(one.service)


def _names(one: Held) -> set[str]:
    """What a service may be called by: its whole name, its engine or its model."""
    return {
        name.lower() for name in (_service(one), one.service.get("engine", ""), one.service.get("model", "")) if name
    }


def _nothing(
    held: Sequence[Held],
    inside: Sequence[Held],
    left_out: dict[str, int],
    service: str | None,
    when: tuple[int | None, int | None],
) -> FleetReport:
    """The answer where nothing can be told yet."""
    counts: dict[str, int] = {}
    for one in inside or held:
        counts[_service(one)] = counts.get(_service(one), 0) + 1
    most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:SERVICES]
    return FleetReport(
        metric="e2e",
        since=date_of(when[0]),
        until=date_of(when[1]),
        service=None if service is None else plain(service, LONGEST),
        services=dict(most),
        captures=len(inside),
        replicas=0,
        requests=0,
        left_out=left_out,
        verdict="could_not_tell",
        reason="",
        quantile=None,
        p50_ms=None,
        quantile_ms=None,
        tail=None,
        middle=None,
        gap_ns=None,
        phases=[],
        columns=list(COLUMNS),
        rows=[],
        replica_columns=list(REPLICA_COLUMNS),
        replica_rows=[],
        examples=[],
        explanation="",
    )


def _replicas(
    measured: Measured, inside: Sequence[Held], hosts: Mapping[int, set[str]]
) -> dict[tuple[int, int], Replica]:
    """What each replica is called: its capture, and its engine where that has several."""
    by_key = {one.key: one for one in inside}
    engines: dict[int, int] = {}
    for key, _ in measured.replicas:
        engines[key] = engines.get(key, 0) + 1
    found: dict[tuple[int, int], Replica] = {}
    for key, engine in measured.replicas:
        one = by_key[key]
        label = one.id[:12] if engines[key] == 1 else f"{one.id[:12]} engine {engine}"
        host = plain(", ".join(sorted(filter(None, hosts[key]))), LONGEST)
        found[key, engine] = Replica(label, plain(one.name, LONGEST), host, _service(one))
    return found


def _cohort(cohort: Sequence[Sums], found: Cut) -> Cohort:
    count, value = sum(one.requests for one in cohort), sum(one.value for one in cohort)
    tail = cohort[0].tail
    return Cohort(
        what=f"from p{100 * found.quantile:.0f} on" if tail else "p40 to p60",
        requests=count,
        captures=len({one.capture for one in cohort}),
        from_ms=_ms(found.bounds.tail if tail else found.bounds.low),
        to_ms=None if tail else _ms(found.bounds.high),
        mean_ms=_ms(value / count),
    )


def _worst(
    measured: Measured, named: Sequence[Sequence[object]], replicas: Mapping[tuple[int, int], Replica]
) -> tuple[str, int] | None:
    """The label and the key of the capture of the replica that stands out most."""
    label = named[0][0] if named else None
    return next(((replicas[one].label, one[0]) for one in measured.replicas if replicas[one].label == label), None)


def _examples(
    store: Store, chosen: Chosen, bounds: Bounds, inside: Sequence[Held], worst: tuple[str, int] | None
) -> list[TailExample]:
    """The slowest requests, those of the replica that stands out where one does."""
    asked = chosen if worst is None else chosen._replace(captures=[worst[1]])
    of = "the slowest of all" if worst is None else f"the slowest of {worst[0]}"
    by_key = {one.key: one.id for one in inside}
    found = store.ask(questions.slowest, asked, bounds.tail, EXAMPLES)
    return [TailExample(capture=by_key[key], request=number, value_ms=_ms(ns), of=of) for key, number, ns in found]


def _fewest() -> int:
    return round(FEWEST / (1 - QUANTILES[-1]))


def _ms(ns: float) -> float:
    return round(ns / 1e6, 3)
