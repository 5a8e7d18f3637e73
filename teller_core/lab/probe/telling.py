"""The probe's verdicts as a table for people."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from teller_core.errors import InputError
from teller_core.ingest.files.room import cores
from teller_core.lab.benchmark.pack import lives
from teller_core.lab.evaluation.learners import load
from teller_core.lab.probe.expected import EXPECTED
from teller_core.lab.probe.probe import Verdict, probed
from teller_core.lab.probe.views import VIEWS
from teller_core.lab.probe.windows import windows_of
from teller_core.lab.side_by_side import side_by_side
from teller_core.tell.visible import visible

SURE = 0.05
"""The chance, over all questions together, that a view without any leak is said to do better than chance (Bonferroni)."""
LEAST_LIVES = 4
LONGEST = 100
"""Characters of a feature."""


def leaks(folder: Path, progress: Callable[[str], None]) -> list[Verdict]:
    """What every view gives away of the lives packed in ``folder``. Raises InputError where there are fewer than LEAST_LIVES."""
    packed = lives(folder)
    if len(packed) < LEAST_LIVES:
        raise InputError(
            f"--lives {folder.name}", f"{len(packed)} lives are packed in it", f"Build {LEAST_LIVES} or more"
        )
    load()
    progress(f"{len(packed)} lives")
    several = side_by_side([partial(windows_of, life) for life in packed], cores())
    windows = [window for mine in several for window in mine]
    progress("views")
    found = side_by_side([partial(probed, windows, view) for view in VIEWS], cores())
    return [verdict for mine in found for verdict in mine]


def better(verdict: Verdict, questions: int) -> bool:
    """Whether it does better than chance, where so many questions were asked."""
    return verdict.p < SURE / max(questions, 1)


def lines_of(verdicts: Sequence[Verdict]) -> list[str]:
    """The table, what leads those that do better than chance, and what was left out because it may."""
    lines = [
        "Learned from a view of windows, asked about lives that were never seen. Chance: where labels change places as they "
        "might have been dealt.",
        f"{'view':<12}{'question':<18}{'windows':>8}{'lives':>7}{'reached':>9}{'chance':>8}{'p':>9}",
    ]
    lines += [
        f"{one.view:<12}{one.question:<18}{one.windows:>8}{one.lives:>7}{one.reached:>9.3f}{one.chance:>8.3f}{one.p:>9.4f}"
        f"{'  better than chance' if better(one, len(verdicts)) else ''}"
        for one in verdicts
    ]
    for one in verdicts:
        if better(one, len(verdicts)):
            lines += ["", f"{one.view}, {one.question}: what weighs most"]
            lines += [f"  {visible(name[:LONGEST])}" for name in one.telling]
    if EXPECTED:
        lines += ["", "Left out, as a fault rightly changes it:"]
        lines += [f"  {one.view}: {one.pattern.pattern}: {one.reason}" for one in EXPECTED]
    return lines
