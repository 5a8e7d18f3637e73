"""Words by which a recording would tell what was done in it, looked for wherever somebody who answers may look."""

import gzip
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from teller_core.collect.proc import family
from teller_core.lab.injectors import injectors
from teller_core.lab.inside import INJECT, VARIABLE


def give_away() -> Sequence[str]:
    """Names of the lab's own: of injectors, of what is put inside the service, of how that is asked for."""
    inside = [path.stem for path in INJECT.glob("*.py")]
    return [*injectors(), *inside, VARIABLE, ".journal-", "teller_core/lab"]


def in_recording(bundle: Path) -> Sequence[str]:
    """``FILE: WORD`` for every word that gives away what was done, in the names and the content of the files of ``bundle``."""
    found: list[str] = []
    for path in sorted(each for each in bundle.rglob("*") if each.is_file()):
        text = path.name + "\n" + _text(path)
        found += [f"{path.relative_to(bundle)}: {word}" for word in give_away() if word in text]
    return found


def in_processes(root: int) -> Sequence[str]:
    """``PID: WORD`` for every such word in the command line and the thread names of the process ``root`` and its family."""
    found: list[str] = []
    for pid in family(root):
        text = "\n".join(_said(pid))
        found += [f"{pid}: {word}" for word in give_away() if word in text]
    return found


def _said(pid: int) -> Iterator[str]:
    for path in (Path(f"/proc/{pid}/cmdline"), *Path(f"/proc/{pid}/task").glob("*/comm")):
        with suppress(OSError):  # it has ended
            yield path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")


def _text(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "replace")
