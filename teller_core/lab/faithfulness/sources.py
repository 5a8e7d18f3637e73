"""What each piece of evidence was measured from, by its name: tables of a capture, and which of their rows or columns."""

from collections.abc import Mapping
from typing import NamedTuple


class Source(NamedTuple):
    """``table``: pauses, samples and readings, of these ``names``; requests, participation and cells (of steps), of this column;
    ``steps``: when the stretched ones ran; ``profiles``: those that a finding holds its steps against; ``collectives`` of its
    steps; ``operator``: the spans of a finding's operator in its step.
    """

    table: str
    names: tuple[str, ...] = ()


_STEPS = (Source("steps"),)
_PROFILES = (Source("profiles"),)
_MET = (Source("collectives"),)
_GC = (Source("pauses", ("gc",)),)
_STILL = (Source("pauses", ("thread_lag", "loop_lag")),)
_OBSERVED = (Source("pauses", ("profiler_stop",)),)
_WAITED = (Source("samples", ("run_queue_wait_ns", "step_thread_run_queue_wait_ns", "cgroup_throttled_us")),)
_RAN = (Source("samples", ("run_ns", "step_thread_run_ns")),)
_QUEUE = tuple(Source("requests", (column,)) for column in ("queued", "scheduled", "queue_ns"))
_FRONT = tuple(Source("requests", (column,)) for column in ("received", "tokenized"))
_OUT = (Source("requests", ("finished",)),)
_EVICTED = (Source("cells", ("preempted",)), Source("requests", ("preemptions",)))
_AGAIN = (*_EVICTED, Source("participation", ("recomputed",)))
_STORAGE = (Source("samples", ("pressure_io_some_us",)),)
_WRITTEN = (Source("samples", ("write_bytes",)),)

SOURCES: Mapping[str, tuple[Source, ...]] = {
    "collections while it waited": _GC,
    "collections": _GC,
    "the longest collection": _GC,
    "time in which the threads of a process stood still": (*_STILL, *_RAN),
    "times a waiting thread woke late": _STILL,
    "the longest": _STILL,
    "of it, the event loop ran late": _STILL,
    "the event loop ran late between two of its tokens": _STILL,
    "the recorder's profiler was being started or stopped": _OBSERVED,
    "stops of the profiler": _OBSERVED,
    "overtime of the first steps of a profile": _STEPS,
    "steps stretched while threads waited for a processor": _WAITED,
    "the front end waited for a processor, or was held back by a quota": _WAITED,
    "run-queue wait beyond the calm level": _WAITED,
    "time some task waited for a processor, beyond the calm level": (Source("samples", ("pressure_cpu_some_us",)),),
    "throttled periods of its control group": (Source("samples", ("cgroup_throttled_periods", "cgroup_throttled_us")),),
    "steps and gaps stretched while storage was waited for": (*_STORAGE, *_WRITTEN),
    "time some task waited for storage, beyond the calm level": _STORAGE,
    "written by the service beyond the calm level": _WRITTEN,
    "processors used by other programs meanwhile": (Source("samples", ("machine_busy_ns",)),),
    "the thread that runs its steps, or decides on them, slept longer than usual": _RAN,
    "between its steps, longer than usual, while the engine ran": (*_RAN, *_STEPS),
    "steps stretched": _STEPS,
    "steps and gaps stretched": _STEPS,
    "steps and gaps in which it did": _STEPS,
    "such gaps": _STEPS,
    "such steps": _STEPS,
    "its steps took longer than their work asks for": _STEPS,
    "its steps took longer than their work asks for, while their thread ran": _STEPS,
    "what slow steps of little work take more than calm ones": _STEPS,
    "what slow steps of much work take more than calm ones": _STEPS,
    "times the work that the latter have": _STEPS,
    "before and in the engine's first steps": _STEPS,
    "steps that computed prompts of other requests": _STEPS,
    "prompt tokens of other requests in it": _STEPS,
    "profiled steps that were slow in this way": _PROFILES,
    "own time of the operator in such a profiled step": _PROFILES,
    "operators that read the weights in such a profiled step": _PROFILES,
    "time in collectives in such a profiled step, on all of its ranks": _PROFILES,
    "the longest time in such a profiled step that no operator covers": _PROFILES,
    "time in such a profiled step that no operator covers, in many pieces": _PROFILES,
    "operators that read the weights, beyond their calm time": _PROFILES,
    "they took so many times their calm time": _PROFILES,
    "other operators took so many times theirs": _PROFILES,
    "all its calls in the step": (Source("operator"),),
    "what its spans add to the steps": (Source("operator"),),
    "suspicious spans of this operator": (Source("operator"),),
    "collectives beyond their calm time in its steps": (*_MET, *_STEPS),
    "collectives beyond their median time in its steps": (*_MET, *_STEPS),
    "collectives beyond their calm or median time in its steps": (*_MET, *_STEPS),
    "one collective, on the rank that took least": _MET,
    "collectives in the step": _MET,
    "ranks that were slow alike": _MET,
    "each other rank waited for it": _MET,
    "each other rank waited for it, beyond what ranks usually wait for one another": _MET,
    "collectives in which they waited": _MET,
    "of all their waiting": _MET,
    "its process waited for a processor, or stood still, while steps took longer": (*_WAITED, *_STILL),
    "all other ranks together did": (*_WAITED, *_STILL),
    "time in the queue that nothing else explains": _QUEUE,
    "time in the queue while requests that ran were evicted": _QUEUE,
    "time in the queue, and in full steps, while requests that ran were evicted": (*_QUEUE, *_STEPS),
    "it waited, though the engine had it": _QUEUE,
    "later requests without a form that were taken first": _QUEUE,
    "requests that could not run yet, meanwhile": (Source("readings", ("deferred",)),),
    "beyond what its work predicts, in full steps while others waited": _STEPS,
    "beyond what its work predicts, while few prefixes were found": _STEPS,
    "requests running when it arrived": _QUEUE,
    "requests waiting when it arrived": _QUEUE,
    "requests waiting at once, by /metrics": (Source("readings", ("waiting",)),),
    "requests running at once, by /metrics": (Source("readings", ("running",)),),
    "highest KV cache use, by /metrics": (Source("readings", ("kv_usage",)),),
    "highest KV cache use in its steps": (Source("cells", ("kv_usage",)),),
    "highest KV cache use meanwhile": (Source("cells", ("kv_usage",)),),
    "evictions": _EVICTED,
    "evictions meanwhile": _EVICTED,
    "tokens computed again": _AGAIN,
    "time evicted and computing again": _AGAIN,
    "time evicted and computing again, and not admitted because of such": (*_AGAIN, *_QUEUE),
    "computing what its peers found in the cache": (Source("requests", ("cached_tokens",)),),
    "prompt tokens found in the cache": (Source("requests", ("cached_tokens",)),),
    "prompt tokens found in the cache meanwhile": (Source("readings", ("prefix_hits", "prefix_queries")),),
    "prompt tokens": (Source("requests", ("prompt_tokens",)),),
    "longer in the front end than most requests": _FRONT,
    "time in the front end before the engine can have had it": _FRONT,
    "of it, until its prompt was tokens": _FRONT,
    "the front end was at work on the input of others meanwhile": _RAN,
    "longer in the front end after its last step than most requests, while it ran": (*_OUT, *_RAN),
    "time from its last step to the end of its answer in the server": _OUT,
    "steps held up while the front end had more to do than usual": (*_RAN, *_STEPS),
    "longer on the way to the server than most requests": (Source("requests", ("client_start",)),),
    "time between its caller's start, or a gateway's receipt, and the server's": (
        Source("requests", ("client_start",)),
    ),
    "its caller had the end of the answer later than most, after the server was done": (
        Source("requests", ("client_end",)),
    ),
}
"""Of evidence that names no span, log line or step of its own. Whoever gives a rule new evidence says here where it is from."""
