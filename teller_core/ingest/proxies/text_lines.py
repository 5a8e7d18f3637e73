"""One access line of a proxy, as text: what it says of the request.

======== ========================= ==================================== ===============================
producer duration                  from                                 to
======== ========================= ==================================== ===============================
nginx    request_time              first byte of the request read       last byte of the answer sent
nginx    upstream_connect_time     connecting                           connected
nginx    upstream_header_time      connecting                           the answer's header
nginx    upstream_response_time    connecting                           last byte of the answer received
envoy    duration                  first byte of the request read       last byte of the answer sent
envoy    upstream_service_time     first byte sent on                   the answer's header
haproxy  TR, Tw, Tc                request read, queued, connecting     one after the other
haproxy  Tr                        request sent                         the answer's header
haproxy  Ta                        first byte of the request            last byte of the answer sent
traefik  duration                  request read                         answer sent
alb      request_processing_time   request received                     sent to a target
alb      target_processing_time    request sent                         the answer's header
alb      response_processing_time  the answer's header received         it is sent on
======== ========================= ==================================== ===============================

(Documentation of ngx_http_log_module and ngx_http_upstream_module, of Envoy's access log, HAProxy's section 8, Traefik and AWS.)
nginx and Traefik stamp the end of the request, to the second; the others its begin, to the millisecond.

What nginx's request_time has beside the last upstream's time came before the upstream, as long as the answer is small: then it
is in the connection's buffer, and the request over, as soon as the upstream has sent it. Where it is large, the client may have
been slow to take it, and nginx does not tell the one from the other.
"""

import re
from typing import NamedTuple

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_MS, NS_PER_S, scaled
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.stamps import stamp

LONGEST = 10**15
"""ns: no request takes longer than twelve days."""
SMALL = 1 << 16
"""Bytes of an answer that the buffers of a connection take at once. Linux lets them grow to megabytes (tcp_wmem)."""
ROUNDED = 2 * NS_PER_MS
"""nginx rounds each time to the millisecond: what is left of the whole may be this much less than nothing."""


class Access(NamedTuple):
    """A request as its proxy logged it. ``start``, ``end`` int ns, true to ``resolution``."""

    producer: str
    start: int
    end: int
    resolution: int
    zoned: bool
    method: str
    path: str
    status: int
    durations: dict[str, int]
    before: int | None = None
    """ns from the proxy's receipt of the request until it was sent on, where its log tells that."""
    request: str = ""
    """The id that went with it: ``x-request-id``."""
    trace: str = ""


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CLF_TIME = re.compile(
    r"(?P<day>\d\d)/(?P<month>[A-Z][a-z]{2})/(?P<year>\d{4}):(?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?P<zone> [+-]\d{4})?"
)
_CLF = re.compile(
    r'\S{1,255} \S{1,255} \S{1,255} \[(?P<time>[^\]]{20,40})\] "(?P<method>[A-Z]{3,10}) (?P<path>\S{1,8000})[^"]{0,20}" '
    r'(?P<status>\d{3}) (?P<bytes>\S{1,20}) "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*"(?P<rest>.*)'
)
_ID = r"[0-9A-Za-z_.:-]{1,128}"
_TIME = r"(?:\d{1,9}\.\d{3}|-)(?:(?:, | : )(?:\d{1,9}\.\d{3}|-)){0,9}"
_INGRESS = re.compile(
    rf" \d+ (?P<request_time>\d{{1,9}}\.\d{{3}}) \[[^\]]*\] \[[^\]]*\] .{{1,300}}? (?P<upstream_response_time>{_TIME}) "
    rf"[\d, :-]{{1,60}} (?P<id>[0-9a-f]{{32}})"
)
_POSITIONS = re.compile(
    rf'(?: "(?:[^"\\]|\\.)*"){{0,3}} "?(?P<request_time>\d{{1,9}}\.\d{{3}})"?'
    rf'(?: "?(?P<upstream_response_time>{_TIME})"?)?(?: [.p])?'
    rf'(?: "?(?P<id>[0-9a-f]{{32}}|[0-9a-f]{{8}}-[0-9a-f-]{{27}})"?)?'
)
_PAIR = re.compile(r'(?P<key>[a-z_]{2,40})[=:](?:"(?P<quoted>[^"]{1,200})"|(?P<plain>[^"\s]{1,200}))')
_KEYS = {
    "rt": "request_time",
    "uct": "upstream_connect_time",
    "uht": "upstream_header_time",
    "urt": "upstream_response_time",
}
NGINX_TIMES = ("request_time", "upstream_connect_time", "upstream_header_time", "upstream_response_time")
NGINX_IDS = ("request_id", "req_id", "x_request_id", "http_x_request_id", "rid", "id")
_TRAEFIK = re.compile(r' \d+ "[^"]{0,500}" "[^"]{0,500}" (?P<ms>\d{1,12})ms')
_ENVOY = re.compile(
    r'\[(?P<time>\d{4}-\d\d-\d\dT[\d:.]{8,18}Z)\] "(?P<method>[A-Z]{3,10}) (?P<path>\S{1,8000})[^"]{0,20}" '
    r"(?P<status>\d{1,3}) (?P<rest>.*)"
)
_TOKEN = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>\S+)')
_HAPROXY = re.compile(
    r"[0-9A-Fa-f.:]{3,45}:\d{1,5} \[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:[\d:.]{8,18})\] \S{1,255} \S{1,255}/\S{1,255} "
    r"(?P<times>-?\d{1,12}(?:/\+?-?\d{1,12}){4}) (?P<status>-?\d{1,3}) \+?\d{1,18} \S{1,255} \S{1,255} \S{4} [\d/+]{3,60} "
    r'[\d/]{3,30} (?P<captured>(?:\{[^}]{0,2000}\} ){0,2})"(?P<method>[A-Z]{3,10}) (?P<path>\S{1,8000})'
)
_UUID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])"
)
_ALB = frozenset({"http", "https", "h2", "grpcs", "ws", "wss"})
ALB_TIMES = ("request_processing_time", "target_processing_time", "response_processing_time")


def text_access(line: str) -> Access | None:
    """What a line of a known form says; None where it has none, or no durations."""
    if match := _CLF.fullmatch(line):
        return _nginx(match) or _traefik(match)
    if match := _ENVOY.fullmatch(line):
        return _envoy(match)
    if line.partition(" ")[0] in _ALB:
        return _alb([m["plain"] if m["quoted"] is None else m["quoted"] for m in _TOKEN.finditer(line)])
    match = _HAPROXY.search(line)
    return _haproxy(match) if match else None


def clf_time(text: str) -> tuple[int, int, bool]:
    """(int ns, resolution, whether the zone is known) of ``10/Oct/2000:13:55:36 -0700``; (UNKNOWN, 0, False) for no time."""
    match = _CLF_TIME.fullmatch(text)
    if match is None or match["month"] not in _MONTHS:
        return UNKNOWN, 0, False
    date = f"{match['year']}-{_MONTHS.index(match['month']) + 1:02}-{match['day']}"
    return stamp(f"{date} {match['clock']}{(match['zone'] or '').strip()}", 0)


def path_of(target: str) -> str:
    """The path of a request's target, without scheme, host, query and fragment."""
    path = re.split(r"[?#;]", target, maxsplit=1)[0]
    if "://" in path:
        path = "/" + path.partition("://")[2].partition("/")[2]
    return text_of(path, 128)


def id_of(value: object) -> str:
    """An id that went with a request, empty where it is none."""
    text = text_of(value, 128)
    return text if re.fullmatch(_ID, text) and text != "-" else ""


def summed(value: str | None) -> int | None:
    """int ns of a duration in seconds, of several upstreams tried one after the other together; None for none."""
    parts = [scaled(part, NS_PER_S) for part in re.split(r"[,:\s]+", value or "") if part not in ("", "-")]
    known = [part for part in parts if part is not None and 0 <= part < LONGEST]
    return sum(known) if known and len(known) == len(parts) else None


def sent_on(took: int, response: str | None, connect: str | None, answer: int | None) -> int | None:
    """ns from nginx's receipt of a request to the last upstream's. It ``took`` that long in all, its ``answer`` has that many
    bytes; ``response`` and ``connect``: upstream_response_time and upstream_connect_time. None where that cannot be told.
    """
    last = _last(response)
    if last is None or answer is None or answer > SMALL or took - last < -ROUNDED:
        return None
    return max(took - last, 0) + (_last(connect) or 0)


def _last(value: str | None) -> int | None:
    """int ns: the time at the last of several upstreams, None where it was not reached."""
    return summed(re.split(r"[,:]", value)[-1]) if value else None


def _nginx(match: re.Match[str]) -> Access | None:
    rest = match["rest"]
    form = _INGRESS.fullmatch(rest) or _POSITIONS.fullmatch(rest)
    said = (
        form.groupdict()
        if form
        else {_KEYS.get(m["key"], m["key"]): m["quoted"] or m["plain"] for m in _PAIR.finditer(rest)}
    )
    took = summed(said.get("request_time"))
    time, resolution, zoned = clf_time(match["time"])
    if took is None or time == UNKNOWN:
        return None
    request = next((found for key in NGINX_IDS if (found := id_of(said.get(key)))), "")
    durations = {f"nginx.{key}": ns for key in NGINX_TIMES if (ns := summed(said.get(key))) is not None}
    about = (match["method"], path_of(match["path"]), int(match["status"]))
    answer = int(match["bytes"]) if match["bytes"].isdecimal() else None
    before = sent_on(took, said.get("upstream_response_time"), said.get("upstream_connect_time"), answer)
    return Access("nginx", time - took, time, resolution, zoned, *about, durations, before, request)


def _traefik(match: re.Match[str]) -> Access | None:
    form = _TRAEFIK.fullmatch(match["rest"])
    time, resolution, zoned = clf_time(match["time"])
    if form is None or time == UNKNOWN:
        return None
    took = int(form["ms"]) * NS_PER_MS
    about = (match["method"], path_of(match["path"]), int(match["status"]))
    return Access("traefik", time - took, time, resolution, zoned, *about, {"traefik.duration": took})


def _envoy(match: re.Match[str]) -> Access | None:
    """Flags, in Istio's form details, then bytes in and out, duration, the upstream's time, and quoted addresses and ids."""
    tokens = [m["plain"] if m["quoted"] is None else m["quoted"] for m in _TOKEN.finditer(match["rest"])][:24]
    time, resolution, zoned = stamp(match["time"], 0)
    at = next((i for i in range(1, len(tokens) - 6) if all(t.isdecimal() for t in tokens[i : i + 3])), None)
    if at is None or time == UNKNOWN:
        return None
    took = scaled(tokens[at + 2], NS_PER_MS)
    if took is None or took >= LONGEST:
        return None
    durations = {"envoy.duration": took}
    if (served := scaled(tokens[at + 3], NS_PER_MS)) is not None and 0 <= served < LONGEST:
        durations["envoy.upstream_service_time"] = served
    about = (match["method"], path_of(match["path"]), int(match["status"]))
    return Access("envoy", time, time + took, resolution, zoned, *about, durations, request=id_of(tokens[at + 6]))


def _haproxy(match: re.Match[str]) -> Access | None:
    time, resolution, zoned = clf_time(match["time"])
    parts = [int(part.lstrip("+")) * NS_PER_MS for part in match["times"].split("/")]
    total = parts[4]
    if time == UNKNOWN or total < 0 or max(parts) >= LONGEST:
        return None
    named = zip(("TR", "Tw", "Tc", "Tr", "Ta"), parts, strict=True)
    durations = {f"haproxy.{name}": ns for name, ns in named if ns >= 0}
    before = sum(parts[:3]) if min(parts[:3]) >= 0 else None
    found = _UUID.search(match["captured"])
    about = (match["method"], path_of(match["path"]), int(match["status"]))
    request = found[0] if found else ""
    return Access("haproxy", time, time + total, resolution, zoned, *about, durations, before, request)


def _alb(tokens: list[str]) -> Access | None:
    """AWS application load balancer: its fields by place. A time of -1 is one that did not happen."""
    if len(tokens) < 22:
        return None
    (end, resolution, zoned), (start, finer, _) = stamp(tokens[1], 0), stamp(tokens[21], 0)
    request = tokens[12].split(" ")
    if UNKNOWN in (start, end) or len(request) != 3 or not tokens[8].isdecimal():
        return None
    parts = [scaled(text, NS_PER_S) for text in tokens[5:8]]
    durations = {
        f"alb.{name}": ns for name, ns in zip(ALB_TIMES, parts, strict=True) if ns is not None and 0 <= ns < LONGEST
    }
    before = durations.get("alb.request_processing_time")
    trace = id_of(tokens[17].removeprefix("Root=").partition(";")[0])
    about = (request[0][:10], path_of(request[1]), int(tokens[8][:3]))
    return Access("alb", start, end, max(resolution, finer), zoned, *about, durations, before, trace=trace)
