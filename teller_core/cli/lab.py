"""The verb of the lab: real faults on a real service, and the benchmark of them."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from teller_core.calls import option
from teller_core.cli.speech import complain, say, style
from teller_core.cli.verbs import Verbs
from teller_core.errors import InputError
from teller_core.tell.progress import shown_on

PACKED = Path("tests/lab")


def _lab(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return {"run": _in_scratch, "build": _build, "eval": _eval}[given.action](given)


def _in_scratch(given: argparse.Namespace) -> int:
    from teller_core.lab.requests import REQUESTS

    keep: Path | None = given.keep
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise InputError(f"--keep {keep.name}", "the folder is not empty", "Name a new one")
    with tempfile.TemporaryDirectory(prefix="teller-lab-", ignore_cleanup_errors=True) as scratch:
        _run(given, keep or Path(scratch) / "life", given.requests or REQUESTS)
    return 0


def _run(given: argparse.Namespace, folder: Path, requests: int) -> None:
    from teller_core.lab.life import run_life, setup_for
    from teller_core.lab.telling import lines_of, report_of

    began, wanted = time.monotonic(), [(given.fault, given.severity)]
    with shown_on(sys.stderr) as progress:
        (block,) = run_life(
            setup_for(given.engine, wanted),
            given.seed,
            wanted,
            folder,
            lambda text: progress(text, 0, 0),
            vllm=given.vllm,
            requests=requests,
        )
    report = report_of(block, given.engine, given.seed, time.monotonic() - began, kept=given.keep is not None)
    say(report.model_dump_json() if option(given, "json") else "\n".join(lines_of(report, style())))


def _build(given: argparse.Namespace) -> int:
    """2 where a life that was asked for is not there in the end."""
    from teller_core.lab.benchmark.build import build
    from teller_core.lab.benchmark.lives import table
    from teller_core.lab.benchmark.telling import lines_of_built, report_of_built

    plans, into = table(), given.into or PACKED
    first, last = given.lives or (1, len(plans))
    if last > len(plans):
        raise InputError(f"--lives {first}-{last}", f"there are {len(plans)}", "Ask for some of these")
    built = build(plans[first - 1 : last], given.folder, into, _tell, vllm=given.vllm)
    report = report_of_built(built, into)
    say(report.model_dump_json() if option(given, "json") else "\n".join(lines_of_built(report)))
    return 2 if any(line.failed for line in report.lives) else 0


def _tell(text: str) -> None:
    """It takes hours: what was said stays."""
    complain(f"{time.strftime('%H:%M:%S')} {text}")


def _eval(given: argparse.Namespace) -> int:
    from teller_core.lab.evaluation.results import TIERS, evaluate

    if option(given, "json"):
        raise InputError("lab eval", "its tables are text", "Leave --json away")
    tiers = TIERS if given.tier is None else (given.tier,)
    with shown_on(sys.stderr) as progress:
        texts = evaluate(given.method, given.lives or PACKED, tiers, lambda text: progress(text, 0, 0))
    say("\n".join(texts))
    return 0


VERBS: Mapping[str, Callable[..., int]] = {"lab": _lab}
