"""Records as CUPTI lays them out in memory, made with cupti-python's own types."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from cupti import cupti  # pyright: ignore[reportMissingTypeStubs]

NAMES: list[ctypes.Array[ctypes.c_char]] = []  # what records point to stays where it is
DTYPES = {
    1: "activity_memcpy7_dtype",
    2: "activity_memset5_dtype",
    4: "activity_api_dtype",
    5: "activity_api_dtype",
    10: "activity_kernel13_dtype",
    17: "activity_overhead3_dtype",
    38: "activity_synchronization2_dtype",
    39: "activity_external_correlation_dtype",
    51: "activity_graph_trace2_dtype",
}


def record(kind: int, older: str = "", **fields: Any) -> bytes:
    """One record of ``kind``, of the newest type or of the one called ``older``."""
    dtype: np.dtype[Any] = getattr(cupti, older or DTYPES[kind])
    made = np.zeros((), dtype=dtype)
    made["kind"] = kind
    for name, value in fields.items():
        if isinstance(value, str):
            NAMES.append(ctypes.create_string_buffer(value.encode()))
        made[name] = ctypes.addressof(NAMES[-1]) if isinstance(value, str) else value
    return made.tobytes()


def size(kind: int, older: str = "") -> int:
    """Bytes of a record of ``kind``."""
    return int(getattr(cupti, older or DTYPES[kind]).itemsize)


def sizes(fake: ctypes.CDLL, older: Sequence[tuple[int, str]] = ()) -> None:
    """Tell the fake library how long records are."""
    for kind in DTYPES:
        fake.fake_size(ctypes.c_uint32(kind), ctypes.c_size_t(size(kind, dict(older).get(kind, ""))))


def feed(fake: ctypes.CDLL, records: Sequence[bytes]) -> None:
    """Hand records to the fake library."""
    fake.fake_feed(b"".join(records), len(records))


def step_of_two_launches(start: int, correlation: int, step: int, thread: int) -> list[bytes]:
    """Two calls, the kernels that they launched, and the step that they belong to."""
    found: list[bytes] = []
    for i in range(2):
        number, at = correlation + i, start + 10_000 * i
        found += [
            record(5, cbid=211, start=at, end=at + 3_000, process_id=77, thread_id=thread, correlation_id=number),
            record(39, external_kind=5, external_id=step, correlation_id=number),
            record(
                10, start=at + 4_000, end=at + 9_000, device_id=0, context_id=1, stream_id=7, correlation_id=number,
                grid_x=4, grid_y=1, grid_z=1, block_x=128, block_y=1, block_z=1,
                name="_ZN2at6native13reduce_kernelILi512EEEvT_" if i else "gemm_kernel",
            ),
        ]  # fmt: skip
    return found
