"""From the words of PyTorch's profiler to layers and lanes."""

import numpy as np

from teller_core.data.long_columns import PIECE, kept
from teller_core.data.table import Int32, UInt8
from teller_core.data.trace import Layer
from teller_core.ingest.lanes import Place

CATEGORIES: dict[str, tuple[Layer, Place]] = {
    "user_annotation": (Layer.ENGINE, Place.THREAD),
    "trace": (Layer.ENGINE, Place.THREAD),
    "python_function": (Layer.PYTHON, Place.THREAD),
    "cpu_op": (Layer.OPERATOR, Place.THREAD),
    "operator": (Layer.OPERATOR, Place.THREAD),
    "cuda_runtime": (Layer.RUNTIME, Place.THREAD),
    "cuda_driver": (Layer.RUNTIME, Place.THREAD),
    "runtime": (Layer.RUNTIME, Place.THREAD),
    "overhead": (Layer.RUNTIME, Place.THREAD),
    "mtia_runtime": (Layer.RUNTIME, Place.THREAD),
    "glow_runtime": (Layer.RUNTIME, Place.THREAD),
    "xpu_runtime": (Layer.RUNTIME, Place.THREAD),
    "xpu_driver": (Layer.RUNTIME, Place.THREAD),
    "privateuse1_runtime": (Layer.RUNTIME, Place.THREAD),
    "privateuse1_driver": (Layer.RUNTIME, Place.THREAD),
    "kernel": (Layer.KERNEL, Place.STREAM),
    "concurrent_kernel": (Layer.KERNEL, Place.STREAM),
    "gpu_memcpy": (Layer.KERNEL, Place.STREAM),
    "gpu_memset": (Layer.KERNEL, Place.STREAM),
    "memcpy": (Layer.KERNEL, Place.STREAM),
    "memset": (Layer.KERNEL, Place.STREAM),
    "mtia_ccp_events": (Layer.KERNEL, Place.STREAM),
    "hpu_op": (Layer.KERNEL, Place.STREAM),
    "collective_comm": (Layer.COMMUNICATION, Place.STREAM),
    "gpu_user_annotation": (Layer.ENGINE, Place.ANNOTATIONS),
    "cuda_profiler_range": (Layer.ENGINE, Place.ANNOTATIONS),
    "cuda_sync": (Layer.RUNTIME, Place.SYNCS),
    "cuda_event": (Layer.RUNTIME, Place.SYNCS),
}
"""Layer and place by category in lower case (profilers before 2022 wrote capitals): libkineto's activity types."""

OTHERWISE = (Layer.OPERATOR, Place.THREAD)

_SPEAKS = (Layer.OPERATOR, Layer.KERNEL)
_BEGINS = (Layer.ENGINE, Layer.OPERATOR, Layer.KERNEL)


def layers(of_lane: list[tuple[Layer, Place]], lane: Int32, flag: UInt8, name: Int32) -> UInt8:
    """uint8 :class:`Layer` of each row, :func:`kept`: that of its category, COMMUNICATION where the name says so.

    Python frames and runtime calls stay what they are, whatever they are named after; so do annotations on a device, or
    one collective would stand on a stream's work twice.
    """
    table = np.empty((3, len(of_lane)), dtype=np.uint8)
    for i, (layer, place) in enumerate(of_lane):
        device_note = place is Place.ANNOTATIONS
        table[0, i] = layer
        table[1, i] = Layer.COMMUNICATION if layer in _SPEAKS else layer
        table[2, i] = Layer.COMMUNICATION if layer in _BEGINS and not device_note else layer
    found, begin = np.empty(len(lane), dtype=np.uint8), flag.astype(np.int32) * np.int32(len(of_lane))
    for low in range(0, len(lane), PIECE):
        part = slice(low, low + PIECE)
        np.take(table, begin[name[part]] + lane[part], out=found[part], mode="wrap")
    return kept(found)
