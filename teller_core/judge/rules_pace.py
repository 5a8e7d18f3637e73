"""A rule by how slow steps grew with their work, where no profile tells what they did.

What computes more slowly, an operator, a neighbor's victim, a throttled processor, takes longer in proportion to the work. What
is done once a step besides its work makes a step that computes a long prompt as much longer as one that makes a few tokens.
"""

from typing import NamedTuple

import numpy as np

from teller_core.data.table import UNKNOWN, Mask
from teller_core.judge.anatomy import slow_way
from teller_core.judge.around import slowdown
from teller_core.judge.evidence import HINTED, Clue, cost, count
from teller_core.judge.holds import LASTING
from teller_core.judge.prepare import Case
from teller_core.judge.rules_host import worst, worst_item
from teller_core.judge.scene import Scene
from teller_core.judge.step_threads import step_threads

LONG = 2.0
"""Times the work of most steps, from which on a step is a long one."""
OVER = 0.4
"""And short ones took such a share longer, at least: below it lies what a busy host does to all steps alike."""
LEAST = 4
"""Long steps and short ones, slow and calm: fewer of a kind tell nothing of it."""


class Added(NamedTuple):
    """int ns: what slow steps took beyond calm ones of as much work, the ``short`` and the ``long`` ones, medians; and how many
    ``times`` the work of the former the latter have.
    """

    short: int
    long: int
    times: float


def step_overhead(scene: Scene) -> Clue | None:
    """Steps grew while their thread ran, short ones and long ones by about the same time."""
    held, case = scene.holds, scene.case
    found = case.once("same in all steps", same_in_all) if held.watched else None
    if found is None or slow_way(case) is not None:
        return None
    busy = np.where(held.gap, 0, held.rest - held.asleep)
    ns = int(busy.sum())
    if ns <= 0:
        return None
    evidence = [
        cost(
            "its steps took longer than their work asks for, while their thread ran", ns, kind="step", scope="its_steps"
        ),
        cost("what slow steps of little work take more than calm ones", found.short, kind="step", scope="capture"),
        cost("what slow steps of much work take more than calm ones", found.long, kind="step", scope="capture"),
        count("times the work that the latter have", found.times, unit="times", kind="step", scope="capture"),
        *worst_item(scene, busy),
    ]
    return Clue("host.step_overhead", ns, HINTED, evidence, step=worst(scene, busy), layer="python")


def same_in_all(case: Case) -> Added | None:
    """What slow steps have more, where that does not grow with their work; None where it does, or nobody can say."""
    if len(step_threads(case).run) > 1:  # each waits for the others, at work or asleep
        return None
    took, work = case.took, case.expected
    known = (took != UNKNOWN) & (work > 0) & ~case.profiled
    if not known.any():
        return None
    level = np.nan_to_num(slowdown(case))
    slow = known & (level >= np.log(LASTING))
    if not slow.any():
        return None
    calm, slow = known & ~slow, slow & (level >= np.median(level[slow]))  # those in its midst: at an edge some are calm
    long = work >= LONG * float(np.median(work[known]))
    short_ns, long_ns = (_added(case, slow & kind, calm & kind) for kind in (~long, long))
    if short_ns is None or long_ns is None:
        return None
    short, times = float(np.median(work[slow & ~long])), float(np.median(work[slow & long]))
    times /= short
    same = -short_ns <= long_ns <= short_ns * np.sqrt(times)
    return Added(short_ns, long_ns, times) if short_ns >= OVER * short and same else None


def _added(case: Case, slow: Mask, calm: Mask) -> int | None:
    if slow.sum() < LEAST or calm.sum() < LEAST:
        return None
    usual = float(np.median(case.took[calm] / case.expected[calm]))
    return int(np.median(case.took[slow] - usual * case.expected[slow]))
