"""How far this machine's clock may be from true time, as the kernel itself says, and which machine it is.

Two machines that both bound their clocks this way bound how far they are from one another. Where nothing disciplines the clock
the kernel says so, and then nothing is claimed.
"""

import ctypes
from contextlib import suppress
from pathlib import Path
from typing import Any

TIME_ERROR = 5
STA_UNSYNC = 0x0040
"""``man 2 adjtimex``: the clock is not disciplined."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class _Timex(ctypes.Structure):
    """The head of ``struct timex`` and room for all of it, of 64-bit Linux."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 40),
    )


def machine_clock() -> dict[str, Any]:
    """``machine``: an id of this boot of this kernel, empty where there is none; containers of one machine share it and its
    clock. ``max_error_us``: the kernel's bound of the clock's error, None where nothing disciplines it or nobody tells.
    """
    machine = ""
    with suppress(OSError):
        machine = BOOT_ID.read_text().strip()
    return {"machine": machine, "max_error_us": _max_error_us()}


def _max_error_us() -> int | None:
    asked = _Timex()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(asked))
    except (OSError, AttributeError):  # no such call here
        return None
    if state < 0 or state == TIME_ERROR or asked.status & STA_UNSYNC:
        return None
    return int(asked.maxerror)
