"""The environment variables that load the injection library into a command."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from teller_core.collect.cupti.layouts import layout_text
from teller_core.collect.cupti.windows import LAYOUT_FILE
from teller_core.collect.native.build import find
from teller_core.errors import TellerError

NVTX = "NVTX_INJECTION64_PATH"
CUDA = "CUDA_INJECTION64_PATH"


class Injection(NamedTuple):
    """What to add to a command's environment, and what will not be recorded, by a word for it and its reason."""

    variables: Mapping[str, str]
    missing: Mapping[str, str]


def injection(cap: Path, inherited: Mapping[str, str], cache: Path | None = None) -> Injection:
    """How the library gets into a command that records into ``cap``, where the layout of CUPTI's records is written.

    What the user has set in ``inherited`` stays. ``missing``: ``nvtx`` and ``cupti`` with why they will not be recorded.
    """
    library = find(cache)
    if library.path is None:
        return Injection({}, {"nvtx": library.reason, "cupti": library.reason})
    variables: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, what in ((NVTX, "nvtx"), (CUDA, "cupti")):
        if inherited.get(name):
            missing[what] = f"{name} is set already"
        else:
            variables[name] = str(library.path)
    if CUDA in variables:
        try:
            text = layout_text()
        except TellerError as error:
            missing["cupti"] = error.why
            del variables[CUDA]
        else:
            (cap / LAYOUT_FILE).write_text(text)
            variables["TELLER_INJECT_LAYOUT"] = str((cap / LAYOUT_FILE).resolve())
            if (path := _cupti_here()) is not None:
                variables["TELLER_INJECT_CUPTI"] = str(path)
    return Injection(variables, missing)


def _cupti_here() -> Path | None:
    """libcupti of the package beside this one: for programs that have loaded none of their own."""
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        if found := sorted(Path(folder).glob("*/lib/libcupti.so.1[23]")):
            return found[-1]
    return None
