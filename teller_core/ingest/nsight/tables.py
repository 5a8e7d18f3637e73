"""What the tables of an Nsight export hold, by their names. Unknown ones are told by their columns."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from teller_core.data.trace import Layer
from teller_core.ingest.nsight.names import Means, call, nvtx, plain

NVTX, STRINGS = "NVTX_EVENTS", "StringIds"
MARKS = (b"CUPTI_ACTIVITY_KIND_", b"TARGET_INFO_SESSION_START_TIME", b"NVTX_EVENTS", b"TARGET_INFO_SYSTEM_ENV")
"""Names that stand in every export's list of tables."""


class Host(NamedTuple):
    """A table of ranges on threads. ``order``: which comes first where two ranges are equal: the one that contains."""

    order: int
    means: Means


HOST: Mapping[str, Host] = {
    NVTX: Host(0, nvtx),
    "MPI_P2P_EVENTS": Host(1, plain(Layer.COMMUNICATION, "mpi")),
    "MPI_START_WAIT_EVENTS": Host(1, plain(Layer.COMMUNICATION, "mpi")),
    "MPI_COLLECTIVES_EVENTS": Host(1, plain(Layer.COMMUNICATION, "mpi")),
    "MPI_OTHER_EVENTS": Host(1, plain(Layer.RUNTIME, "mpi")),
    "UCP_EVENTS": Host(2, plain(Layer.COMMUNICATION, "ucx")),
    "UCP_SUBMIT_EVENTS": Host(2, plain(Layer.COMMUNICATION, "ucx")),
    "UCP_PROGRESS_EVENTS": Host(2, plain(Layer.COMMUNICATION, "ucx")),
    "CUDNN_EVENTS": Host(3, plain(Layer.OPERATOR, "cudnn")),
    "CUBLAS_EVENTS": Host(3, plain(Layer.OPERATOR, "cublas")),
    "CUPTI_ACTIVITY_KIND_RUNTIME": Host(5, call),
    "CUPTI_ACTIVITY_KIND_DRIVER": Host(5, call),
    "CUDA_GRAPH_EVENTS": Host(6, plain(Layer.RUNTIME, "cuda_graph_node")),
    "CUDA_GRAPH_NODE_EVENTS": Host(6, plain(Layer.RUNTIME, "cuda_graph_node")),
    "OSRT_API": Host(7, plain(Layer.RUNTIME, "os_runtime")),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": Host(8, plain(Layer.RUNTIME, "overhead")),
    "PROFILER_OVERHEAD": Host(9, plain(Layer.RUNTIME, "overhead")),
}
_PREFIXED = (
    ("CUPTI_ACTIVITY_KIND_OPENACC_", "openacc"),
    ("OPENMP_EVENT_KIND_", "openmp"),
)
DEVICE = frozenset(
    {
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        "CUPTI_ACTIVITY_KIND_MEMSET",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    }
)
_OTHER = (
    (re.compile(r"ENUM_|UnwindMethodType"), "enum"),
    (re.compile(r"StringIds$"), "string"),
    (re.compile(r".*CALLCHAINS?$"), "callchain"),
    (re.compile(r"SCHED_EVENTS$"), "scheduling"),
    (re.compile(r"COMPOSITE_EVENTS$"), "sample"),
    (re.compile(r"PERF_EVENT|CPU_PERF"), "sample"),
    (re.compile(r"GPU_METRICS|SOC_METRICS|NET_|NIC_|IB_"), "metric"),
    (re.compile(r"GENERIC_EVENT"), "generic_event"),
    (re.compile(r"GPU_CONTEXT_SWITCH|FECS_"), "context_switch"),
    (re.compile(r"CUPTI_ACTIVITY_KIND_CUDA_EVENT$"), "cuda_event"),
    (
        re.compile(r"CUDA_(?:GPU_)?(?:MEM|UM_)|CUPTI_ACTIVITY_KIND_(?:MEMORY|UNIFIED)|GPU_MEMORY|DEMOTED|TOTAL_BYTES"),
        "memory",
    ),
    (
        re.compile(
            r"TARGET_INFO|META_DATA|EXPORT_META|ANALYSIS|PROCESSES$|ThreadNames$|ProcessStreams$|NVTX_PAYLOAD|sqlite_"
        ),
        "metadata",
    ),
)
NAMES = ("nameId", "textId", "name", "text")
"""Columns that hold a range's name, or the id of it, the best first."""


def host(name: str, columns: Mapping[str, int]) -> Host | None:
    """What a table of ranges on threads means, None for any other table."""
    if name in HOST:
        return HOST[name] if {"start", "globalTid"} <= columns.keys() else None
    if not {"start", "end", "globalTid"} <= columns.keys() or not any(column in columns for column in NAMES):
        return None
    category = next((word for prefix, word in _PREFIXED if name.startswith(prefix)), name.lower()[:40])
    return Host(4, plain(Layer.RUNTIME, category))


def other(name: str) -> str:
    """The kind of the rows of a table that holds no ranges."""
    return next((kind for pattern, kind in _OTHER if pattern.match(name)), "unknown_table")
