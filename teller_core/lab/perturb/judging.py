"""Methods on replayed episodes, and whether these give away what was done: tables beside those of the lives."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from teller_core.data.whole import keep_text
from teller_core.errors import InputError
from teller_core.ingest.files.room import cores
from teller_core.lab.evaluation.episode import TEST, TRAIN, Episode
from teller_core.lab.evaluation.learners import load
from teller_core.lab.evaluation.methods import METHODS, method
from teller_core.lab.evaluation.results import ALL, RESULTS
from teller_core.lab.evaluation.running import Sides, evaluated
from teller_core.lab.evaluation.tables import said, table
from teller_core.lab.perturb.faults import FAULTS, NO_HEADLINE, REPLAYS_TOLD
from teller_core.lab.perturb.folder import Planned, episodes_of, planned, truth_of
from teller_core.lab.perturb.telling_apart import TELLS, Asked, Verdict, asked, seen
from teller_core.lab.side_by_side import side_by_side

TIER = 4
MOST_JUDGED = 480
"""Episodes, of all recordings alike: those of the test side are judged by every method, the others are learned from."""
MOST_CONTROLS, MOST_ASKED = 16, 80
"""Episodes of a recording of which it is asked whether a recorded run, and whether what was struck, can be told."""
BESIDE = (
    "request.top_1", "request.top_3", "request.healthy_unclaimed", "request.hard_unclaimed", "step.f1_at_43", "step.pr_auc_at_43",
    "step.pr_auc_at_10", "operator.ac_at_1", "operator.ac_at_3", "operator.mrr", "rank.ac_at_1",
)  # fmt: skip
"""Figures that are told beside those of the lives."""
REAL = "recorded or replayed"
"""The one question that is of no fault."""
Progress = Callable[[str], None]


def evaluate_replayed(wanted: str, folder: Path, packed: Path, progress: Progress) -> list[str]:
    """The tables of one method, or of all, on the replayed episodes of ``folder``, written into it, each with its headline
    figures beside those of the lives in ``packed``. Raises TellerError.
    """
    load()
    methods = list(METHODS.values()) if wanted == ALL else [method(wanted)]
    sides, into = sides_of(folder, progress, training=any(one.learns for one in methods)), folder / RESULTS
    texts: list[str] = []
    for one in methods:
        done = evaluated(one, sides, progress, cores())
        real = packed / RESULTS / f"{one.name}.T{TIER}.txt"
        text = table(done, TIER)
        lines = beside(text, real.read_text(encoding="utf-8") if real.exists() else "")
        texts.append(f"{_about(folder)}\n{text}\n" + "\n".join(lines) + "\n")
        keep_text(into / f"{one.name}.replayed.txt", texts[-1])
    return texts


def sides_of(folder: Path, progress: Progress, *, training: bool = True) -> Sides:
    """MOST_JUDGED episodes by side, without those that carry no headline; without the ``training`` side where nobody learns."""
    plan = planned(folder)
    names = [name for name in plan.episodes if training or plan.sides[name] == TEST]
    several = side_by_side([partial(_some, folder, plan, name, progress) for name in names], cores())
    episodes = [episode for mine in several for episode in mine]
    by_side = {side: [one for one in episodes if one.about["side"] == side] for side in (TRAIN, TEST)}
    return Sides(by_side[TRAIN], by_side[TEST])


def _some(folder: Path, plan: Planned, name: str, progress: Progress) -> list[Episode]:
    progress(f"{name}: make episodes")
    truth = truth_of(folder, name)
    good = [at for at, one in enumerate(truth) if one["fault"] is not None and one["fault"] not in NO_HEADLINE]
    chance = np.random.default_rng((plan.seed, len(good)))
    few = np.sort(chance.choice(good, min(len(good), MOST_JUDGED // len(plan.episodes)), replace=False)).tolist()
    found = [episode for _, _, episode in episodes_of(folder, name, few)]
    for episode in found:
        episode.seen.measure()
    return found


def beside(replayed: str, real: str) -> list[str]:
    """A line a headline figure: on replayed episodes, and on lives at the same tier where ``real`` says it."""
    mine, theirs = said(replayed), said(real)
    lines = [f"{'beside the lives of the benchmark':<36}{'replayed':>10}{'lives':>10}"]
    for key in BESIDE:
        cells = [f"{one[key].value:>10.4f}" if key in one else f"{'-':>10}" for one in (mine, theirs)]
        lines.append(f"{key:<36}{''.join(cells)}")
    return lines


def _about(folder: Path) -> str:
    plan = planned(folder)
    out = "; ".join(f"{name}: {why}" for name, why in NO_HEADLINE.items()) or "none"
    return (
        f"Replayed: {sum(plan.episodes.values())} episodes of {len(plan.episodes)} real recordings, seed {plan.seed}; "
        f"{MOST_JUDGED} of them at most are judged here. Lives are recordings: they share a side and are drawn together. "
        f"In no figure: {out}. No figure here is a headline: {REPLAYS_TOLD}."
    )


def told(folder: Path, progress: Progress) -> list[Verdict]:
    """Whether recorded runs can be told from replayed ones, and for every fault struck steps from others."""
    load()
    plan = planned(folder)
    several = side_by_side(
        [partial(_questions, folder, plan, at, name, progress) for at, name in enumerate(plan.episodes)], cores()
    )
    by_question: dict[str, list[Asked]] = {}
    for mine in several:
        for question, one in mine:
            by_question.setdefault(question, []).append(one)
    if not by_question:
        raise InputError(folder.name, "no episode is in it", "Build some: teller lab replayed")
    progress("learn")
    order = [REAL, *(name for name in FAULTS if name in by_question)]
    return side_by_side([partial(asked, name, by_question[name]) for name in order if name in by_question], cores())


def _questions(folder: Path, plan: Planned, at: int, name: str, progress: Progress) -> list[tuple[str, Asked]]:
    progress(f"{name}: make episodes")
    truth = truth_of(folder, name)
    chance = np.random.default_rng((plan.seed, at))
    numbers = [k for k, one in enumerate(truth) if one["fault"] is not None]
    out: list[tuple[str, Asked]] = []
    for real, most in ((True, MOST_CONTROLS), (False, MOST_ASKED)):
        few = np.sort(chance.choice(numbers, min(most, len(numbers)), replace=False)).tolist()
        for number, one, _ in episodes_of(folder, name, few, real=real):
            fault = str(truth[number]["fault"])
            question = REAL if real else fault
            if not real and not one.touched.any():
                continue
            steps = one.touched.shape[1]
            value = seen(one.capture, steps, "" if real else fault, one.target.names, times=real)
            healthy = np.repeat(~one.runs, steps)
            if real:
                label = np.zeros(len(healthy), dtype=np.bool_)
                first = int(np.flatnonzero(~one.runs)[0])
                label[first * steps : (first + 1) * steps] = True
                kept = healthy
            else:
                label = one.touched.reshape(-1)
                kept = healthy | label
            row = np.full(int(kept.sum()), number + at * 100_000, dtype=np.int64)
            out.append((question, Asked(value[kept], label[kept], np.full(len(row), at, dtype=np.int64), row)))
    return out


def lines_of_told(verdicts: Sequence[Verdict]) -> list[str]:
    """A table of them, and what carries no headline."""
    lines = [
        "Whether steps can be told apart by anything but the fault: the area under the curve, with recordings and with episodes "
        "held out.",
        f"{'question':<24}{'steps':>9}{'labelled':>10}{'recordings':>12}{'episodes':>10}",
    ]
    for one in verdicts:
        note = f"  over {TELLS}" if one.told else ""
        lines.append(
            f"{one.question:<24}{one.rows:>9}{one.labelled:>10}{one.by_recording:>12.3f}{one.by_episode:>10.3f}{note}"
        )
    lines.append(f"Known so far: no headline: {REPLAYS_TOLD}")
    return [*lines, *(f"in no figure: {name}: {why}" for name, why in NO_HEADLINE.items())]


def lines_of_built(folder: Path, plan: Planned) -> list[str]:
    """How many episodes of which fault there are, by recording, and what was left out."""
    lines = [f"{'recording':<28}{'side':<7}{'episodes':>9}  faults"]
    every: Counter[str] = Counter()
    for name in plan.episodes:
        faults = Counter(str(one["fault"]) for one in truth_of(folder, name) if one["fault"] is not None)
        every.update(faults)
        lines.append(f"{name:<28}{plan.sides[name]:<7}{sum(faults.values()):>9}  {len(faults)}")
    lines += ["", *_by_fault(every), "", f"{sum(every.values())} episodes of {len(plan.episodes)} recordings."]
    return [*lines, *(f"left out: {name}: {why}" for name, why in plan.left_out.items())]


def _by_fault(every: Counter[str]) -> Iterator[str]:
    for name, fault in FAULTS.items():
        cause = "a hard negative" if fault.cause is None else fault.cause or "no fault"
        yield f"{name:<20}{every[name]:>7}  {cause}"
