"""What lifting a fault would have saved, as predicted from a life of the lab's services, beside what its healthy twins took.

python tests/bench/reschedule_bench.py LIFE... [--table FILE]

Each LIFE is a folder that ``teller lab build`` left. Costs of steps are learned from its healthy windows alone; the steps of a
struck window are supposed to have taken what these predict. The truth is what the same requests took in the healthy windows of
the round, which the prediction does not look at. A row a struck window whose requests lost at least a tenth of their time to
it: the sum over its requests of the ms saved, by the truth, by batching anew, with the same batches, and by two yardsticks:
what the request's own steps lost, and its time scaled by how much shorter its own steps would have been.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the checkout is put on the path first

from teller_core.data.capture import Capture  # noqa: E402
from teller_core.data.table import Int64, Mask  # noqa: E402
from teller_core.ingest.reading import plan as grouped  # noqa: E402
from teller_core.ingest.reading import read_group  # noqa: E402
from teller_core.judge.reschedule.background import background  # noqa: E402
from teller_core.judge.reschedule.costs import features, learn, took  # noqa: E402
from teller_core.judge.reschedule.plan import plan  # noqa: E402
from teller_core.judge.reschedule.savings import rescheduled, same_schedule  # noqa: E402
from teller_core.judge.reschedule.simulate import Setting  # noqa: E402
from teller_core.lab.blocks import HEALTHY, BlockTruth, Window  # noqa: E402
from teller_core.lab.life import truths  # noqa: E402
from teller_core.lab.savings import lifted, rows_of  # noqa: E402
from teller_core.rebuild.capture import rebuild  # noqa: E402
from teller_core.rebuild.nest import nest  # noqa: E402

KINDS = ("host.", "gpu.", "cuda.", "comm.")
"""Causes that make steps longer, and leave the requests as they are."""
OUTSIDE = ("front_end", "tokenizer", "detokenizer", "observer")
"""Faults that strike the front end, too: what they delay outside of steps is not in steps."""
FELT = 0.1
LONG = 200_000_000
"""ns: a turnaround of a faulty engine is shorter, a longer one is no turnaround."""
LEAST_REQUESTS = 4


@dataclass(frozen=True)
class Row:
    """One struck window; ms, summed over its requests."""

    life: str
    fault: str
    severity: str
    requests: int
    before: float
    truth: float
    anew: float
    same: float
    own: float
    scaled: float
    claimed: str


def recorded(bundle: Path) -> Capture:
    """What the bundle tells without its profiles."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / bundle.name
        for path in bundle.rglob("*"):
            if path.is_file() and not path.name.startswith("torch-"):
                there = copy / path.relative_to(bundle)
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, there)
        (group,) = grouped([copy], True)
        recording = read_group(group, None)
        trees = [nest(trace) for _, trace in recording.traces]
        return rebuild(recording, trees, capture_id="0" * 16, name=bundle.name)


def places(capture: Capture) -> dict[str, int]:
    """The position of each request by what its client called it."""
    found: dict[str, int] = {}
    for at, (client, engine) in enumerate(zip(capture.requests.client_id, capture.requests.engine_id, strict=True)):
        for name in (client, *engine.split("-")):
            if name:
                found.setdefault(name, at)
    return found


def during(setting: Setting, windows: Sequence[Window]) -> Mask:
    """bool a step: it was decided on in one of the windows."""
    hit = np.zeros(len(setting.ran.step), dtype=np.bool_)
    for window in windows:
        hit |= (setting.ran.decided >= window.begin) & (setting.ran.decided < window.end)
    return hit


def excess(setting: Setting, healthy: Mask) -> tuple[Setting, Int64]:
    """The setting with costs learned from healthy steps, and ns by which each step and its turnaround exceeded what these
    predict on average: a healthy step exceeds that as often as not.
    """
    work, taken = features(setting.ran), took(setting.ran)
    costs = learn(work[healthy], taken[healthy])
    assert costs is not None, "too few healthy steps"
    here = replace(setting, costs=costs)
    turnaround = background(here).turnaround
    usual = costs.predict(work)
    usual *= float(taken[healthy].sum()) / float(usual[healthy].sum())
    busy = turnaround < LONG
    over = taken - usual + np.where(busy, turnaround - float(turnaround[healthy & busy].mean()), 0)
    return here, np.round(over).astype(np.int64)


def rows(folder: Path) -> Iterator[Row]:
    """The struck windows of a life, and what was predicted of them."""
    blocks = truths(folder)
    clients = {
        name: row for bundle in {block.bundle for block in blocks} for name, row in rows_of(folder / bundle).items()
    }
    for bundle in sorted({block.bundle for block in blocks}):
        here = [block for block in blocks if block.bundle == bundle]
        capture = recorded(folder / bundle)
        made = plan(capture)
        for engine, setting in made.settings.items():
            healthy = during(setting, [w for block in here for w in block.windows if w.strike == HEALTHY])
            calm, over = excess(setting, healthy)
            yield from _of(folder.name, here, clients, capture, calm=calm, over=over, why=made.why[engine])


def _of(life: str, blocks: Sequence[BlockTruth], clients, capture: Capture, *, calm: Setting, over: Int64, why: str):
    known = places(capture)
    for one in lifted(blocks, clients):
        if one.rejected or not (one.cause or "").startswith(KINDS):
            continue
        block = next(block for block in blocks if block.block == one.block)
        window = next(w for w in block.windows if (w.strike, w.round) == (one.strike, one.round) and not w.profiled)
        saved = np.where(during(calm, [window]), over, 0)
        sums = np.zeros(6)
        count = 0
        for request in one.requests:
            at = known.get(request.names[0][0], -1)
            told = request.latencies.get("e2e")
            if at < 0 or told is None or calm.ran.first[at] < 0:
                continue
            anew, same = rescheduled(calm, at, saved), same_schedule(calm, at, saved)
            own = np.unique(calm.ran.at[calm.ran.rows(at)])
            lost, whole = float(saved[own].sum()), float((calm.ran.ended[own] - calm.ran.decided[own]).sum())
            scaled = told.before * min(lost / max(whole, 1.0), 1.0)
            if anew is not None:
                sums += np.array([told.before, told.saved, anew.end, same.end, lost, scaled]) / 1e6
                count += 1
        if count >= LEAST_REQUESTS and sums[1] >= FELT * sums[0]:
            yield Row(life, one.fault, one.severity, count, *(round(float(each), 1) for each in sums), claimed=why)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("lives", nargs="+", type=Path)
    parser.add_argument("--table", type=Path, help="the rows as JSON")
    asked = parser.parse_args()
    found = [row for life in asked.lives for row in rows(life)]
    if asked.table:
        asked.table.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")
    for row in found:
        print(row)
    inside = [row for row in found if not any(word in row.fault for word in OUTSIDE)]
    groups = {"all": found, "in steps": inside, "in steps, claimed": [row for row in inside if not row.claimed]}
    groups |= {fault: [row for row in found if row.fault == fault] for fault in sorted({row.fault for row in found})}
    for name, chosen in groups.items():
        if chosen:
            errors = {
                way: float(np.median([abs(getattr(row, way) / row.truth - 1) for row in chosen]))
                for way in ("anew", "same", "own", "scaled")
            }
            print(
                f"{name}: {len(chosen)} windows; median error of",
                {way: f"{error:.1%}" for way, error in errors.items()},
            )


if __name__ == "__main__":
    main()
