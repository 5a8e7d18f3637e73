"""One access line of a proxy, as a JSON object: nginx's formats of people's own, Envoy's and Istio's, Traefik's and Caddy's."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_MS, NS_PER_S, scaled, unix_ns
from teller_core.ingest.jsonl import as_object
from teller_core.ingest.proxies.text_lines import (
    LONGEST,
    NGINX_IDS,
    NGINX_TIMES,
    Access,
    clf_time,
    id_of,
    path_of,
    sent_on,
    summed,
)
from teller_core.ingest.stamps import stamp

Row = Mapping[str, Any]
_TIMES = ("msec", "time_iso8601", "@timestamp", "timestamp", "time_local", "time", "ts")
_METHODS = ("request_method", "method", "http_method", "verb")
_PATHS = ("request_uri", "uri", "path", "url", "request_path")
_ANSWERS = ("body_bytes_sent", "bytes_sent")
_STATUSES = ("status", "response_code", "status_code", "response_status")


def json_access(row: Row) -> Access | None:
    """What the object says of a request; None where it is no access line with a duration and a time."""
    if "DownstreamStatus" in row:
        return _traefik(row)
    if row.get("logger") == "http.log.access" or row.get("msg") == "handled request":
        return _caddy(row)
    if "request_time" in row:
        return _nginx(row)
    return _envoy(row) if "duration" in row and "response_code" in row else None


def _nginx(row: Row) -> Access | None:
    took, (time, resolution, zoned) = summed(_text(row.get("request_time"))), _time(row)
    if took is None or time == UNKNOWN:
        return None
    durations = {f"nginx.{key}": ns for key in NGINX_TIMES if (ns := summed(_text(row.get(key)))) is not None}
    method, path = _request(row)
    response, connect = (_text(row.get(f"upstream_{name}_time")) for name in ("response", "connect"))
    before = sent_on(took, response, connect, scaled(_first(row, _ANSWERS), 1))
    request = id_of(_first(row, NGINX_IDS))
    return Access("nginx", time - took, time, resolution, zoned, method, path, _status(row), durations, before, request)


def _envoy(row: Row) -> Access | None:
    time, resolution, zoned = stamp(_text(row.get("start_time")) or "", 0)
    took = scaled(row.get("duration"), NS_PER_MS)
    if time == UNKNOWN or took is None or not 0 <= took < LONGEST:
        return None
    durations = {"envoy.duration": took}
    served = scaled(_first(row, ("upstream_service_time", "x_envoy_upstream_service_time")), NS_PER_MS)
    if served is not None and 0 <= served < LONGEST:
        durations["envoy.upstream_service_time"] = served
    method, path = _request(row)
    request = id_of(_first(row, ("request_id", "x_request_id")))
    trace = id_of(_first(row, ("trace_id", "traceID")))
    return Access(
        "envoy",
        time,
        time + took,
        resolution,
        zoned,
        method,
        path,
        _status(row),
        durations,
        request=request,
        trace=trace,
    )


def _traefik(row: Row) -> Access | None:
    time, resolution, zoned = stamp(_text(_first(row, ("StartUTC", "StartLocal"))) or "", 0)
    took = scaled(row.get("Duration"), 1)
    if time == UNKNOWN or took is None or not 0 <= took < LONGEST:
        return None
    named = (("traefik.duration", took), *((f"traefik.{k}", scaled(row.get(n), 1)) for k, n in _TRAEFIK))
    durations = {name: ns for name, ns in named if ns is not None and 0 <= ns < LONGEST}
    method, path = id_of(row.get("RequestMethod")), path_of(_text(row.get("RequestPath")) or "")
    status = scaled(row.get("DownstreamStatus"), 1) or 0
    request = next((id_of(value) for key, value in row.items() if key.lower() == "request_x-request-id"), "")
    return Access("traefik", time, time + took, resolution, zoned, method, path, status, durations, request=request)


_TRAEFIK = (("origin_duration", "OriginDuration"), ("overhead", "Overhead"))


def _caddy(row: Row) -> Access | None:
    """Its stamp is the end, its duration in seconds, and headers stand under their names as lists."""
    asked, took = as_object(row.get("request")), scaled(row.get("duration"), NS_PER_S)
    time, resolution, zoned = _time(row)
    if time == UNKNOWN or took is None or not 0 <= took < LONGEST:
        return None
    headers = {key.lower(): value for key, value in as_object(asked.get("headers")).items()}
    ids = cast("object", headers.get("x-request-id"))
    request = id_of(next(iter(cast("list[object]", ids)), None) if isinstance(ids, list) else ids)
    method, path = _request(asked)
    return Access(
        "caddy",
        time - took,
        time,
        resolution,
        zoned,
        method,
        path,
        _status(row),
        {"caddy.duration": took},
        request=request,
    )


def _request(row: Row) -> tuple[str, str]:
    """Method and path, also out of a whole request line."""
    line = row.get("request")
    if isinstance(line, str) and len(parts := line.split(" ")) == 3:
        return id_of(parts[0]), path_of(parts[1])
    return id_of(_first(row, _METHODS)), path_of(_text(_first(row, _PATHS)) or "")


def _status(row: Row) -> int:
    return scaled(_first(row, _STATUSES), 1) or 0


def _time(row: Row) -> tuple[int, int, bool]:
    """(int ns, resolution, whether the zone is known) of the stamp; UNKNOWN for none."""
    for key in _TIMES:
        value = row.get(key)
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return unix_ns(value), _resolution(value), True
        if isinstance(value, str) and value.replace(".", "", 1).isdecimal() and len(value) < 30:
            return unix_ns(value), _resolution(Decimal(value)), True
        if isinstance(value, str):
            said = clf_time(value)
            return said if said[0] != UNKNOWN else stamp(value, 0)
    return UNKNOWN, 0, False


def _resolution(value: int | Decimal) -> int:
    """ns of one unit of the last digit of a Unix time in seconds, or in what it counts."""
    if isinstance(value, int):
        return 10 ** max(0, 19 - len(str(value))) if value > 0 else NS_PER_S
    places = -int(value.as_tuple().exponent)
    return max(1, 10 ** (9 - min(9, max(0, places))))


def _first(row: Row, keys: Sequence[str]) -> object:
    return next((row[key] for key in keys if row.get(key) not in (None, "", "-")), None)


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int | Decimal) and not isinstance(value, bool) else None
