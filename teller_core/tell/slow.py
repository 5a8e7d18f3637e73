"""The slow list as a table."""

from collections.abc import Iterable
from typing import Protocol

from teller_core.data.dates import date_of
from teller_core.data.report import Cell, Metric, SlowReport

COLUMNS = (
    "request",
    "engine_id",
    "e2e_ms",
    "ttft_ms",
    "tpot_ms",
    "itl_max_ms",
    "queue_ms",
    "over_slo",
    "over_work",
    "over_load",
    "verdict",
    "cause",
    "began",
)


class SlowRequest(Protocol):
    """What the table shows of one request. Durations are int ns; None is what nobody recorded."""

    @property
    def request(self) -> int: ...
    @property
    def engine_id(self) -> str | None: ...
    @property
    def value(self) -> int | None: ...
    @property
    def e2e(self) -> int | None: ...
    @property
    def ttft(self) -> int | None: ...
    @property
    def tpot(self) -> int | None: ...
    @property
    def itl_max(self) -> int | None: ...
    @property
    def queue(self) -> int | None: ...
    @property
    def over_work(self) -> float | None: ...
    @property
    def over_load(self) -> float | None: ...
    @property
    def verdict(self) -> str | None: ...
    @property
    def cause(self) -> str | None: ...
    @property
    def began(self) -> int | None: ...


def slow_report(
    capture: str,
    metric: Metric,
    page: Iterable[SlowRequest],
    *,
    total: int,
    next_cursor: str | None,
    slo_ms: float | None,
    note: str,
) -> SlowReport:
    """The table of ``page``, in its order. ``over_slo`` is the metric's value over ``slo_ms``, null without one."""
    rows = [_row(request, slo_ms) for request in page]
    return SlowReport(
        capture=capture,
        metric=metric,
        columns=list(COLUMNS),
        rows=rows,
        total=total,
        next_cursor=next_cursor,
        note=note,
    )


def _row(request: SlowRequest, slo_ms: float | None) -> list[Cell]:
    over_slo = None if slo_ms is None or request.value is None else _ratio(request.value / 1e6 / slo_ms)
    durations = [_ms(ns) for ns in (request.e2e, request.ttft, request.tpot, request.itl_max, request.queue)]
    ratios = [over_slo, _ratio(request.over_work), _ratio(request.over_load)]
    began = date_of(request.began)
    return [request.request, request.engine_id, *durations, *ratios, request.verdict, request.cause, began]


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 3)


def _ratio(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
