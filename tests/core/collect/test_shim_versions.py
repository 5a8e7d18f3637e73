"""Hooks of libraries are on in the versions that they were tested on, and in no other; the bundle says which are off."""

from pathlib import Path

import pytest

from tests.core.collect.test_shim import _events, _run
from tests.core.collect.test_shim_pythons import NVTX

UVICORN = "class Server:\n    async def shutdown(self): return 5\n"
TORCH = "def all_reduce(tensor, op=None, group=None): return None\n"
LIBRARIES = {
    "nvtx": ("0.2.17", "nvtx/nvtx.py", NVTX, "import nvtx.nvtx as m\nmade = m.push_range"),
    "uvicorn": ("0.54.0", "uvicorn/server.py", UVICORN, "import uvicorn.server as m\nmade = m.Server.shutdown"),
    "torch": (
        "2.13.1+cpu",
        "torch/distributed/distributed_c10d.py",
        TORCH,
        "import torch.distributed.distributed_c10d as m\nmade = m.all_reduce",
    ),
}
"""By name: a version that is known, a module with hooks, what is in it, and how a program gets at a function with a hook."""


def made(folder: Path, library: str, version: str) -> Path:
    """A package of the shape of ``library``: nvtx says its version nowhere, uvicorn after its modules."""
    _, module, text, _ = LIBRARIES[library]
    path = folder / module
    path.parent.mkdir(parents=True)
    for package in {path.parent, folder / library}:
        (package / "__init__.py").touch()
    path.write_text(text)
    if library == "nvtx":
        (folder / f"nvtx-{version}.dist-info").mkdir()
        (folder / "nvtx-plugins-0.1.dist-info").mkdir()
        (folder / "nvtxy-0.1.dist-info").mkdir()
    else:
        before = "from uvicorn.server import Server\n" if library == "uvicorn" else ""
        (folder / library / "__init__.py").write_text(f"{before}__version__ = {version!r}\n")
    return folder


def run(tmp_path: Path, library: str, version: str, then: str) -> str:
    """What a program prints that imports the library, in which ``made`` is a function that has a hook where it is on."""
    code = f"{LIBRARIES[library][3]}\n{then}"
    done = _run(code, tmp_path / "cap", [made(tmp_path / "lib", library, version)])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


HOOKED = "print(hasattr(made, '__wrapped__'))"


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_unknown_version_of_a_library_is_left_alone_and_the_bundle_says_so(tmp_path: Path, library: str) -> None:
    assert run(tmp_path, library, "9.77.1", HOOKED) == "False\n"
    (off,) = _events(tmp_path / "cap", "hooks_disabled")
    known = ".".join(LIBRARIES[library][0].split(".")[:2])
    assert (off["package"], off["version"], known in off["tested"]) == (library, "9.77.1", True)
    (process,) = _events(tmp_path / "cap", "process")
    assert {"event": "hooks_disabled", "package": library, "version": "9.77.1"} in process["hooks"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_known_version_of_a_library_is_hooked_and_the_heading_says_so(tmp_path: Path, library: str) -> None:
    version = LIBRARIES[library][0]
    assert run(tmp_path, library, version, HOOKED + "\nimport teller_shim_events as e; e.instant('said')") == "True\n"
    (process,) = _events(tmp_path / "cap", "process")
    assert process["hooks"] == [{"event": "hooks", "package": library, "version": version}]
    assert not _events(tmp_path / "cap", "hooks_disabled")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_process_that_imports_a_known_library_and_has_nothing_to_say_leaves_no_file(
    tmp_path: Path, library: str
) -> None:
    assert run(tmp_path, library, LIBRARIES[library][0], HOOKED) == "True\n"
    assert not list((tmp_path / "cap").glob("host-*"))


def test_a_library_whose_version_nobody_says_is_left_alone(tmp_path: Path) -> None:
    library = made(tmp_path / "lib", "nvtx", "0.2.17")
    (library / "nvtx-0.2.17.dist-info").rmdir()
    done = _run(f"{LIBRARIES['nvtx'][3]}\n{HOOKED}", tmp_path / "cap", [library])
    assert (done.stdout, done.stderr) == ("False\n", "")
    (off,) = _events(tmp_path / "cap", "hooks_disabled")
    assert (off["package"], off["version"]) == ("nvtx", "unknown")
    assert not _events(tmp_path / "cap", "hook_error")
