"""Whether an engine stayed slower after a window of a profiler: what came after it is then slow by the profiler, too."""

from collections import Counter, defaultdict

import numpy as np

from teller_core.data.records import Recording, known
from teller_core.data.slowdown import slowed
from teller_core.rebuild.engines import Place, place


def count_slower(recording: Recording, problems: Counter[str]) -> None:
    """Problems: ``slower_after_window``: windows after which the steps of an engine took longer, at equal numbers of tokens.

    An engine's steps are its decisions; a window in any process of the service counts for all of its engines.
    """
    windows = [(window.start, window.stop) for window in recording.windows if known(window.stop)]
    if not windows:
        return
    steps: defaultdict[Place, list[tuple[int, int]]] = defaultdict(list)
    for decision in recording.decisions:
        if decision.tokens:
            steps[place(decision.process)].append((decision.start, sum(decision.tokens.values())))
    for of in steps.values():
        starts, tokens = np.array(sorted(of), dtype=np.int64).T
        problems["slower_after_window"] += len(slowed(starts, tokens, windows))
