"""How the library is built, found and put into a command's environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from teller_core.collect.cupti import layouts
from teller_core.collect.native import build as builder
from teller_core.collect.native import variables
from teller_core.collect.native.build import Library, build, find, library_name
from teller_core.errors import InputError, MissingExtra

needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in builder.COMPILERS), reason="there is no C compiler here"
)


@needs_compiler
def test_it_is_built_once_and_found_after_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find(tmp_path)
    assert first == Library(tmp_path / library_name())
    monkeypatch.setenv("PATH", "")
    assert find(tmp_path) == first
    assert [path.name for path in tmp_path.iterdir()] == [library_name()]


@needs_compiler
def test_several_that_build_at_once_all_get_a_whole_library(tmp_path: Path) -> None:
    program = f"from pathlib import Path; from teller_core.collect.native.build import build; import ctypes;\
ctypes.CDLL(str(build(Path({str(tmp_path)!r})).path))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    running = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == [library_name()]


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find(tmp_path) == Library(None, "there is no C compiler here (cc, gcc, clang)")


def test_a_compiler_that_fails_and_a_folder_that_cannot_be_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert build(tmp_path / "out") == Library(None, "cc could not build it (exit status 3)")
    assert list((tmp_path / "out").iterdir()) == []
    (tmp_path / "file").touch()
    assert "cannot be written" in build(tmp_path / "file" / "in").reason


@needs_compiler
def test_the_sources_have_no_warnings(tmp_path: Path) -> None:
    compiler = next(path for name in builder.COMPILERS if (path := shutil.which(name)))
    sources = [str(builder.HERE / name) for name in builder.SOURCES if name.endswith(".c")]
    strict = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wno-sign-conversion"]
    done = subprocess.run(
        [compiler, *builder.FLAGS, *strict, "-o", str(tmp_path / "x.so"), *sources, "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_source_is_part_of_the_librarys_name() -> None:
    assert {path.name for path in builder.HERE.glob("*.[ch]")} == set(builder.SOURCES)


@needs_compiler
def test_what_the_user_has_set_stays_and_is_told(tmp_path: Path) -> None:
    pytest.importorskip("cupti", reason="cupti-python is not installed")
    built = tmp_path / "built"
    whole = variables.injection(tmp_path, {}, built)
    assert {variables.NVTX, variables.CUDA, "TELLER_INJECT_LAYOUT"} <= whole.variables.keys()
    assert not whole.missing
    assert (tmp_path / variables.LAYOUT_FILE).read_text().startswith("teller-layout 1\n")
    taken = variables.injection(tmp_path, {variables.NVTX: "/theirs.so", variables.CUDA: "/theirs.so"}, built)
    assert taken.variables == {}
    assert taken.missing == {
        what: f"{name} is set already" for what, name in (("nvtx", variables.NVTX), ("cupti", variables.CUDA))
    }


@needs_compiler
def test_without_cupti_python_nvtx_is_still_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)
    found = variables.injection(tmp_path, {}, tmp_path / "built")
    assert list(found.variables) == [variables.NVTX]
    assert found.missing == {"cupti": "cupti-python is not installed here"}
    with pytest.raises(MissingExtra):
        layouts.layout_text()


def test_a_field_that_moved_between_versions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cupti", reason="cupti-python is not installed")
    moved = layouts.Wanted(
        10, "kernel", "kernel", ("start", "priority", "local_memory_total_v2", "completed", "reserved0")
    )
    monkeypatch.setattr(layouts, "KINDS", (moved, layouts.Wanted(17, "overhead", "overhead", ("nothing",))))
    with pytest.raises(InputError, match="overhead's nothing is not in one place"):
        layouts.layout_text()
