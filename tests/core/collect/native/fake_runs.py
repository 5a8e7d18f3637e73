"""Programs that run under the library on a libcupti of our own. Records need cupti-python's types."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from teller_core.ingest.found import Found, Place
from teller_core.ingest.recorder import cupti_records
from teller_core.ingest.recorder.cupti_file import read_blocks

HERE = Path(__file__).parent
BEGIN = """
import ctypes, os, sys, time
from pathlib import Path
from tests.core.collect.native.records import feed, record, size, sizes, step_of_two_launches
from teller_core.collect.cupti.windows import close_window, open_window
cap = Path(os.environ["TELLER_CAPTURE_DIR"])
fake = ctypes.CDLL(os.environ["FAKE"])
ours = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
fake.fake_step.restype = ctypes.c_uint64
sizes(fake)
def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)
def open_now(seconds=600, **how):
    open_window(cap, seconds, **how)
    until(ours.teller_recording)
def close_now(before=0):
    close_window(cap)
    until(lambda: ours.teller_windows_ended() > before)
"""


Run = Callable[..., "subprocess.CompletedProcess[str]"]


def found_in(folder: Path, number: int = 1) -> Found:
    """What the reader finds in the file of a window."""
    (path,) = folder.glob(f"cap/cupti-*-{number}.bin")
    found = cupti_records.read(path, Place())
    for trace in found.traces:
        trace.check()
    return found


def footer(folder: Path, number: int = 1) -> dict[str, Any]:
    """The footer of the file of a window."""
    (path,) = folder.glob(f"cap/cupti-*-{number}.bin")
    said = read_blocks(path).footer
    assert said is not None
    return said
