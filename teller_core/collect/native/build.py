"""Find the injection library, or build it with the system's C compiler.

A wheel may carry it, built with the package. Otherwise it is built at first use into a folder of the user's, under a name
that holds a hash of its sources, so that no process ever loads one of another version.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
SOURCES = (
    "teller_inject.h",
    "teller_cupti.h",
    "teller_shared.c",
    "teller_lines.c",
    "teller_nvtx.c",
    "teller_layout.c",
    "teller_buffers.c",
    "teller_records.c",
    "teller_windows.c",
)
FLAGS = ("-O2", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,nodelete", "-pthread")
COMPILERS = ("cc", "gcc", "clang")
BUILD_S = 60


class Library(NamedTuple):
    """Where the injection library is, or why there is none."""

    path: Path | None
    reason: str = ""


def library_name() -> str:
    """The file name of the library that these sources make."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((HERE / name).read_bytes())
    return f"libteller_inject-{digest.hexdigest()[:16]}.so"


def find(cache: Path | None = None) -> Library:
    """The library of this version: the package's own, one that was built before into ``cache``, or one built now.

    ``cache`` defaults to ``~/.cache/teller``. Never raises: without a compiler or a folder to write to it says so.
    """
    name = library_name()
    try:
        folder = Path.home() / ".cache" / "teller" if cache is None else cache
    except RuntimeError:
        return Library(None, "there is no home folder to build the library in")
    for place in (HERE / name, folder / name):
        if place.is_file():
            return Library(place)
    return build(folder)


def build(folder: Path) -> Library:
    """Build the library into ``folder``. Several at once are safe: each builds its own and puts it there whole."""
    compiler = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        return Library(None, f"there is no C compiler here ({', '.join(COMPILERS)})")
    target = folder / library_name()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, hidden = tempfile.mkstemp(prefix=".libteller_inject-", suffix=".so", dir=folder)
    except OSError as error:
        return Library(None, f"the folder for it cannot be written ({(error.strerror or 'refused').lower()})")
    os.close(handle)
    sources = [str(HERE / name) for name in SOURCES if name.endswith(".c")]
    try:
        done = subprocess.run(
            [compiler, *FLAGS, "-o", hidden, *sources, "-ldl"], capture_output=True, check=False, timeout=BUILD_S
        )
        if done.returncode:
            return Library(None, f"{Path(compiler).name} could not build it (exit status {done.returncode})")
        os.chmod(hidden, 0o755)
        os.replace(hidden, target)
        return Library(target)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Library(None, f"building it failed ({type(error).__name__})")
    finally:
        Path(hidden).unlink(missing_ok=True)
