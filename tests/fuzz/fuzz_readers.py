"""Coverage-guided runs over one reader: ``python tests/fuzz/fuzz_readers.py FORMAT [--seconds N]``. README.md says how.

Every way to fail is told once, as ``FOUND``, with its input kept beside the corpus; the run goes on.
"""

import argparse
import os
import re
import sys
import traceback
import warnings
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir, mkdtemp

ROOT = Path(__file__).parents[2]
KINETO = ("arguments", "fields", "numbers", "record", "scan")
WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_.:]{2,40}")


def main() -> None:
    """Run; does not return before the time is over."""
    atheris = import_module("atheris")  # installed for these runs alone

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--work", type=Path, default=Path(gettempdir(), "teller_fuzz"))
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("NUMBA_CACHE_DIR", str(given.work / "numba"))
    compiled = [f"teller_core.ingest.kineto.{name}" for name in KINETO]
    compiled += ["teller_core.ingest.scanning", "teller_core.rebuild.nesting", "teller_core.data.compiled"]
    with atheris.instrument_imports(include=["teller_core"], exclude=compiled):
        from tests.fuzz import checks
    warnings.simplefilter("error")
    corpus = given.work / given.format
    corpus.mkdir(parents=True, exist_ok=True)
    samples = checks.samples(given.format)
    for sample in samples:
        (corpus / f"case_{sha256(sample).hexdigest()[:12]}").write_bytes(sample)
    words = given.work / f"{given.format}.dict"
    words.write_text("".join(f'"{word.decode()}"\n' for word in sorted(set(WORD.findall(b"\n".join(samples))))[:400]))
    folder = Path(mkdtemp(prefix="teller_fuzz", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    known: set[str] = set()

    def one(data: bytes) -> None:
        try:
            checks.sniff_all(data)
            checks.check(checks.read_bytes(given.format, data, folder))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            _tell(error, data, known, given.work / "found" / given.format)

    for sample in samples:  # what is compiled is compiled before the clock runs
        one(sample)
    arguments = [f"-max_total_time={given.seconds}", f"-dict={words}", "-timeout=20", "-rss_limit_mb=4000"]
    arguments += ["-print_final_stats=1", "-max_len=65536", f"-artifact_prefix={given.work}/", str(corpus)]
    atheris.Setup([sys.argv[0], *arguments], one, enable_python_coverage=True)
    atheris.Fuzz()


def _tell(error: Exception, data: bytes, known: set[str], folder: Path) -> None:
    """Tell an error that was not seen yet at its place, and keep the bytes that lead to it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "teller_core" in frame.filename or "checks" in frame.filename]
    last = (ours or frames)[-1]
    place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    if place in known:
        return
    known.add(place)
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / sha256(data).hexdigest()[:12]
    kept.write_bytes(data)
    chain = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(ours))
    sys.stderr.write(f"\nFOUND {place}: {str(error)[:300]!r} {chain} {kept}\n")


if __name__ == "__main__":
    main()
