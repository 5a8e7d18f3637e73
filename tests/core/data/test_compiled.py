"""Compiled code is kept where it can be, made anew where it cannot, and never stale."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numba.core.caching
import pytest

from teller_core.data.compiled import announce_compiling, compiled, forget_stale

ROOT = Path(__file__).parents[3]


def run(code: str, *, cache: Path) -> str:
    """What a fresh Python prints that runs ``code`` and keeps compiled code in ``cache``."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


MODULE = """
from teller_core.data.compiled import announce_compiling, compiled

@compiled
def twice(x):
    return 2 * x
"""
USE = """
    import sys
    sys.path.insert(0, "{folder}")
    import made
    with made.announce_compiling(lambda: print("compiling")):
        print(made.twice(21))
"""


def test_compiling_is_announced_the_first_time_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(MODULE)
    use = USE.format(folder=tmp_path)
    assert run(use, cache=tmp_path / "cache") == "compiling\n42\n"
    assert run(use, cache=tmp_path / "cache") == "42\n"


def test_without_a_folder_to_write_to_a_function_still_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    said: list[str] = []

    def add(x: int) -> int:
        return x + 1

    with announce_compiling(lambda: said.append("compiling")):
        assert compiled(add)(1) == 2
    assert said == ["compiling"]


def test_what_is_cached_of_a_file_is_dropped_when_a_file_it_uses_is_newer(tmp_path: Path) -> None:
    sources = [tmp_path / "a.py", tmp_path / "b.py"]
    indexes = [tmp_path / "a.f-1.py311.nbi", tmp_path / "b.g-1.py311.nbi", tmp_path / "other.h-1.py311.nbi"]
    for file in [*sources, *indexes]:
        file.touch()
        os.utime(file, (1000, 1000))
    function = type("Compiled", (), {"stats": type("Stats", (), {"cache_path": str(tmp_path)})})
    forget_stale(function, *map(str, sources))
    assert all(index.exists() for index in indexes)
    os.utime(sources[1], (2000, 2000))
    forget_stale(function, *map(str, sources))
    assert [index.exists() for index in indexes] == [False, False, True]


def test_reading_is_what_loads_numba() -> None:
    code = "import sys, teller_core.ingest.kineto.reader, teller_core.rebuild.nest; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
