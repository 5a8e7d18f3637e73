"""Ids of requests as people have them: out of a header, a log or a dashboard, in whichever spelling."""

import re

_EXEMPLAR = re.compile(r"trace_?id\"?\s*[=:]\s*\"(?P<id>[^\"]+)\"", re.IGNORECASE)
"""OpenMetrics' example of an event, ``# {trace_id="..."} 0.67``, and what dashboards make of it."""
_HEADER = re.compile(r"(?:[0-9a-f]{2}-)?(?P<id>[0-9a-f]{32})-[0-9a-f]{16}(?:-[0-9a-f]{1,2})?", re.IGNORECASE)
"""``traceparent`` of W3C Trace Context, VERSION-TRACE-SPAN-FLAGS, and Zipkin's ``b3``, TRACE-SPAN-SAMPLED."""
_WHOLE = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)
_NAMED = re.compile(r"^(?:traceparent|b3|x-request-id)\s*[:=]\s*", re.IGNORECASE)


def id_forms(called: str) -> list[str]:
    """How the request that somebody calls ``called`` may be called where it was recorded: an id of 128 bits with and without
    dashes, the trace's out of a header or an exemplar. Upper and lower case are for the reader to take as one.
    """
    called = _NAMED.sub("", called.strip())
    if exemplar := _EXEMPLAR.search(called):
        called = exemplar["id"].strip()
    if header := _HEADER.fullmatch(called):
        called = header["id"]
    bare = called.replace("-", "")
    if not _WHOLE.fullmatch(bare):
        return [called]
    dashed = "-".join((bare[:8], bare[8:12], bare[12:16], bare[16:20], bare[20:]))
    return list(dict.fromkeys((called, bare, dashed)))
