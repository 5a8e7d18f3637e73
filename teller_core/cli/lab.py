"""The verb of the lab: real faults on a real service."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from teller_core.calls import option
from teller_core.cli.speech import say, style
from teller_core.cli.verbs import Verbs
from teller_core.errors import InputError
from teller_core.tell.progress import shown_on


def _lab(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    from teller_core.lab.requests import REQUESTS

    keep: Path | None = given.keep
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise InputError(f"--keep {keep.name}", "the folder is not empty", "Name a new one")
    with tempfile.TemporaryDirectory(prefix="teller-lab-", ignore_cleanup_errors=True) as scratch:
        _run(given, keep or Path(scratch) / "life", given.requests or REQUESTS)
    return 0


def _run(given: argparse.Namespace, folder: Path, requests: int) -> None:
    from teller_core.lab.life import run_life
    from teller_core.lab.telling import lines_of, report_of

    began = time.monotonic()
    with shown_on(sys.stderr) as progress:
        (block,) = run_life(
            given.engine,
            given.seed,
            [(given.fault, given.severity)],
            folder,
            lambda text: progress(text, 0, 0),
            vllm=given.vllm,
            requests=requests,
        )
    report = report_of(block, given.engine, given.seed, time.monotonic() - began, kept=given.keep is not None)
    say(report.model_dump_json() if option(given, "json") else "\n".join(lines_of(report, style())))


VERBS: Mapping[str, Callable[..., int]] = {"lab": _lab}
