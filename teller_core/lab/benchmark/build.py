"""Recording the lives of the benchmark and packing them, one after the other, from wherever it was ended before.

A life is recorded into a hidden folder, which gets its name when the life is over: what has a name is whole. So is what is
packed. A life that was ended in the middle is recorded again from its start, as the start of a server is part of it.
"""

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from teller_core.data.whole import made_folder
from teller_core.errors import InputError, LimitError, MissingExtra, OutOfRoom, TellerError
from teller_core.lab.benchmark.lives import LifePlan
from teller_core.lab.benchmark.pack import LIVES, pack, packed_bytes, read_truth
from teller_core.lab.blocks import BlockTruth
from teller_core.lab.life import run_life, truths
from teller_core.lab.serving import Setup

MOST_BYTES = 60_000_000
"""Of all that is packed, truth included."""
LEAST_FREE = 4 << 30
"""Bytes that recording needs on the disk."""
TRIES = 2
"""A server that dies of what is done to it dies again."""
CAPTURE = "TELLER_CAPTURE_DIR"
"""The variable of a recorded process that names the folder it writes to."""

Progress = Callable[[str], None]
Record = Callable[[LifePlan, Path, Path | None, Progress], None]


@dataclass(frozen=True)
class Built:
    """What became of one life. ``bytes``: its packed store. ``moved``: strikes that count; ``rejected``: others, and why;
    ``failed``: why it is not there, None where it is. ``new``: it was packed now.
    """

    name: str
    side: str
    bytes: int
    moved: int
    rejected: Sequence[tuple[str, str, str]]
    new: bool
    failed: str | None = None


def record_life(plan: LifePlan, folder: Path, vllm: Path | None, progress: Progress) -> None:
    """Run the life that ``plan`` asks for into ``folder``: the one place that knows how the lab does it.

    Raises InputError for what the lab cannot serve, UnknownName for a load that it does not know.
    """
    kind = plan.kind
    setup = Setup(kind.engine, plan.model, kind.ranks, kind.apart, kind.cache)
    run_life(setup, plan.seed, plan.wanted, folder, progress, mix=plan.load, vllm=vllm, requests=plan.requests)


def build(
    plans: Sequence[LifePlan],
    folder: Path,
    into: Path,
    progress: Progress,
    *,
    vllm: Path | None = None,
    record: Record = record_life,
) -> list[Built]:
    """Record into ``folder`` and pack ``into`` what they lack of ``plans``. Returns what became of each.

    A life that cannot be recorded in TRIES tries is told and left out. Raises InputError where ``folder`` is no folder,
    OutOfRoom where the disk has too little room left, LimitError where all that is packed would be too large.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError("The folder of the recordings", "it is a file", "Name a folder")
    for each in (folder, into):
        made_folder(each)  # it takes hours to come to where it would be missed
    found: list[Built] = []
    for count, plan in enumerate(plans, 1):
        head = f"life {count} of {len(plans)}, {plan.name}"

        def tell(text: str, head: str = head) -> None:
            progress(f"{head}: {text}")

        found.append(_built(plan, folder, into, tell, vllm=vllm, record=record))
        _tell(found[-1], tell)
    return found


def _built(plan: LifePlan, folder: Path, into: Path, tell: Progress, *, vllm: Path | None, record: Record) -> Built:
    kept = into / LIVES / f"{plan.name}.xz"
    if kept.exists():
        return _outcome(plan, read_truth(into, plan.name).blocks, kept.stat().st_size, new=False)
    why = ""
    for attempt in range(1, TRIES + 1):
        try:
            whole = _recorded(plan, folder, tell, vllm=vllm, record=record)
            tell("packing")
            size = pack(_bundle(whole), truths(whole), asdict(plan), into, plan.name)
        except (OutOfRoom, LimitError, MissingExtra):
            raise
        except TellerError as error:
            why = str(error)
            tell(f"try {attempt} of {TRIES} failed: {why}")
            continue
        _check_size(into)
        return _outcome(plan, truths(whole), size, new=True)
    return Built(plan.name, plan.side, 0, 0, [], new=False, failed=why)


def _recorded(plan: LifePlan, folder: Path, tell: Progress, *, vllm: Path | None, record: Record) -> Path:
    """The folder of the whole life, recorded now where it is not there."""
    whole, part = folder / plan.name, folder / f".{plan.name}"
    if whole.exists():
        return whole
    _clear(part)
    if (free := shutil.disk_usage(folder).free) < LEAST_FREE:
        raise OutOfRoom("The folder of the recordings", f"{free:,} bytes are free on its disk", "Free some space")
    tell(f"{plan.kind.engine}, {plan.model}, {plan.load}: recording")
    record(plan, part, vllm, tell)
    part.rename(whole)
    return whole


def _clear(part: Path) -> None:
    """Remove a life that was ended in the middle, and end what still serves in it."""
    inside = str(part.resolve()) + os.sep
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            variables = (process / "environ").read_bytes().split(b"\0")
            if any(value.startswith(f"{CAPTURE}={inside}".encode()) for value in variables):
                os.kill(int(process.name), signal.SIGKILL)
    shutil.rmtree(part, ignore_errors=True)


def _bundle(whole: Path) -> Path:
    bundles = sorted(whole.glob("bundle-*"))
    if len(bundles) != 1:
        raise InputError(f"The life {whole.name}", f"it has {len(bundles)} recordings", "Remove its folder")
    return bundles[0]


def _check_size(into: Path) -> None:
    if (total := packed_bytes(into)) > MOST_BYTES:
        raise LimitError("The benchmark", f"it takes {total:,} bytes, over {MOST_BYTES:,}", "Build fewer lives")


def _outcome(plan: LifePlan, blocks: Sequence[BlockTruth], size: int, *, new: bool) -> Built:
    strikes = [strike for block in blocks for strike in block.strikes]
    rejected = [(strike.fault, strike.severity, strike.rejected) for strike in strikes if strike.rejected is not None]
    return Built(plan.name, plan.side, size, len(strikes) - len(rejected), rejected, new=new)


def _tell(one: Built, tell: Progress) -> None:
    if one.failed is not None:
        tell(f"given up: {one.failed}")
        return
    for fault, severity, why in one.rejected if one.new else ():
        tell(f"rejected {fault}, {severity}: {why}")
    done = "packed" if one.new else "is there"
    tell(
        f"{done}: {one.bytes:,} bytes, {one.moved} of {one.moved + len(one.rejected)} strikes moved what they are judged by"
    )
