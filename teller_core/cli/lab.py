"""The verb of the lab: real faults on a real service, what a change of it saves, and the benchmark of them."""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from teller_core.calls.arguments import option
from teller_core.cli.speech import complain, say, style
from teller_core.cli.verbs import Verbs
from teller_core.errors import InputError
from teller_core.tell.progress import shown_on

if TYPE_CHECKING:
    from teller_core.lab.blocks import BlockTruth, Strike
    from teller_core.lab.effect import Row
    from teller_core.lab.serving import Setup

PACKED = Path("tests/lab")


def _lab(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    actions = {
        "run": _in_scratch,
        "build": _build,
        "eval": _eval,
        "leaks": _leaks,
        "sheets": _sheets,
        "rerun": _rerun,
        "lifted": _lifted,
        "replayed": _replayed,
    }
    return actions[given.action](given)


def _in_scratch(given: argparse.Namespace) -> int:
    from teller_core.lab.requests import REQUESTS

    keep: Path | None = given.keep
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InputError(f"--keep {keep.name}", "it is no empty folder", "Name a new one")
    with tempfile.TemporaryDirectory(prefix="teller-lab-", ignore_cleanup_errors=True) as scratch:
        _run(given, keep or Path(scratch) / "life", given.requests or REQUESTS)
    return 0


def _run(given: argparse.Namespace, folder: Path, requests: int) -> None:
    from teller_core.lab.life import run_life, setup_for
    from teller_core.lab.telling import lines_of, report_of

    began, wanted = time.monotonic(), [(given.fault, given.severity)]
    with shown_on(sys.stderr) as progress:
        (block,) = run_life(
            replace(setup_for(given.engine, wanted), model=given.model),
            given.seed,
            wanted,
            folder,
            lambda text: progress(text, 0, 0),
            mix=given.mix,
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
    from teller_core.lab.evaluation.results import TIERS

    if option(given, "json"):
        raise InputError("lab eval", "its tables are text", "Leave --json away")
    every = TIERS if given.leave_out is None and given.weights is None else TIERS[-1:]
    tiers = every if given.tier is None else (given.tier,)
    with shown_on(sys.stderr) as shown:
        texts = _judged(given, given.lives or PACKED, tiers, lambda text: shown(text, 0, 0))
    say("\n".join(texts))
    return 0


def _judged(
    given: argparse.Namespace, folder: Path, tiers: Sequence[int], progress: Callable[[str], None]
) -> list[str]:
    from teller_core.lab.evaluation.results import compare, evaluate, evaluate_left_out

    if given.versus is not None:
        return compare(given.method, given.versus, folder, tiers)
    if given.replayed is not None:
        from teller_core.lab.perturb.judging import evaluate_replayed

        return evaluate_replayed(given.method, given.replayed, folder, progress)
    if given.weights is not None:
        from teller_core.lab.evaluation.unshipped import Weights, evaluate_weights

        return evaluate_weights(given.method, Weights(given.weights, given.side), folder, tiers, progress)
    if given.leave_out is not None:
        return evaluate_left_out(given.method, folder, tiers, given.leave_out, progress)
    return evaluate(given.method, folder, tiers, progress)


def _rerun(given: argparse.Namespace) -> int:
    from teller_core.lab.counterfactual import STARTS, Asked, rerun
    from teller_core.lab.lifting.limited import foretold
    from teller_core.lab.requests import REQUESTS
    from teller_core.lab.telling_savings import lines_of_rerun, report_of_rerun

    began = time.monotonic()
    asked = Asked(
        _served(given),
        "seats" if given.chunk is None else "chunk",
        given.seats if given.chunk is None else given.chunk,
        given.seed,
        given.mix,
        given.requests or REQUESTS,
        _strike(given),
    )
    with shown_on(sys.stderr) as progress:
        truth = rerun(
            asked, given.folder, lambda text: progress(text, 0, 0), starts=given.starts or STARTS, vllm=given.vllm
        )
        progress("foretelling", 0, 0)
        found = foretold(truth, given.folder)
    report = report_of_rerun(truth, found, time.monotonic() - began)
    say(report.model_dump_json() if option(given, "json") else "\n".join(lines_of_rerun(report, style())))
    return 0


def _served(given: argparse.Namespace) -> "Setup":
    from teller_core.lab.life import setup_for

    return setup_for(given.engine, [] if given.fault is None else [(given.fault, given.severity)])


def _strike(given: argparse.Namespace) -> "Strike | None":
    from teller_core.lab.blocks import Strike
    from teller_core.lab.injectors import draw, injector

    if given.fault is None:
        return None
    knobs = draw(injector(given.fault), given.severity, random.Random(f"strike {given.seed}"))
    return Strike(given.fault, given.severity, knobs)


def _lifted(given: argparse.Namespace) -> int:
    from teller_core.data.whole import keep_text
    from teller_core.lab.savings import lifted
    from teller_core.lab.telling_savings import lines_of_lifted, report_of_lifted

    life: Path = given.life
    if (life / "lives").is_dir():
        return _predicted(given)
    found = lifted(*(_packed(life) if life.suffix == ".xz" else _recorded(life)))
    if given.to is not None:
        keep_text(given.to, json.dumps([asdict(each) for each in found]) + "\n")
    report = report_of_lifted(life.stem, found)
    say(report.model_dump_json() if option(given, "json") else "\n".join(lines_of_lifted(report)))
    return 0


def _predicted(given: argparse.Namespace) -> int:
    from teller_core.data.whole import keep_text
    from teller_core.ingest.files.room import cores
    from teller_core.lab.benchmark.pack import lives
    from teller_core.lab.lifting.predict import predicted
    from teller_core.lab.lifting.telling import lines_of_predicted, report_of_predicted

    packed = [life for life in lives(given.life) if life.about["side"] == given.side]
    if not packed:
        raise InputError(
            f"The folder {given.life.name}", f"no life of the {given.side} side is packed in it", "Build some"
        )
    with shown_on(sys.stderr) as shown:
        pairs = predicted(packed, lambda text: shown(text, 0, 0), at_once=cores())
    report = report_of_predicted(given.side, len(packed), pairs)
    if given.to is not None:
        keep_text(given.to, report.model_dump_json(indent=1) + "\n")
    say(report.model_dump_json() if option(given, "json") else "\n".join(lines_of_predicted(report, style())))
    return 0


def _leaks(given: argparse.Namespace) -> int:
    from teller_core.lab.probe.telling import leaks, lines_of

    if option(given, "json"):
        raise InputError("lab leaks", "its table is text", "Leave --json away")
    with shown_on(sys.stderr) as shown:
        if given.replayed is not None:
            from teller_core.lab.perturb.judging import lines_of_told, told

            lines = lines_of_told(told(given.replayed, lambda text: shown(text, 0, 0)))
        else:
            lines = lines_of(leaks(given.lives or PACKED, lambda text: shown(text, 0, 0)))
    say("\n".join(lines))
    return 0


def _replayed(given: argparse.Namespace) -> int:
    from teller_core.lab.perturb.folder import WANTED, build
    from teller_core.lab.perturb.judging import lines_of_built
    from teller_core.lab.perturb.recordings import found

    if option(given, "json"):
        raise InputError("lab replayed", "its table is text", "Leave --json away")
    plan = build(given.folder, found(given.recordings), _tell, seed=given.seed, wanted=given.episodes or WANTED)
    say("\n".join(lines_of_built(given.folder, plan)))
    return 0


def _sheets(given: argparse.Namespace) -> int:
    from teller_core.lab.teaching import MOST, write_sheets

    if option(given, "json"):
        raise InputError("lab sheets", "it writes files", "Leave --json away")
    with shown_on(sys.stderr) as shown:

        def progress(text: str) -> None:
            shown(text, 0, 0)

        paths = write_sheets(given.lives or PACKED, given.folder, progress, most=given.most or MOST)
        if given.replayed is not None:
            from teller_core.lab.perturb.teaching import write_replayed

            paths += write_replayed(given.replayed, given.folder, progress)
    say("\n".join(f"{path}  {path.stat().st_size:,} bytes" for path in paths))
    return 0


def _recorded(life: Path) -> "tuple[Sequence[BlockTruth], Mapping[str, Row]]":
    from teller_core.lab.life import truths
    from teller_core.lab.savings import rows_of

    blocks = truths(life)
    if not blocks:
        raise InputError(f"The life {life.name}", "it has no truth", "Name a folder that lab build or lab run left")
    bundles = {block.bundle for block in blocks}
    return blocks, {name: row for bundle in bundles for name, row in rows_of(life / bundle).items()}


def _packed(life: Path) -> "tuple[Sequence[BlockTruth], Mapping[str, Row]]":
    from teller_core.lab.benchmark.pack import capture_of, read_truth
    from teller_core.lab.savings import rows_in

    whole = read_truth(life.parent.parent, life.stem)
    return whole.blocks, rows_in(capture_of(whole, 1))


VERBS: Mapping[str, Callable[..., int]] = {"lab": _lab}
