"""Usual levels that were learned elsewhere, where they are known: the capture's own may all be those of a service in trouble.

- ``turnaround``: ns between two steps
- ``counter NAME``: growth a second of a counter of the processes on the path, when all is calm
- ``thread ROLE WHAT``: the same of the threads that run steps or decide on them: waited, asleep, ran, queue
- ``front WAY``: ns that a zone outside the engine takes of most requests
- ``prompt``: tokens of the median prompt, at which ``front in`` holds
- ``cached``, ``cached share``: tokens of the median prompt that the prefix cache holds, and the share of it
- ``slow``: how many times what its work or its load predicts 9 in 10 requests take at most of which all is well, from end to end;
  ``slow METRIC``: the same by another metric
"""

from teller_core.data.assessment import Assessment

WANDERS = 1.5
"""Times as much, or as little, is the same level: from one hour to the next a service in health differs by as much."""
TURNAROUND = "turnaround"
PROMPT = "prompt"
CACHED, CACHED_SHARE = "cached", "cached share"


def level(assessment: Assessment, name: str, own: float) -> float:
    """What is usual: as learned elsewhere, else the capture's ``own``."""
    return own if assessment.learned is None else float(assessment.learned.levels.get(name, own))


def near(assessment: Assessment, name: str, own: float) -> float:
    """What is usual by the capture's ``own``, no further than WANDERS from what was learned elsewhere."""
    learned = level(assessment, name, own)
    low, high = sorted((learned / WANDERS, learned * WANDERS))  # between two clocks that disagree time runs backwards
    return min(max(own, low), high)


def slow_level(metric: str) -> str:
    """How the level is called from which on a request is slow by a metric. A promise is about the time from end to end."""
    return "slow" if metric in ("e2e", "slo") else f"slow {metric}"


def counter_level(name: str) -> str:
    """How the level of a counter is called."""
    return f"counter {name}"


def thread_level(role: str, what: str) -> str:
    """How a level of a thread is called."""
    return f"thread {role} {what}"


def front_level(way: str) -> str:
    """How that of a zone is called."""
    return f"front {way}"
