"""What the names in an Nsight export say: the text that is kept, its layer and its category."""

import re
from collections.abc import Callable
from typing import NamedTuple

from teller_core.data.trace import Layer
from teller_core.ingest.collective_names import COLLECTIVE

BETWEEN = "\x1f"
"""Stands in a text where ids of emit_nvtx were cut out."""
_VERSION = re.compile(r"(?:_pt(?:sz|ds))?(?:_v\d{4,5})?$")
"""``cudaLaunchKernel_ptsz_v7000``: the call as the library exports it, with the CUDA version that brought it."""
_OPERATOR = re.compile(r"[A-Za-z_]\w*::\w")
_MODULE = re.compile(r"\{'Module': '([^']*)'")
"""vLLM's layer-wise ranges (``--enable-layerwise-nvtx-tracing``) are Python dicts written out."""
_MPI = re.compile(
    r"MPI_(?:I?(?:Send|Ssend|Bsend|Rsend|Recv|Mrecv|Bcast|Reduce|Allreduce|Alltoall|Allgather|Gather|Scatter|Exscan|Scan"
    r"|Barrier|Neighbor)|Sendrecv|Wait|Probe|Start|Test)"
)
_COPY = (
    "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP", "UVM HtoD", "UVM DtoH",
    "UVM DtoD",
)  # fmt: skip
_MEMORY = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device", "Managed", "Unknown")
_SYNC = ("Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
"""By CUPTI's numbers: CUpti_ActivityMemcpyKind, Nsight's memory kinds, CUpti_ActivitySynchronizationType."""


class Meaning(NamedTuple):
    """What is kept of one name. ``said``: what else stood in it, alike at many calls."""

    text: str
    layer: Layer
    category: str
    said: str = ""


Means = Callable[[str], Meaning]


def call(name: str) -> Meaning:
    """A call of the CUDA runtime or driver."""
    text = _VERSION.sub("", name)
    return Meaning(text, Layer.RUNTIME, "cuda_runtime" if text.startswith("cuda") else "cuda_driver")


def kernel(name: str) -> Meaning:
    """A kernel on a device."""
    return Meaning(name, Layer.COMMUNICATION if COLLECTIVE.match(name) else Layer.KERNEL, "kernel")


def plain(layer: Layer, category: str) -> Means:
    """Names that are kept as they are."""
    return lambda name: Meaning(name, layer, category)


def nvtx(name: str) -> Meaning:
    """An NVTX range: an operator of PyTorch's emit_nvtx, a module of the model, a collective, or somebody's own range."""
    head, *rest = name.split(BETWEEN)
    said = "".join(rest).partition(", input_op_ids")[0].removeprefix(", ")
    found = COLLECTIVE.match(head)
    if rest or _OPERATOR.match(head):
        return Meaning(head, Layer.COMMUNICATION if found else Layer.OPERATOR, "", said)
    if module := _MODULE.match(head):
        return Meaning(f"nn.Module: {module[1]}", Layer.PYTHON, "", head[module.end() :].strip(", }"))
    carries = (found is not None and found.group(1)) or _MPI.match(head)
    return Meaning(head, Layer.COMMUNICATION if carries else Layer.ENGINE, "")


def copied(kind: int, source: int, target: int) -> Meaning:
    """A copy, called as PyTorch's profiler calls it."""
    between = f" ({_word(_MEMORY, source)} -> {_word(_MEMORY, target)})"
    return Meaning(f"Memcpy {_word(_COPY, kind)}{between}", Layer.KERNEL, "gpu_memcpy")


def filled(kind: int) -> Meaning:
    """Memory set to a value."""
    return Meaning(f"Memset ({_word(_MEMORY, kind)})", Layer.KERNEL, "gpu_memset")


def waited(kind: int) -> Meaning:
    """A synchronization."""
    return Meaning(_word(_SYNC, kind), Layer.RUNTIME, "cuda_sync")


def graph(number: int) -> Meaning:
    """A CUDA graph that was recorded as a whole, without its kernels."""
    return Meaning(f"CUDA graph {number}" if number >= 0 else "CUDA graph", Layer.KERNEL, "cuda_graph")


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else "Unknown"
