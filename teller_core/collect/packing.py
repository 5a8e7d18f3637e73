"""Traces of the profiler are compressed by the recording process: inside the service this would lengthen its stall."""

from pathlib import Path
from typing import Any

from isal import isal_zlib

from teller_core.collect.finished import regular_files

zlib: Any = isal_zlib  # its own types are partial


def compress_traces(cap: Path) -> None:
    """Compress the whole traces in ``cap``. Raises OSError where the disk has no room; what was not done stays as it is."""
    for path in regular_files(cap, "torch-*.json"):
        packed = path.with_name(f".{path.name}.gz")
        gzip = zlib.compressobj(1, wbits=31)
        try:
            with path.open("rb") as source, packed.open("wb") as target:
                while block := source.read(1 << 20):
                    target.write(gzip.compress(block))
                target.write(gzip.flush())
            packed.replace(path.with_name(f"{path.name}.gz"))
        except OSError:
            packed.unlink(missing_ok=True)
            raise
        path.unlink()
