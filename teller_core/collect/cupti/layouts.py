"""Which fields of CUPTI's records to keep, and where they are: a text for the library in C, from cupti-python's classes.

A record grows at its end from one CUPTI to the next (ActivityKernel9 of CUDA 12.6 to ActivityKernel13 of 13.4), so that
fields of the part that all have in common are read alike from every version; that they are is checked when the text is made.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from teller_core.errors import InputError, MissingExtra

VERSIONS = ((24, 29), (130_000, 139_999))
"""What ``cuptiGetVersion`` says: 24 in CUDA 12.6, 26 in 12.8, 28 in 12.9 and 130000 in 13.0 (read from those libraries).

Before 12.6 CUPTI that starts late breaks graphs, as torch's profiler notes.
"""
_WORK = ("start", "end", "device_id", "context_id", "stream_id", "correlation_id")
_SIZE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_GRAPH = ("graph_node_id", "graph_id")
_CALL = ("cbid", "start", "end", "process_id", "thread_id", "correlation_id", "return_value")


class Wanted(NamedTuple):
    """A kind of record: its number, the stem of its classes' dtypes, the fields to keep."""

    number: int
    name: str
    stem: str
    fields: tuple[str, ...]


KINDS = (
    Wanted(1, "memcpy", "memcpy", (*_WORK, "bytes", "copy_kind", "src_kind", "dst_kind", *_GRAPH)),
    Wanted(2, "memset", "memset", (*_WORK, "bytes", "memory_kind", *_GRAPH)),
    Wanted(4, "driver", "api", _CALL),
    Wanted(5, "runtime", "api", _CALL),
    Wanted(10, "kernel", "kernel", (*_WORK, "name", *_SIZE, *_GRAPH)),
    Wanted(17, "overhead", "overhead", ("start", "end", "overhead_kind", "object_kind", "object_id")),
    Wanted(
        38, "synchronization", "synchronization", ("start", "end", "type", "context_id", "stream_id", "correlation_id")
    ),
    Wanted(39, "external", "external_correlation", ("external_kind", "external_id", "correlation_id")),
    Wanted(51, "graph", "graph_trace", (*_WORK, "graph_id")),
)
"""CONCURRENT_KERNEL is 10. KERNEL (3) is never asked for: it makes kernels run one after the other."""
DRIVER_CALLS = (
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuLaunchCooperativeKernel",
    "cuGraphLaunch",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyAsync",
    "cuMemsetD8Async",
    "cuMemsetD32Async",
)
"""Calls of the driver that start work on a device (and their per-thread twins). The others are too many to keep."""
UNWANTED_CALLS = (
    "cudaGetDevice",
    "cudaSetDevice",
    "cudaGetDeviceCount",
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaDeviceGetAttribute",
    "cudaFuncGetAttributes",
    "cudaFuncSetAttribute",
    "cudaStreamIsCapturing",
    "cudaStreamGetCaptureInfo",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
)
"""Calls of the runtime that only ask, several for each kernel, and never wait for a device."""


def layout_text() -> str:
    """The text that TELLER_INJECT_LAYOUT names (its grammar: ``read_layout`` in native/teller_layout.c).

    Errors: MissingExtra without cupti-python; InputError with one whose records do not have the fields in one place.
    """
    cupti: Any = _cupti()
    runtime, driver = _names(cupti.RuntimeApiTraceCbid), _names(cupti.DriverApiTraceCbid)
    chosen = {number: name for number, name in driver.items() if name.removesuffix("_ptsz") in DRIVER_CALLS}
    lines = ["teller-layout 1", *(f"versions {low} {high}" for low, high in VERSIONS)]
    rows: dict[str, Any] = {}
    for wanted in KINDS:
        fields = _common(cupti, wanted)
        texts = {name for name in fields if name == "name"}
        words = (f"{'*' if name in texts else ''}{offset}:{kind.itemsize}" for name, (kind, offset) in fields.items())
        lines.append(f"kind {wanted.number} {' '.join(words)}")
        rows[str(wanted.number)] = {
            "name": wanted.name,
            "fields": [[name, "text" if name in texts else kind.str] for name, (kind, _) in fields.items()],
        }
    lines += [f"keep 4 {number}" for number in sorted(chosen)]
    unwanted = (number for number, name in runtime.items() if re.sub(r"(_ptsz)?$|_v[23]$", "", name) in UNWANTED_CALLS)
    lines += [f"drop 5 {number}" for number in sorted(unwanted)]
    lines += [f"launch {kind} {number}" for kind, calls in ((4, chosen), (5, runtime)) for number in _launches(calls)]
    about = {"kinds": rows, "runtime": runtime, "driver": chosen, "made_by": _made_by()}
    return "\n".join([*lines, f"json {json.dumps(about, separators=(',', ':'))}"]) + "\n"


def _launches(calls: Mapping[int, str]) -> list[int]:
    """The numbers of the calls that start kernels."""
    return sorted(number for number, name in calls.items() if re.match(r"cu(da)?Launch(Cooperative)?Kernel", name))


def _cupti() -> Any:
    try:
        from cupti import cupti  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtra(
            "CUPTI's records", "cupti-python is not installed here", "Install teller-mcp[capture] for windows on GPUs"
        ) from None
    return cupti


def _made_by() -> str:
    from importlib.metadata import version

    return f"cupti-python {version('cupti-python')}"


def _common(cupti: Any, wanted: Wanted) -> dict[str, tuple[np.dtype[Any], int]]:
    """Type and offset of each wanted field, the same in every class of the kind that this cupti-python knows."""
    form = re.compile(rf"activity_{wanted.stem}\d*_dtype")
    classes: list[Any] = [getattr(cupti, name) for name in dir(cupti) if form.fullmatch(name)]
    if not classes:
        raise InputError(
            "CUPTI's records", f"this cupti-python has no {wanted.name}", "Install cupti-python 13.0 or newer"
        )
    found: dict[str, tuple[np.dtype[Any], int]] = {}
    for field in wanted.fields:
        places = {(_plain(of.fields[field][0]), int(of.fields[field][1])) for of in classes if field in of.fields}
        if len(places) != 1:
            problem = f"{wanted.name}'s {field} is not in one place in all of its classes"
            raise InputError("CUPTI's records", problem, "Install cupti-python 13.4")
        ((kind, offset),) = places
        found[field] = (np.dtype(kind), offset)
    return found


def _plain(kind: np.dtype[Any]) -> str:
    """A type that needs no nested fields: a union stays bytes."""
    return kind.str if kind.fields is None else f"|V{kind.itemsize}"


def _names(calls: Any) -> dict[int, str]:
    """Names of API calls by number, without the version that CUDA adds to some."""
    return {
        int(call): re.sub(r"_v\d{4,}$", "", call.name)
        for call in calls
        if call.name not in ("INVALID", "SIZE", "FORCE_INT")
    }
