"""Processes by the names that they give themselves in logs."""

import re
from functools import lru_cache

from teller_core.data.records import Process
from teller_core.ingest.found import Found
from teller_core.ingest.jsonl import text_of

_PART = re.compile(r"(?<![A-Z])(DP|PP|TP|EP)(\d{1,6})")
_WORKER = re.compile(r"\w*Worker\w*?[_-]?(?P<rank>\d{1,6})?$")
_RANK = re.compile(r"(?i)rank=?(?P<rank>\d{1,6})\]?$")


def process_of(host: str, pid: int, tag: str) -> Process:
    """A process by the name it gives itself: ``EngineCore_DP0``, ``Worker_TP1_EP1``, ``DP1 TP0``, ``rank3``."""
    tag = text_of(tag, 96)
    if re.match(r"(?i)apiserver", tag):
        return Process(host, pid, "frontend")
    if tag.startswith("EngineCore"):
        return Process(host, pid, "engine")
    parts = {name: int(number) for name, number in _PART.findall(tag)}
    if "Worker" in tag:
        return Process(host, pid, "worker", _rank(parts, tag))
    if found := _RANK.search(tag):
        return Process(host, pid, "worker", int(found["rank"]))
    if tag.startswith(("ServeReplica", "ProxyActor", "HTTPProxyActor")):
        return Process(host, pid, "frontend")
    return Process(host, pid, "engine" if "TP" in parts else "unknown", parts.get("TP"))


def _rank(parts: dict[str, int], tag: str) -> int | None:
    """The rank within one replica: several stages or replicas share the numbers of a group."""
    if "TP" in parts:
        return parts["TP"] if not parts.get("PP") and not parts.get("DP") else None
    if parts:
        return parts.get("PP", parts.get("DP"))
    if found := _RANK.search(tag):
        return int(found["rank"])
    worker = _WORKER.match(tag)
    return int(worker["rank"]) if worker and worker["rank"] else None


@lru_cache(maxsize=4096)
def engine_of(tag: str) -> int:
    """The data-parallel engine that a process's name tells, 0 where it tells none."""
    match = re.search(r"(?:DP|EngineCore_)(\d{1,6})", tag)
    return int(match[1]) if match else 0


def settle_hosts(found: Found, given: str) -> dict[str, str]:
    """Take off the host from the processes of a log of a single one: other files of the service do not name it.

    Returns what each host became.
    """
    hosts = {process.host for process in found.lines.processes() if process.host}
    if given or len(hosts) != 1:
        return {}
    (only,) = hosts
    bare: dict[Process, Process] = {}

    def of(process: Process) -> Process:
        if process not in bare:
            bare[process] = process._replace(host="")
        return bare[process]

    found.lines.rewrite(of)
    found.iterations = [fact._replace(process=of(fact.process)) for fact in found.iterations]
    found.requests = [fact._replace(process=of(fact.process)) for fact in found.requests]
    found.pauses = [pause._replace(process=of(pause.process)) for pause in found.pauses]
    return {only: ""}
