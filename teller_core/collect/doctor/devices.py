"""Whether NVTX ranges and GPU records can be had: our library, the driver, CUPTI, and who else is at it."""

import ctypes
from collections.abc import Iterator, Mapping
from pathlib import Path

from teller_core.collect.cupti.layouts import layout_text
from teller_core.collect.doctor.checks import no, partly, yes
from teller_core.collect.doctor.engines import untested
from teller_core.collect.doctor.served import Served
from teller_core.collect.native.build import find
from teller_core.data.report_recording import DoctorCheck
from teller_core.errors import TellerError

DRIVER = Path("/proc/driver/nvidia/version")
NODES = Path("/dev")
OLDEST_DRIVER = 560
"""The driver of CUDA 12.6, before which CUPTI lacks calls that are needed and breaks graphs when it starts late."""
GPU = "GPU records (CUPTI)"
OTHER_CLIENTS = ("NSYS_PROFILING_SESSION_ID", "NSYS_TARGET_TRACE_EVENTS", "CUDA_DEBUGGER_SOFTWARE_PREEMPTION")


def device_checks(here: Served, environment: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """NVTX, then CUPTI."""
    library = find()
    yield _nvtx(here, environment, "" if library.path else library.reason)
    yield _cupti(here, environment, "" if library.path else library.reason)


def _nvtx(here: Served, environment: Mapping[str, str], missing: str) -> DoctorCheck:
    if "NVTX_INJECTION64_PATH" in environment:
        told = "NVTX_INJECTION64_PATH is set already, and is left as it is: its library gets the ranges, not ours"
        return no("NVTX ranges", told, "Unset it while recording")
    if not missing:
        return yes("NVTX ranges", "our library in C is built: ranges of any program, C++ included")
    if "nvtx" in here.packages:
        if unknown := untested("nvtx", here):
            told = f"no library in C ({missing}), and {unknown}"
            return no("NVTX ranges", told, "Install a C compiler, or one of these")
        told = f"no library in C ({missing}); ranges of the Python package nvtx {here.packages['nvtx']} alone"
        return partly("NVTX ranges", told, "Install a C compiler for those of C++ too")
    return no("NVTX ranges", f"no library in C ({missing}), and no package nvtx there", "Install a C compiler, or nvtx")


def _cupti(here: Served, environment: Mapping[str, str], missing: str) -> DoctorCheck:
    driver = driver_version()
    if driver is None:
        return no(GPU, "no NVIDIA driver is loaded here")
    all_there = yes(GPU, f"driver {driver}: kernels, copies and calls in short windows")
    return next(_obstacles(driver, here, environment, missing), all_there)


def _obstacles(driver: int, here: Served, environment: Mapping[str, str], missing: str) -> Iterator[DoctorCheck]:
    """What stands in the way, the first thing first; it is looked for no further than is asked."""
    if driver < OLDEST_DRIVER:
        told = f"driver {driver} is of CUDA before 12.6, whose CUPTI breaks graphs when it starts late: refused"
        yield no(GPU, told, f"Use a driver from {OLDEST_DRIVER} on; windows of torch's profiler work")
    if not any(NODES.glob("nvidia[0-9]*")):
        yield no(GPU, f"driver {driver}, but no device is visible here", "Give this container a GPU")
    if taken := next((name for name in ("CUDA_INJECTION64_PATH", *OTHER_CLIENTS) if name in environment), None):
        yield no(GPU, f"{taken} is set: CUPTI has another client, and only one may be", "Unset it while recording")
    if missing:
        yield no(GPU, f"no library in C ({missing})", "Install a C compiler; windows of torch's profiler work")
    try:
        layout_text()
    except TellerError as error:
        yield no(GPU, error.why, error.next_step)
    if not _loads("libcuda.so.1"):
        yield no(GPU, f"driver {driver}, but libcuda.so.1 cannot be loaded", "Mount the driver's libraries here")
    if not any(name.startswith("nvidia-cuda-cupti") or name == "torch" for name in here.packages):
        yield partly(GPU, f"driver {driver}; neither torch nor CUPTI is installed there", "Install nvidia-cuda-cupti")


def driver_version() -> int | None:
    """The major version of the loaded NVIDIA driver, None without one."""
    try:
        words = DRIVER.read_text("utf-8", "replace").split()
    except OSError:
        return None
    numbers = [word.partition(".")[0] for word in words if word[:1].isdigit() and "." in word]
    return next((int(number) for number in numbers if number.isdigit()), None)


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
