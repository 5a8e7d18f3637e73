"""An environment with nsys-ai 0.3.0 that works without a network, and what its ``warm`` is called with.

``warm`` copies an export into Parquet files and attributes kernels to NVTX ranges, so that its later questions are fast: what
an import does here. It reads SQLite through an extension of DuckDB, which is put where DuckDB would download it to.
"""

import shutil
import subprocess
import sys
from pathlib import Path

WANTED = ("nsys-ai==0.3.0", "duckdb==1.4.4", "duckdb-ext-sqlite==1.4.4.20260205")
EXTENSION = "extensions/v1.4.4/linux_amd64/sqlite_scanner.duckdb_extension"


def environment(folder: Path) -> Path:
    """The Python of a virtual environment in ``folder``, made once. Its home folder is ``folder / "home"``."""
    python, stamp = folder / "venv" / "bin" / "python", folder / ".done"
    if not stamp.exists():
        sys.stdout.write("installing nsys-ai, once\n")
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *WANTED], check=True)
        packed = next((folder / "venv").glob(f"lib/python*/site-packages/duckdb_ext/{EXTENSION}"))
        target = folder / "home" / ".duckdb" / EXTENSION
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(packed, target)
        stamp.touch()
    return python


def warm(folder: Path, export: Path) -> list[str]:
    """The command that warms ``export`` anew: what it kept from the last time is removed first."""
    python, cache = environment(folder), export.with_suffix(".nsys-cache")
    run = 'rm -rf "$1"; HOME="$2" exec "$3" warm "$4"'
    return ["sh", "-c", run, "sh", str(cache), str(folder / "home"), str(python.parent / "nsys-ai"), str(export)]
